"""Measure the time that commands take to refuse a wrong value, from start to exit."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from ringleaf.errors import BackendError

REPEATS = 5
WRONG = (
    "run --topo nosuch",
    "run --topo fattree,k=3",
    "run --algo rign",
    "run --size 4Mb",
    "run --size 64GiB",
    "run --servers 15",
    "run --cc nosuch",
    "run --ecn 5:2",
    "run --discipline nosuch",
    "run --compress topk",
    "run --detours h0-s99-h1",
    "run --out /dev/null",
    "run --spec nosuch.yaml",
    "run --switch bmv2",
    "step rign",
    "step ring --ranks 0",
    "topo show nosuch",
    "trace nosuch",
    "trace forward --packet zz",
    "replay nosuch",
    "plot nosuch",
    "workload show nosuch",
    "verify rign",
    "fuzz nosuch",
    "stf nosuch.json nosuch.stf",
    "net nosuch",
    "soak --runs x",
    "bench nosuch",
    "switch nosuch",
    "run --nosuch",
    "nosuch",
)
"""Commands without `ringleaf`, each with one value that is wrong."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """The refusal of one command: its times and its message."""

    command: str
    median_s: float
    longest_s: float
    said: str  # its last line on stderr


def measure(command: str, folder: Path, repeats: int = REPEATS) -> Refusal:
    """Time a command that is refused, in a process of its own each time.

    Raises:
        BackendError: If it is not refused by exit status 2, as all wrong usage is.
    """
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-P", "-m", "ringleaf", *command.split()],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        times.append(time.perf_counter() - began)
        if done.returncode != 2:
            raise BackendError(
                f"bench: {command!r} must be refused, got exit code {done.returncode}; "
                f"the end of its stderr:\n{done.stderr[-2000:]}"
            )
    said = done.stderr.strip().splitlines()[-1]
    return Refusal(command, median(times), max(times), said)


def run(emit: Callable[[str], None]) -> dict[str, Any]:
    """Time all of `WRONG`, and print a row for each."""
    emit(f"#\n# refusals of wrong values: whole commands, {REPEATS} times each")
    emit(f"{'median (s)':>10} {'longest (s)':>11}  command")
    figures = {}
    with tempfile.TemporaryDirectory() as folder:
        for command in WRONG:
            refusal = measure(command, Path(folder))
            emit(f"{refusal.median_s:>10.2f} {refusal.longest_s:>11.2f}  ringleaf {command}")
            figures[command] = asdict(refusal)
    slowest = max(refusal["median_s"] for refusal in figures.values())
    emit(f"# slowest: {slowest:.2f} s")
    return figures
