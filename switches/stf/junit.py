"""Outcomes of STF tests as JUnit XML."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ringleaf.core import junit
from ringleaf.switches.stf.outcome import StfOutcome, StfVerdict


def write_junit(path: Path, outcomes: Sequence[StfOutcome]) -> None:
    """Write one test case per outcome; a refused program is a failure, too."""
    cases = [junit.JUnitCase(each.name, _trouble(each), each.seconds) for each in outcomes]
    seconds = sum(outcome.seconds for outcome in outcomes)
    junit.write_junit(path, "ringleaf stf", [junit.Suite("stf", "stf", cases, seconds)])


def _trouble(outcome: StfOutcome) -> junit.Trouble | None:
    if outcome.verdict is StfVerdict.PASSED:
        return None
    return junit.Trouble(
        "skipped" if outcome.verdict is StfVerdict.SKIPPED else "failure",
        outcome.reason,
        outcome.verdict.value,
        "\n".join(outcome.detail),
    )
