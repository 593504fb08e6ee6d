"""ns-3: a small program of ours, compiled when it is needed; TCP over a star, packet by packet."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from bench.peers.peer import RingCase, read_time_us
from ringleaf.errors import BackendError

SOURCE = Path(__file__).with_name("ns3_ring.cc")
_PACKAGES = ("ns3-internet", "ns3-point-to-point", "ns3-network", "ns3-core")
_OURS = ("-I", "-L", "-lns3")  # ns-3's own libraries need others', but the program does not
_PATIENCE_S = 300


@dataclass(frozen=True, slots=True)
class Ns3:
    """`ns3_ring.cc`, compiled by g++ against the libraries that pkg-config finds."""

    name: str = "ns-3"
    carries: str = "packets by TCP through an IP router; sizes only"

    def missing(self) -> str:
        """Return how to install it, or ""."""
        if all(map(shutil.which, ("g++", "pkg-config"))) and _flags():
            return ""
        return "apt install libns3-dev g++ pkg-config"

    def prepare(self, home: Path) -> None:
        """Compile the program.

        Raises:
            BackendError: If that fails.
        """
        command = ["g++", "-std=c++17", "-O2", "-o", str(home / SOURCE.stem), str(SOURCE)]
        try:
            done = subprocess.run(
                [*command, *_flags()],
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_PATIENCE_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise BackendError(f"ns-3: g++ must compile the program, got {error}") from error
        if done.returncode:
            first = next(iter(done.stderr.strip().splitlines()), "")
            raise BackendError(f"ns-3: g++ must compile the program, got {first}")

    def command(self, case: RingCase, home: Path) -> list[str]:
        """Return the command."""
        numbers = (case.ranks, case.size_bytes, case.rate_bps, case.delay_ns, case.mtu_bytes)
        return [str(home / SOURCE.stem), *map(str, numbers)]

    def time_us(self, case: RingCase, run: Path) -> float:
        """Return the time that the program has printed; raises a BackendError if it has not."""
        return read_time_us(self.name, run)


def _flags() -> list[str]:
    """Return the compiler's options for ns-3; none if it is not installed."""
    try:
        done = subprocess.run(
            ["pkg-config", "--cflags", "--libs", *_PACKAGES],
            capture_output=True,
            text=True,
            timeout=_PATIENCE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [] if done.returncode else [w for w in done.stdout.split() if w.startswith(_OURS)]
