"""Parameter servers: one or several, nodes of their own or the ranks themselves."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.collectives.algorithms.ps import parameter_server_allreduce
from ringleaf.collectives.cost import AlphaBeta
from ringleaf.collectives.critical_path import critical_path, sent_bytes
from ringleaf.collectives.oracle import execute
from ringleaf.collectives.registry import find_algorithm
from ringleaf.collectives.schedule import Op, Transfer
from ringleaf.collectives.verify import verify
from ringleaf.errors import ScheduleError

FABRIC = AlphaBeta(overhead_ps=20_000, wire_bytes=lambda payload: payload * 17 // 16)


@given(st.integers(1, 24), st.integers(0, 12), st.integers(1, 5))
def test_every_contribution_counts_once(ranks: int, servers: int, segments: int) -> None:
    proof = verify(parameter_server_allreduce(ranks, servers, segments))
    assert proof.identical
    assert not proof.landings


@given(st.integers(2, 12), st.integers(0, 5), st.integers(1, 4))
def test_each_chunk_has_one_server(ranks: int, servers: int, segments: int) -> None:
    schedule = parameter_server_allreduce(ranks, servers, segments)
    rows = [row for row in schedule.rows if isinstance(row, Transfer)]
    ends = Counter((row.chunk, row.dst if row.op is Op.REDUCE else row.src) for row in rows)
    each = ranks if servers else ranks - 1
    assert set(ends.values()) == {2 * each}
    assert len(ends) == schedule.chunks
    loads = Counter(server for _, server in ends)
    assert len(set(loads.values())) == 1


def test_servers_hold_zeros_and_help() -> None:
    import torch

    schedule = parameter_server_allreduce(3, 2)
    tensors = [torch.full((5,), float(rank + 1)) for rank in range(3)]
    results = execute(schedule, tensors)
    assert all(result.tolist() == [6.0] * 5 for result in results[:3])


@pytest.mark.parametrize("ranks", [1, 2, 4, 16, 63])
def test_the_closed_form_of_co_located_servers_is_exact(ranks: int) -> None:
    algorithm = find_algorithm("ps")
    size_bytes = ranks * 4096
    schedule = algorithm.build(ranks, size_bytes=size_bytes)
    cost = algorithm.cost(ranks, size_bytes=size_bytes, fabric=FABRIC)
    assert cost.time_ps == critical_path(schedule, size_bytes, FABRIC).time_ps
    assert cost.sent_bytes == max(sent_bytes(schedule, size_bytes))


@pytest.mark.parametrize(("ranks", "servers"), [(4, 1), (8, 2), (8, 8), (15, 1), (4, 8), (12, 5)])
@pytest.mark.parametrize("segments", [1, 2, 16])
def test_the_closed_form_of_servers_is_near(ranks: int, servers: int, segments: int) -> None:
    algorithm = find_algorithm("ps")
    size_bytes = servers * segments * 65536
    schedule = algorithm.build(ranks, size_bytes=size_bytes, servers=servers, segments=segments)
    cost = algorithm.cost(
        ranks, size_bytes=size_bytes, servers=servers, segments=segments, fabric=FABRIC
    )
    exact_ps = critical_path(schedule, size_bytes, FABRIC).time_ps
    assert cost.time_ps == pytest.approx(exact_ps, rel=0.1)
    assert cost.sent_bytes == max(sent_bytes(schedule, size_bytes))


def test_segments_keep_both_directions_of_a_server_busy() -> None:
    algorithm, size_bytes = find_algorithm("ps"), 1 << 24
    whole = algorithm.cost(8, size_bytes=size_bytes, servers=1, segments=1)
    cut = algorithm.cost(8, size_bytes=size_bytes, servers=1)
    assert cut.time_ps < 0.55 * whole.time_ps


def test_bad_numbers_are_refused() -> None:
    with pytest.raises(ScheduleError, match="servers must be >= 0, got -1"):
        parameter_server_allreduce(4, -1)
    with pytest.raises(ScheduleError, match="ranks must be >= 1, got 0"):
        parameter_server_allreduce(0)
    with pytest.raises(ScheduleError, match="segments must be >= 1, got 0"):
        parameter_server_allreduce(4, 1, 0)
