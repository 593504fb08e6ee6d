"""Steps that repeat are skipped: sums stay exact, and times are as wrong as foretold at most."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from circulant_schedules import circulants
from hypothesis import given, settings
from hypothesis import strategies as st

from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.collectives.rows import Columns, Op
from ringleaf.collectives.schedule import ChunkRows, Schedule
from ringleaf.errors import ConfigError
from ringleaf.experiments.estimates import estimate
from ringleaf.experiments.setup.ranks import count_nodes
from ringleaf.experiments.workloads.collective.experiment import CollectiveExperiment
from ringleaf.experiments.workloads.collective.kind import resolve
from ringleaf.experiments.workloads.collective.measuring import Measurement
from ringleaf.experiments.workloads.collective.spec import CollectiveSpec
from ringleaf.networks import skipping
from ringleaf.networks.outcome import RECEIVE, Note, RunResult
from studies.skipping import compare

STAR = "leafspine,leaves=1,spines=1,hosts=16"


def ring(ranks: int) -> Schedule:
    return ALGORITHMS["ring"].build(ranks)


def each(work: Callable[[int], None], items: Iterable[int]) -> Any:
    return map(work, items)


def taking(gaps_ps: list[int], *, ahead_ps: int = 0) -> Callable[[Schedule], RunResult]:
    """Return a network on which steps take these times; rank 0 is behind the others."""

    def simulate(part: Schedule) -> RunResult:
        ends_ps = np.cumsum(gaps_ps[: part.steps])
        rows = part.columns
        notes = [
            Note(RECEIVE, dst, src, number, 0, int(ends_ps[step]) + (ahead_ps if dst == 0 else 0))
            for number, (src, dst, step) in enumerate(
                zip(rows.src.tolist(), rows.dst.tolist(), rows.step.tolist(), strict=True)
            )
        ]
        link = ("h0", "s0")
        return RunResult(
            time_ps=int(ends_ps[-1]) + 7,
            finish_ps=[int(ends_ps[-1])] * part.ranks,
            wire_bytes=[100 * part.steps] * part.ranks,
            retransmissions=0,
            drops=0,
            lost=0,
            link_bytes={link: 100 * part.steps},
            bin_ps=int(ends_ps[-1]) // 10,
            link_series={link: np.full(10, 10 * part.steps)},
            peak_queue_bytes=0,
            packet_hops=part.steps,
            events=0,
            wall_s=0.0,
            notes=notes,
        )

    return simulate


def test_skipped_steps_take_the_time_of_those_before() -> None:
    """62 steps of 1000 ps, of which 24 are simulated; the first one takes 300 ps longer."""
    first = [1300, *[1000] * 61]

    found = skipping.run(
        ring(32), [np.zeros(0)], 0.5, taking(first), each, each_end=12, has_data=False
    )

    assert not isinstance(found, str)
    result, skip = found
    assert (skip.first, skip.steps, skip.of) == (12, 38, 62)
    assert result.time_ps == 62_000 + 300 + 7
    assert result.wire_bytes == [6200] * 32
    assert result.packet_hops == 24
    [series] = result.link_series.values()
    assert series.sum() == 6200


def test_steps_that_take_different_times_are_not_skipped() -> None:
    """Every other step takes twice as long; half the difference is a third of the mean."""
    found = skipping.run(
        ring(32), [np.zeros(0)], 0.01, taking([1000, 2000] * 31), each, each_end=12, has_data=False
    )
    assert isinstance(found, str)
    assert "might be wrong by" in found


def test_a_rank_that_is_behind_makes_the_error_larger() -> None:
    """Rank 0 of 32 is 3200 ps late, of 62,000 in all, maybe at the cut and in the end."""
    found = skipping.run(
        ring(32), [np.zeros(0)], 1.0, taking([1000] * 62, ahead_ps=3200), each, each_end=12,
        has_data=False,
    )  # fmt: skip
    assert not isinstance(found, str)
    assert found[1].error == pytest.approx(6400 / 62_000)


@settings(max_examples=8, deadline=None)
@given(
    topo=st.sampled_from([STAR, "fattree", "torus2d", "leafspine,leaves=4,spines=2,hosts=5"]),
    algo=st.sampled_from(["ring", "reducescatter", "allgather"]),
    elements=st.integers(1, 300_000),
    dtype=st.sampled_from(["float32", "int32"]),
    seed=st.integers(0, 9),
    net=st.sampled_from(["virtual", "flow"]),
)
def test_sums_are_exact_and_the_error_is_as_foretold(
    topo: str, algo: str, elements: int, dtype: str, seed: int, net: str
) -> None:
    size = str(4 * elements)
    found = compare(topo=topo, algo=algo, size=size, dtype=dtype, seed=str(seed), net=net)

    row = found.short.row
    assert row.wrong == 0
    assert found.is_right, row.skipping
    if row.skipped_percent:
        assert abs(found.link_error) < 0.05  # a tiny message is no larger than what answers it


def test_most_of_a_long_ring_is_skipped() -> None:
    found = compare(topo="leafspine,leaves=4,spines=2,hosts=16", algo="ring", size="1M")
    row = found.short.row
    assert row.skipped_percent == pytest.approx(100 * (126 - 24) / 126)
    assert row.packet_hops < 0.25 * found.whole.row.packet_hops
    assert found.is_right


def test_most_of_a_long_ring_by_classes_of_flows_is_skipped() -> None:
    size = str(4 * 1024 * 500)
    found = compare(topo="fattree,k=16", algo="ring", size=size, net="flow", data="none")
    row = found.short.row
    assert row.skipped_percent == pytest.approx(100 * (2046 - 24) / 2046)
    assert row.bound_ps == found.whole.row.bound_ps
    assert row.events < 0.05 * found.whole.row.events
    assert found.is_right
    assert row.error_percent < 1
    assert abs(found.link_error) < 1e-9
    assert found.short.outcome.notes == []


LONG = {"topo": "fattree,k=16", "algo": "ring", "size": "100M", "net": "flow"}


def test_very_long_rings_of_flows_are_skipped_unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimate, "MOST_CARRIED", 4 * 32 * 2046 - 1)  # 128 classes of 1,024 ranks
    short, whole = measured(**LONG, data="none"), measured(**LONG, data="none", skip="0%")
    assert short.row.skipped_percent == pytest.approx(100 * (2046 - 24) / 2046)
    assert short.row.skipping.endswith("% (--skip 0% carries all)")
    assert whole.row.skipped_percent == 0
    assert whole.row.skipping == ""
    error = short.row.time_ps / whole.row.time_ps - 1
    assert 0 < 100 * abs(error) <= short.row.error_percent < 0.1


def test_what_can_not_be_skipped_unasked_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimate, "MOST_CARRIED", 1000)
    row = measured(**LONG | {"size": "4K"}, data="none").row  # its foretold error is too large
    assert (row.skipped_percent, row.skipping) == (0, "")


@pytest.mark.parametrize(
    "options",
    [
        {"topo": "fattree,k=32"},
        {"skip": "0%"},
        {"data": "random"},
        {"algo": "tree"},
        {"net": "virtual"},
        {"faults": "s0-s1024 down at 50us"},
        {"routes": "ecmp"},
    ],
)
def test_shorter_runs_and_those_with_data_or_faults_are_whole(options: dict[str, str]) -> None:
    given = LONG | {"topo": "fattree,k=64", "data": "none"}
    very_long, other = resolve(given), resolve(given | options)
    assert tolerance(very_long) == 0.001
    assert tolerance(other) == 0


def tolerance(spec: CollectiveSpec) -> float:
    algorithm, ranks = ALGORITHMS[spec.algos[0]], count_nodes(spec).hosts
    return estimate.tolerance_of(spec, algorithm, ranks, spec.sizes_bytes[0])


def test_larger_sums_in_switches_take_flows_no_longer() -> None:
    row = measured(topo="fattree", algo="switchml", size="1M", skip="1%", net="flow").row
    assert row.skipping == "in full, as a flow takes no longer to compute if it is larger"
    assert row.wrong == 0


@pytest.mark.parametrize(
    ("algo", "why"),
    [
        ("halvingdoubling", "it has 6 steps"),
        ("alltoall", "its steps differ"),
        ("switchml", "its tensors fill all slots too few times"),
        ("dsar-split", "sizes depend on the data"),
    ],
)
def test_what_does_not_repeat_runs_in_full(algo: str, why: str) -> None:
    row = measured(topo="leafspine,leaves=4,spines=2,hosts=8", algo=algo, size="4K", skip="1%").row
    assert row.skipping.startswith("in full, as ")
    assert (why in row.skipping) or (algo == "halvingdoubling" and "steps" in row.skipping)
    assert row.skipped_percent == 0
    assert row.wrong == 0


@given(circulants())
def test_a_circulant_schedule_s_steps_repeat_if_all_its_rows_do(schedule: Schedule) -> None:
    whole = replace(schedule, rows=ChunkRows(schedule.columns))
    found, wanted = (skipping.obstacle(each, 1000, 0) for each in (schedule, whole))
    assert found == wanted


def test_a_step_that_reads_what_it_writes_is_not_skipped() -> None:
    """Its rows are concurrent, so that one after the other they would not mean the same."""
    there, back = ((0, 1), (1, 0))
    columns = Columns.joined(
        [
            Columns.transfers([step] * 2, [there[0], back[0]], [there[1], back[1]], [0, 0], Op.COPY)
            for step in range(40)
        ]
    )
    swaps = replace(ring(2), rows=ChunkRows(columns))
    assert skipping.obstacle(swaps, 1000, 12) == "its steps differ"


@pytest.mark.parametrize(
    ("name", "value"),
    [("loss", "1%"), ("pcap", "yes"), ("reorder", "1%"), ("ecn", "5:200:1%"), ("net", "mininet")],
)
def test_what_needs_every_packet_refuses_to_skip(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=f"skip: .* with {name}(=mininet)?, got"):
        resolve({"skip": "1%", "algo": "ring", name: value})


def measured(**given: str) -> Measurement:
    (found,) = CollectiveExperiment(resolve(given)).run()
    return found
