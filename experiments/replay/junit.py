"""Results as JUnit XML, which CI systems show: a suite per trace, a case per port."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from ringleaf.experiments.replay.show import as_text, describe
from ringleaf.networks.replay.compare import PortResult
from ringleaf.xml_text import clean


@dataclass(frozen=True, slots=True)
class TraceResult:
    """What became of one trace."""

    name: str
    seconds: float
    ports: Sequence[PortResult] = ()
    error: str | None = None  # why it could not be replayed

    @property
    def equal(self) -> bool:
        return self.error is None and all(port.equal for port in self.ports)


def write_junit(path: Path, results: Sequence[TraceResult]) -> None:
    """Write the results; what could not be replayed is one case with an error."""
    root = ElementTree.Element("testsuites", name="ringleaf replay")
    for result in results:
        failed = sum(not port.equal for port in result.ports)
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            name=clean(result.name),
            tests=str(len(result.ports) or 1),
            failures=str(failed),
            errors=str(int(result.error is not None)),
            skipped="0",
            time=f"{result.seconds:.3f}",
        )
        if result.error is not None:
            case = _case(suite, result.name, "trace")
            ElementTree.SubElement(case, "error", message=clean(result.error))
        for port in result.ports:
            _add_port(suite, result.name, port)
    ElementTree.indent(root)
    path.parent.mkdir(parents=True, exist_ok=True)
    ElementTree.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def _case(suite: ElementTree.Element, trace: str, name: str) -> ElementTree.Element:
    return ElementTree.SubElement(suite, "testcase", classname=clean(trace), name=name, time="0")


def _add_port(suite: ElementTree.Element, trace: str, port: PortResult) -> None:
    case = _case(suite, trace, f"port {port.port}")
    if port.first is not None:
        message = clean(describe(port))
        failure = ElementTree.SubElement(
            case, "failure", type=port.first.kind.name, message=message
        )
        failure.text = clean(as_text(port.first))
