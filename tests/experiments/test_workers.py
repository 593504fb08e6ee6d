"""Sweeps on several processes: the same bytes, whoever did a run, and whoever died meanwhile."""

from __future__ import annotations

import csv
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from distributed import Client, LocalCluster

from ringleaf.errors import ConfigError
from ringleaf.experiments import sweep, swept_files
from ringleaf.experiments.workers import Crew

CASES: list[dict[str, Any]] = [
    {"topo": "leafspine,leaves=1,spines=1,hosts=3", "algo": "ring,switchml", "size": size}
    for size in ("1K", "2K", "4K", "8K")
]
DATED = ("config.json", "log.txt")  # these say when, and how fast


def swept(out: Path, crew: Crew, emit: Any = lambda line: None) -> dict[str, bytes]:
    """Return all files of a sweep but those that say when they were made."""
    assert sweep.run([{**case, "out": str(out)} for case in CASES], name="x", emit=emit, crew=crew)
    return {
        str(path.relative_to(out)): path.read_bytes()
        for path in sorted(out.rglob("*"))
        if path.is_file() and path.name not in DATED
    }


def test_a_worker_that_is_killed_loses_nothing(tmp_path: Path) -> None:
    """Two workers, one killed when the first run has ended: every run is there, once."""
    said: list[str] = []
    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
    ) as cluster:
        with Client(cluster) as client:
            pids = list(client.run(os.getpid).values())

        def emit(line: str) -> None:
            if not said:
                os.kill(pids[0], signal.SIGKILL)
            said.append(line)

        apart = swept(tmp_path / "apart" / "x", Crew(address=cluster.scheduler_address), emit)

    places = [line for line in said if line.startswith("# size=")]
    assert sorted(places) == sorted(f"# size={case['size']}" for case in CASES)
    assert apart == swept(tmp_path / "alone" / "x", Crew())
    with (tmp_path / "apart" / "x" / swept_files.FILE).open() as file:
        rows = [(row["size"], row["algo"]) for row in csv.DictReader(file)]
    assert rows == [(case["size"], algo) for case in CASES for algo in ("ring", "switchml")]


def test_a_scheduler_that_does_not_answer_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ringleaf.experiments.workers.CONNECT_S", 0.2)
    with pytest.raises(ConfigError, match=r"no Dask scheduler answers, got 'tcp://127\.0\.0\.1:1'"):
        swept(tmp_path, Crew(address="tcp://127.0.0.1:1"))


@pytest.mark.parametrize(("option", "value"), [("net", "mininet"), ("record", "traces")])
def test_what_has_to_stay_on_this_machine_is_refused(
    tmp_path: Path, option: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ringleaf.experiments.sweep.check", lambda spec: None)
    cases = [{**case, option: value, "out": str(tmp_path)} for case in CASES]
    with pytest.raises(ConfigError, match=f"only in virtual time and without traces, got {option}"):
        sweep.run(cases, name="x", emit=lambda line: None, crew=Crew(2))
