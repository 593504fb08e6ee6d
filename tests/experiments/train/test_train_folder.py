"""Folders of fabrics: those of killed runs are removed, those of running ones stay."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ringleaf.experiments.workloads.train import folder as folders

HOLD = """
import sys, time
from pathlib import Path
from ringleaf.experiments.workloads.train import folder
folder.MEMORY = Path(sys.argv[1])
with folder.fabric_folder() as made:
    (made / "socket").touch()
    print(made, flush=True)
    time.sleep(600)
"""


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(folders, "MEMORY", tmp_path)
    return tmp_path


def test_a_killed_run_s_folder_is_removed_by_the_next(memory: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(memory)], stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        left = Path(running.stdout.readline().strip())
        assert folders.clean_stale() == []  # it is running
        with folders.fabric_folder() as mine:
            assert {left, mine} == set(memory.iterdir())
        running.send_signal(signal.SIGKILL)
    assert left.is_dir()
    with folders.fabric_folder() as mine:
        assert list(memory.iterdir()) == [mine]
    assert list(memory.iterdir()) == []


def test_a_borrowed_folder_is_held_by_both(memory: Path) -> None:
    made, held = folders.make_held()
    with folders.borrowed(made):
        os.close(held)
        assert folders.clean_stale() == []
    assert not made.exists()


def test_folders_of_others_stay(memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, held = folders.make_held()
    os.close(held)
    (memory / "ringleaf-other").mkdir()
    (memory / f"{folders.PREFIX}link").symlink_to(memory / "ringleaf-other")
    own = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: own + 1)
    assert folders.clean_stale() == []
    monkeypatch.setattr(os, "geteuid", lambda: own)
    assert folders.clean_stale() == [made]
    assert (memory / "ringleaf-other").is_dir()
