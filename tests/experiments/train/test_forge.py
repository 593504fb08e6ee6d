"""Ranks are forked by one process, and end as if each had been started by itself."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from commanding import SCRIPTS, train, train_alone

WAYS_OUT = SCRIPTS / "ways_out.py"


def test_ranks_draw_other_numbers_and_wait_for_their_threads(tmp_path: Path) -> None:
    done = train_alone(tmp_path, WAYS_OUT, "thread", str(tmp_path), ranks=3)

    assert done.returncode == 0, done.stderr
    drawn = [(tmp_path / f"{rank}.txt").read_text().split() for rank in range(3)]
    assert len({number for row in drawn for number in row}) == 6
    assert done.stdout.count("thread went through") == 3
    assert {f"rank {rank} left" for rank in range(3)} <= set(done.stdout.splitlines())


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("message", "rank 1: must not fail, got exit status 1"),
        ("status", "rank 1: must not fail, got exit status 7"),
    ],
)
def test_their_exit_status_is_that_of_the_script(how: str, message: str, tmp_path: Path) -> None:
    done = train(tmp_path, WAYS_OUT, how, str(tmp_path), ranks=2)

    assert done.returncode == 1
    assert message in done.stderr
    assert ("for a reason" in done.stderr) is (how == "message")


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_each_line_of_a_rank_is_written_at_once(unbuffered: str) -> None:
    """Linux keeps writes to this pipe apart; Python would cut lines by words, or each 8 KiB."""
    reader, writer = os.pipe2(os.O_DIRECT)
    script = [
        "from ringleaf.experiments.workloads.train import launch",
        "launch.write_whole_lines()",
        "for line in range(300):",
        "    print(line, 'of a rank', flush=not line % 7)",
    ]
    process = subprocess.Popen(
        [sys.executable, "-c", "\n".join(script)],
        env=os.environ | {"PYTHONUNBUFFERED": unbuffered},
        stdout=writer,
    )
    os.close(writer)
    writes = []
    while piece := os.read(reader, 65536):
        writes.append(piece.decode())
    os.close(reader)

    assert process.wait() == 0
    assert writes == [f"{line} of a rank\n" for line in range(300)]
