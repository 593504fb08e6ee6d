"""The case that every simulator runs beside Ringleaf, and the form of one that can run it."""

from __future__ import annotations

import json
import math
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ringleaf.core.units import PS_PER_S, PS_PER_US
from ringleaf.errors import BackendError

STDOUT, STDERR = "stdout", "stderr"  # files in a run's folder
_LONGEST_OUTPUT = 1 << 24  # bytes of an output that are read, its end


@dataclass(frozen=True, slots=True)
class RingCase:
    """A ring allreduce among the hosts of a star: one switch, a link to each host."""

    ranks: int
    size_bytes: int  # of each rank's tensor; divisible by `ranks`
    rate_bps: int = 100_000_000_000  # of each link, each way
    delay_ns: int = 1_000  # of each link
    mtu_bytes: int = 4_096  # payload of a packet, where there are packets

    def __post_init__(self) -> None:
        assert self.ranks > 1
        assert self.size_bytes % self.ranks == 0

    @property
    def steps(self) -> int:
        """Steps of the ring; in each, every rank sends a part to the next one."""
        return 2 * (self.ranks - 1)

    @property
    def part_bytes(self) -> int:
        """Bytes that a rank sends in a step."""
        return self.size_bytes // self.ranks

    @property
    def alpha_beta_us(self) -> float:
        """The time by 2(n-1)(alpha + S/(nB)), alpha two links' delay: no headers, no queues."""
        part_us = self.part_bytes * 8 / self.rate_bps * (PS_PER_S / PS_PER_US)
        return self.steps * (2 * self.delay_ns / 1_000 + part_us)


class Peer(Protocol):
    """A simulator that runs the case in a process of its own.

    `home` is a folder of the peer's own for the whole comparison. Each run starts in another,
    empty one, where its outputs are files called `STDOUT` and `STDERR`.
    """

    @property
    def name(self) -> str:
        """The name of its row, one word."""

    @property
    def carries(self) -> str:
        """What it models, and what its packets or flows carry."""

    def missing(self) -> str:
        """Return how to install it, or "" if it is on this machine."""

    def prepare(self, home: Path) -> None:
        """Make what its runs need; no time of it is counted.

        Raises:
            BackendError: If that fails.
        """

    def command(self, case: RingCase, home: Path) -> list[str]:
        """Return the command that runs the case, whose whole process is measured."""

    def time_us(self, case: RingCase, run: Path) -> float:
        """Return the simulated time from what a run has left in its folder, in us.

        Raises:
            BackendError: If it is not there.
        """


def read_time_us(name: str, run: Path) -> float:
    """Return `time_us` from a run's last line, a JSON object; for programs of ours.

    Raises:
        BackendError: If there is no such line, or the time is no positive number.
    """
    lines = read_end(run / STDOUT).splitlines()
    try:
        time_us = json.loads(lines[-1])["time_us"]
    except (LookupError, TypeError, ValueError, RecursionError):
        time_us = None
    return positive(name, time_us)


def positive(name: str, time_us: object) -> float:
    """Return a simulated time, a number or the text of one.

    Raises:
        BackendError: If it is not a finite number above 0.
    """
    found = math.nan
    if isinstance(time_us, int | float | str) and not isinstance(time_us, bool):
        with suppress(OverflowError, ValueError):
            found = float(time_us)
    if not math.isfinite(found) or found <= 0:
        raise BackendError(f"{name}: must leave a simulated time above 0, got {time_us!r:.100}")
    return found


def read_end(path: Path) -> str:
    """Return a file as text, at most its last 16 MiB; "" if there is none."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _LONGEST_OUTPUT))
            return file.read().decode(errors="replace")
    except OSError:
        return ""
