"""The logs of a live run's switches are files of the run; without root."""

from __future__ import annotations

from pathlib import Path

import pytest

from ringleaf.errors import ConfigError
from ringleaf.experiments.records.folder import RunFolder, listed
from ringleaf.experiments.runs.request import resolve
from ringleaf.experiments.setup.testbed import list_logs
from ringleaf.topologies.registry import build

TOPO = "leafspine,leaves=1,spines=1,hosts=2"
BMV2_LOGS = {"s0.log", "s0.txt", "s1.log", "s1.txt"}


def begin(folder: Path, switch: str = "embedded") -> RunFolder:
    """Begin a run in a folder, as far as the network's first start."""
    run = RunFolder(folder, print)
    with run:
        (folder / "config.json").touch()
        typed = {"topo": TOPO, "algo": "ring", "net": "mininet", "switch": switch}
        list_logs(resolve({**typed, "out": str(folder)}).spec, build(TOPO))
        run.note([])
    return run


@pytest.mark.parametrize(("switch", "logs"), [("embedded", {"daemon.log"}), ("bmv2", BMV2_LOGS)])
def test_the_next_run_removes_logs(tmp_path: Path, switch: str, logs: set[str]) -> None:
    begin(tmp_path, switch)
    assert logs <= listed(tmp_path)
    for name in logs:
        (tmp_path / name).write_text("a line")

    with RunFolder(tmp_path, print):
        pass

    assert not [name for name in logs if (tmp_path / name).exists()]


def test_somebodys_own_file_is_no_log(tmp_path: Path) -> None:
    (tmp_path / "daemon.log").write_text("mine")

    with pytest.raises(ConfigError, match=r"no run has listed, got 'daemon.log' in .*; move"):
        begin(tmp_path)

    assert (tmp_path / "daemon.log").read_text() == "mine"


def test_an_empty_log_of_an_earlier_run_is_taken_over(tmp_path: Path) -> None:
    (tmp_path / "daemon.log").touch()
    begin(tmp_path)
    assert "daemon.log" in listed(tmp_path)


def test_a_folder_that_is_no_runs_gets_no_list(tmp_path: Path) -> None:
    spec = resolve({"topo": TOPO, "algo": "ring", "net": "mininet", "out": str(tmp_path)}).spec
    list_logs(spec, build(TOPO))
    assert not list(tmp_path.iterdir())
