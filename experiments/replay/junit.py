"""Results of replays as JUnit XML: a suite per trace, a case per port."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ringleaf.core import junit
from ringleaf.experiments.replay.show import as_text, describe
from ringleaf.networks.replay.compare import PortResult


@dataclass(frozen=True, slots=True)
class TraceResult:
    """The result of one trace."""

    name: str
    seconds: float
    ports: Sequence[PortResult] = ()
    error: str | None = None  # why it could not be replayed

    @property
    def equal(self) -> bool:
        """Return whether the trace could be replayed, and no port differs."""
        return self.error is None and all(port.equal for port in self.ports)


def write_junit(path: Path, results: Sequence[TraceResult]) -> None:
    """Write the results; a trace that could not be replayed is one case with an error."""
    suites = [junit.Suite(each.name, each.name, _cases(each), each.seconds) for each in results]
    junit.write_junit(path, "ringleaf replay", suites)


def _cases(result: TraceResult) -> list[junit.JUnitCase]:
    if result.error is not None:
        return [junit.JUnitCase("trace", junit.Trouble("error", result.error))]
    return [junit.JUnitCase(f"port {port.port}", _trouble(port)) for port in result.ports]


def _trouble(port: PortResult) -> junit.Trouble | None:
    if port.first is None:
        return None
    return junit.Trouble("failure", describe(port), port.first.kind.name, as_text(port.first))
