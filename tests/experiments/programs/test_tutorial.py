"""A folder of P4's tutorials: its topology, program and tables run as they are."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from running import run

from ringleaf.errors import BackendError

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "examples" / "p4" / "triangle"
PROGRAM = ROOT / "examples" / "p4" / "build" / "basic.json"


def options(folder: Path, topology: Path) -> dict[str, object]:
    return {
        **{"topo": str(topology), "program": str(PROGRAM), "control": str(folder)},
        **{"algo": "ring", "size": "4K", "figures": "no", "out": str(folder / "out")},
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(FOLDER, tmp_path / "triangle"))


def test_an_exercise_runs_as_it_is(folder: Path) -> None:
    (row,) = run(options(folder, folder / "topology.json")).rows
    assert row.wrong == 0


def test_other_addresses_lead_nowhere(folder: Path) -> None:
    """So the run above says that they are the file's; with other ports packets go round for long.

    Those are in tests/topologies/test_file_numbering.py.
    """
    text = (folder / "topology.json").read_text()
    other = folder / "other-topology.json"
    other.write_text(text.replace("10.0.3.3/24", "10.0.4.4/24"))
    with pytest.raises(BackendError, match="nothing has got through"):
        run(options(folder, other))
