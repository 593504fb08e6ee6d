"""Synthesis as a whole: names, refusals, and plans that are kept."""

from __future__ import annotations

from pathlib import Path

import pytest
from drawn_wires import GBPS, grid

from ringleaf.collectives.registry import ALGORITHMS, find_algorithm
from ringleaf.collectives.schedule import Collective
from ringleaf.collectives.synthesis import search
from ringleaf.collectives.synthesis.problem import Problem
from ringleaf.collectives.wires import RankNetwork, Wire
from ringleaf.core.sealed import write_sealed
from ringleaf.errors import ConfigError, ScheduleError

MESH = grid((2, 2), (1, 1), 1, wrap=False)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def test_names_are_algorithms_that_are_not_listed() -> None:
    assert find_algorithm("tacos-allgather").collective is Collective.ALL_GATHER
    assert "tacos" in ALGORITHMS
    assert "tacos" not in list(ALGORITHMS)
    assert "tacos-broadcast" not in ALGORITHMS


def test_an_algorithm_without_a_network_says_what_to_give() -> None:
    with pytest.raises(ScheduleError, match="tacos: needs the links between all ranks, got none"):
        find_algorithm("tacos").build(4)
    with pytest.raises(ScheduleError, match="must be for all 4 hosts of the topology, got 3"):
        find_algorithm("tacos").build(3, network=lambda: MESH)
    with pytest.raises(ScheduleError, match="tacos: has no servers, got 1"):
        find_algorithm("tacos").build(4, servers=1, network=lambda: MESH)


def test_a_kept_plan_is_found_again_and_a_spoilt_one_is_not_believed(tmp_path: Path) -> None:
    problem = Problem(MESH, Collective.ALLREDUCE, 4096)
    first = search.synthesise("tacos", problem)
    [file] = (tmp_path / "ringleaf" / "synthesis").iterdir()
    assert search.synthesise("tacos", problem).schedule == first.schedule
    text = file.read_text().partition("\n")[2]
    for spoilt in ("", "{}\n", text.replace('"reduce"', '"copy"'), text[:-40]):
        write_sealed(file, spoilt.encode(), file.name)
        assert search.synthesise("tacos", problem).schedule == first.schedule
    file.write_bytes(file.read_bytes().replace(b'"expected_ps": ', b'"expected_ps": 1'))
    assert search.synthesise("tacos", problem).expected_ps == first.expected_ps


def test_an_absent_solver_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ringleaf.core.extras.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"sccl: needs the package z3.*ringleaf\[synthesis\]"):
        search.synthesise("sccl", Problem(MESH, Collective.ALL_GATHER, 4096))


def test_hostile_networks_and_numbers_are_refused() -> None:
    with pytest.raises(ScheduleError, match="no way from rank 0 to rank 2"):
        Problem(RankNetwork.direct(3, [(0, 1, GBPS, 0), (1, 0, GBPS, 0)]), Collective.ALLREDUCE, 1)
    with pytest.raises(ScheduleError, match="rate must be >= 1"):
        RankNetwork.direct(2, [(0, 1, 0, 0)])
    with pytest.raises(ScheduleError, match="no such way"):
        RankNetwork(2, (Wire(1, 0),), {(0, 5): (0,)}, (0, 1))
    with pytest.raises(ScheduleError, match="sites must be 2"):
        RankNetwork(2, (), {}, (0,))
    with pytest.raises(ScheduleError, match="chunks must be 1 to"):
        Problem(MESH, Collective.ALLREDUCE, 1, 0)
    with pytest.raises(ScheduleError, match="limit must be more than 0"):
        Problem(MESH, Collective.ALLREDUCE, 1, limit_s=0)
    with pytest.raises(ScheduleError, match="blink: can't synthesise this collective"):
        search.synthesise("blink", Problem(MESH, Collective.ALL_GATHER, 1))
