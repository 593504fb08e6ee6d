"""SimGrid, by its Python module: a cluster around one switch, flows and no packets."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from bench.peers import simgrid_ring
from bench.peers.peer import RingCase, read_time_us

_SYSTEM = "/usr/bin/python3"  # for which Debian has the module
_PATIENCE_S = 60


@dataclass(frozen=True, slots=True)
class SimGrid:
    """`simgrid_ring.py`, run by the first interpreter that has the module."""

    name: str = "simgrid"
    carries: str = "flows that share links fairly (CM02, no crosstraffic), no packets; sizes only"

    def missing(self) -> str:
        """Return how to install it, or ""."""
        return "" if interpreter() else "apt install python3-simgrid, or pip install simgrid"

    def prepare(self, home: Path) -> None:
        """Copy the script to a folder where no module of ours can be taken for one of others."""
        shutil.copy(simgrid_ring.__file__, home)

    def command(self, case: RingCase, home: Path) -> list[str]:
        """Return the command."""
        numbers = (case.ranks, case.size_bytes, case.rate_bps, case.delay_ns)
        script = home / Path(simgrid_ring.__file__).name
        return [interpreter() or _SYSTEM, str(script), *map(str, numbers)]

    def time_us(self, case: RingCase, run: Path) -> float:
        """Return the time that the script has printed; raises a BackendError if it has not."""
        return read_time_us(self.name, run)


@cache
def interpreter() -> str | None:
    """Return the Python that can import simgrid: this one or the system's."""
    return next((each for each in (sys.executable, _SYSTEM) if _can_import(each)), None)


def _can_import(interpreter: str) -> bool:
    try:
        done = subprocess.run(
            [interpreter, "-c", "import simgrid"],
            cwd="/",  # whose modules are looked for first
            capture_output=True,
            timeout=_PATIENCE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
