"""Ringleaf itself, as its command runs it: with figures and a report, with data or without."""

from __future__ import annotations

import csv
import sys
from dataclasses import dataclass
from pathlib import Path

from bench.peers.peer import RingCase, positive
from ringleaf.core.units import PS_PER_US
from ringleaf.errors import BackendError

_OUT = "out"  # in the run's folder


@dataclass(frozen=True, slots=True)
class Ringleaf:
    """`ringleaf run`; `data` and `net` are its options of those names."""

    data: str
    net: str
    name: str
    carries: str

    def missing(self) -> str:
        """Return "": it is here."""
        return ""

    def prepare(self, home: Path) -> None:
        """Do nothing: a first run, which is not counted, compiles what is not compiled yet."""

    def command(self, case: RingCase, home: Path) -> list[str]:
        """Return the command."""
        options = {
            "topo": f"leafspine,leaves=1,spines=1,hosts={case.ranks}",
            "algo": "ring",
            "size": str(case.size_bytes),
            "rate": str(case.rate_bps),
            "delay": f"{case.delay_ns}ns",
            "mtu": str(case.mtu_bytes),
            "data": self.data,
            "net": self.net,
            "out": _OUT,
        }
        words = [word for name, value in options.items() for word in (f"--{name}", value)]
        return [sys.executable, "-P", "-m", "ringleaf", "run", *words]

    def time_us(self, case: RingCase, run: Path) -> float:
        """Return the time in `results.csv`.

        Raises:
            BackendError: If it is not there.
        """
        try:
            with (run / _OUT / "results.csv").open(newline="") as file:
                (row,) = csv.DictReader(file)
            time_us = int(row["time_ps"]) / PS_PER_US
        except (OSError, LookupError, ValueError) as error:
            raise BackendError(f"{self.name}: must leave results.csv, got {error!r}") from error
        return positive(self.name, time_us)


WITH_DATA = Ringleaf(
    "random",
    "virtual",
    "ringleaf",
    "packets through a switch's P4 program; float32 values, added up and checked",
)
WITHOUT_DATA = Ringleaf(
    "none",
    "virtual",
    "ringleaf_data=none",
    "the same packets; sizes only",
)
FLOWS = Ringleaf(
    "none",
    "flow",
    "ringleaf_net=flow",
    "messages that share links by max-min fair rates; sizes only",
)
