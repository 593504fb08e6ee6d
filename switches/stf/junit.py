"""Outcomes as JUnit XML, which CI systems show."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

from ringleaf.switches.stf.outcome import Outcome, Verdict
from ringleaf.xml_text import clean


def write_junit(path: Path, outcomes: Sequence[Outcome]) -> None:
    """Write one test case per outcome; what was refused is a failure, too."""
    counts = dict.fromkeys(Verdict, 0)
    for outcome in outcomes:
        counts[outcome.verdict] += 1
    suite = ElementTree.Element(
        "testsuite",
        name="stf",
        tests=str(len(outcomes)),
        failures=str(counts[Verdict.FAILED] + counts[Verdict.REFUSED]),
        errors="0",
        skipped=str(counts[Verdict.SKIPPED]),
        time=f"{sum(outcome.seconds for outcome in outcomes):.3f}",
    )
    for outcome in outcomes:
        name = clean(outcome.name)
        case = ElementTree.SubElement(
            suite,
            "testcase",
            classname="stf",
            name=name,
            time=f"{outcome.seconds:.3f}",
        )
        if outcome.verdict is not Verdict.PASSED:
            kind = "skipped" if outcome.verdict is Verdict.SKIPPED else "failure"
            shown = ElementTree.SubElement(
                case, kind, type=outcome.verdict.value, message=clean(outcome.reason)
            )
            shown.text = clean("\n".join(outcome.detail))
    ElementTree.indent(suite)
    path.parent.mkdir(parents=True, exist_ok=True)
    ElementTree.ElementTree(suite).write(path, encoding="utf-8", xml_declaration=True)
