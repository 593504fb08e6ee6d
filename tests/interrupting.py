"""Interrupt a command at many moments: `python tests/interrupting.py --runs 60 run --algo ring`.

Each time it must end with one line on stderr, and a signal's exit status; or it was done already.
No process of its session, and no folder in /dev/shm, may be left.
The first moments, in which Python itself starts, are not ours.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from notices import without_notice

from ringleaf.experiments.workloads.train.folder import find_stale

LINE = re.compile(r"ringleaf: (interrupted|ended by SIGTERM); .+\n")
STARTED = """
import sys
import ringleaf.__main__ as command
command.interrupts.exit_at_once()
sys.stdout.write("started\\n")
sys.stdout.flush()
command.command()
"""
COMMAND = (sys.executable, "-c", STARTED)
"""The command, which says when our first line of code has run; before it, Python starts."""


@dataclass(frozen=True)
class Ending:
    """How a command has ended.

    Args:
        status: Its exit status.
        said: What it wrote to stderr.
        took_s: The time that it took from its first line on.
        ended_s: The time from the signal to its end; 0: there was none.
        left: What it has left: processes of its session, and names in /dev/shm.
    """

    status: int
    said: str
    took_s: float
    ended_s: float = 0.0
    left: tuple[str, ...] = ()

    def is_right(self, number: int) -> bool:
        """Return whether it has ended as a signal wants it, or had been done before."""
        if self.left:
            return False
        if self.status == 128 + number:
            return LINE.fullmatch(self.said) is not None or not self.said
        return self.status == 0 and not self.said


def heed_interrupts() -> None:
    """Undo what a shell does to processes in the background, as a CI job may be one."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def end_at(
    words: Sequence[str], moment_s: float | None, number: int = signal.SIGINT, folder: str = "."
) -> Ending:
    """Run a command and send its process group a signal after a time; None: never."""
    before, sent_s = _shared(), None
    with subprocess.Popen(
        [*COMMAND, *words],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heed_interrupts,
        start_new_session=True,
    ) as running:
        assert running.stdout is not None
        running.stdout.readline()
        began_s = time.monotonic()
        try:
            _, said = running.communicate(timeout=moment_s)
        except subprocess.TimeoutExpired:
            sent_s = time.monotonic()
            os.killpg(running.pid, number)
            _, said = running.communicate()
    now_s = time.monotonic()
    left = (*_processes(running.pid), *sorted(_shared() - before))
    said = without_notice(said)
    return Ending(
        running.returncode, said, now_s - began_s, 0.0 if sent_s is None else now_s - sent_s, left
    )


def _shared() -> set[str]:
    """Return the folders in /dev/shm that no run holds any more."""
    return {str(path) for path in find_stale()}


def _processes(session: int) -> list[str]:
    """Return the processes of a session that are there, and no zombies."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            state, _, _, of = (place / "stat").read_text().rpartition(")")[2].split()[:4]
            if int(of) == session and state != "Z":
                found.append(f"process {place.name} {(place / 'comm').read_text().strip()}")
    return found


def main() -> int:
    """Do it, and print what went wrong; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--within", type=float, help="seconds; default: until the command ends")
    parser.add_argument("--signal", default="SIGINT")
    parser.add_argument("words", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    number, rng, wrong = signal.Signals[given.signal], random.Random(given.seed), 0
    longest_s = 0.0
    with tempfile.TemporaryDirectory() as folder:
        within_s = given.within or 1.05 * end_at(given.words, None, folder=folder).took_s
        for _ in range(given.runs):
            moment_s = rng.uniform(0, within_s)
            ending = end_at(given.words, moment_s, number, folder)
            if not ending.is_right(number):
                wrong += 1
                left = "".join(f"left: {each}\n" for each in ending.left)
                sys.stdout.write(f"at {moment_s:.3f} s: {ending.status}\n{ending.said}{left}\n")
            longest_s = max(longest_s, ending.ended_s)
    sys.stdout.write(f"{wrong} of {given.runs} within {within_s:.1f} s were wrong; ")
    sys.stdout.write(f"the longest end took {longest_s:.1f} s\n")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
