"""The machine's own pace: learnt from its last runs, and kept where it can't hurt."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.core.sealed import write_sealed
from ringleaf.experiments.estimates import pace
from ringleaf.experiments.estimates.estimate import need
from ringleaf.experiments.estimates.pace import PACKETS, SETUP, START, RunPaces, Sort, read_paces
from ringleaf.experiments.runs.python import run
from ringleaf.experiments.setup.ranks import count_nodes
from ringleaf.experiments.workloads.collective.experiment import CollectiveExperiment
from ringleaf.experiments.workloads.collective.kind import resolve

RING = Sort("collective", "ring", "virtual")
GIVEN = {"topo": "fattree", "algo": "ring,tree", "size": "16M", "threads": "1"}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a file of this test's own."""
    path = tmp_path / "pace.json"
    monkeypatch.setattr(pace, "_path", lambda: path)
    monkeypatch.setattr(pace, "write_sealed", write_sealed)
    return path


def learnt(factor: float, runs: int = 3) -> RunPaces:
    found = RunPaces()
    for _ in range(runs):
        for part in (SETUP, PACKETS):
            found.note(RING, part, 100.0, 100.0 * factor)
    found.keep()
    return read_paces()


@given(st.floats(0.1, 10), st.integers(1, 20))
def test_what_like_runs_took_is_foretold_next(factor: float, runs: int) -> None:
    found = learnt(factor, runs)
    assert found.factor(RING, PACKETS) == pytest.approx(factor, rel=0.06)
    pace._path().unlink()


def test_the_last_runs_count_more_and_one_alone_changes_nothing() -> None:
    found = RunPaces({RING.key(SETUP): [(10, 10)] * 5 + [(10, 40)]})
    assert found.factor(RING, SETUP) == 1
    found = RunPaces({RING.key(SETUP): [(10, 10)] * 8 + [(10, 41.5)] * 3})
    assert found.factor(RING, SETUP) == pytest.approx(4)


def test_milliseconds_say_little_and_minutes_much() -> None:
    found = RunPaces({RING.key(SETUP): [(0.01, 0.2)] * 9 + [(60, 180)]})
    assert found.factor(RING, SETUP) == pytest.approx(180.5 / 60.5)
    assert RunPaces({RING.key(SETUP): [(0.01, 0.2)]}).factor(RING, SETUP) < 1.5


def test_other_algorithms_are_foretold_by_those_of_the_kind_and_network() -> None:
    found = learnt(3)
    assert found.factor(Sort("collective", "tree", "virtual"), PACKETS) == pytest.approx(3, rel=0.1)
    for other in (Sort("collective", "tree", "mininet"), Sort("jobs", "ring", "virtual")):
        assert found.factor(other, PACKETS) == 1


def test_a_slow_machine_is_foretold_more_seconds_and_nothing_else() -> None:
    spec = resolve(GIVEN)
    constant = need(spec, count_nodes(spec), 5.0)
    slow = need(spec, count_nodes(spec), 5.0, learnt(8))
    assert slow.memory_bytes == constant.memory_bytes
    assert 3 * constant.known_s < slow.known_s < 9 * constant.known_s


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"[1]",
        b"null",
        b'{"collective ring virtual packets": 3}',
        b'{"collective ring virtual packets": [[1]]}',
        b'{"collective ring virtual packets": [["nan", 1]]}',
        b'{"collective ring virtual packets": [[1, -1]]}',
        b'{"collective ring virtual packets": [[1, null]]}',
    ],
)
def test_what_is_no_list_of_runs_counts_as_none(data: bytes, cache: Path) -> None:
    cache.write_bytes(data)
    assert read_paces().factor(RING, PACKETS) == 1
    write_sealed(cache, data, pace.ABOUT)
    assert read_paces().factor(RING, PACKETS) == 1


@given(st.data())
def test_a_damaged_file_counts_as_none(data: st.DataObject) -> None:
    learnt(5)
    path = pace._path()
    text = bytearray(path.read_bytes())
    at = data.draw(st.integers(0, len(text) - 1))
    text[at] ^= data.draw(st.integers(1, 255))
    path.write_bytes(text)
    assert read_paces().factor(RING, PACKETS) == 1


def test_a_cache_that_cannot_be_written_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(pace, "write_sealed", refuse)
    assert learnt(5).factor(RING, PACKETS) == 1


def test_the_file_stays_small(cache: Path) -> None:
    for number in range(2 * pace.MOST_SORTS):
        found = RunPaces()
        found.note(Sort("collective", f"algorithm{number}", "virtual"), SETUP, 1, 1)
        if number % 16 == 0:
            found.keep()
    learnt(5, 100)
    runs = json.loads(cache.read_bytes().partition(b"\n")[2])
    assert len(runs) <= pace.MOST_SORTS
    assert len(runs[RING.key(SETUP)]) == pace.MOST_RUNS
    assert cache.stat().st_mode & 0o077 == 0
    assert not list(cache.parent.glob("*.tmp"))


def test_runs_learn_and_what_they_learnt_changes_no_result(tmp_path: Path) -> None:
    given: dict[str, Any] = {"topo": "fattree", "algo": "ring", "size": "64K", "figures": "no"}
    first = run(**given, out=str(tmp_path / "a"))
    found = read_paces()._runs
    assert {key.rsplit(maxsplit=1)[1] for key in found} <= {SETUP, PACKETS, START}
    assert len(found[RING.key(PACKETS)]) == len(found[RING.key(SETUP)]) == 1

    learnt(50)
    second = run(**given, out=str(tmp_path / "b"))
    assert first.rows == second.rows
    names = ("results.csv", "links.csv")
    for name in names:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_threads_follow_from_constants_alone() -> None:
    learnt(50)
    experiment = CollectiveExperiment(resolve({"topo": "fattree", "algo": "ring", "size": "64K"}))
    (algorithm, *_) = experiment.algorithms
    threads = experiment.estimate(algorithm, 1 << 16).threads
    assert threads == 1, "64 KiB take milliseconds, whatever the machine's pace"
