"""Marks: whether a case's outcome is what it demands, as a table and as JUnit XML."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ringleaf.core import junit
from ringleaf.core.units import PS_PER_US, format_count, format_time
from ringleaf.experiments.grade.assignment import AssignedCase, StudentAssignment
from ringleaf.experiments.grade.trial import CaseOutcome

PASSED = "passed"


@dataclass(frozen=True, slots=True)
class CaseMark:
    """A case's mark.

    Attributes:
        case: The case.
        verdict: PASSED, or what is wrong, without figures.
        detail: What is wrong, with figures, which tell something of the case.
        seconds: What it took by the clock.
        is_error: Whether it did not run at all.
    """

    case: AssignedCase
    verdict: str
    detail: str = ""
    seconds: float = 0.0
    is_error: bool = False

    @property
    def points(self) -> float:
        """The points that it gives: all, or none."""
        return self.case.points if self.verdict == PASSED else 0.0


def mark(case: AssignedCase, outcome: CaseOutcome, steps: int | None, fault: str = "") -> CaseMark:
    """Return a case's mark.

    Args:
        case: The case.
        outcome: What it has come to.
        steps: A schedule's steps.
        fault: Why it did not run, as far as that is the file's own fault, so students see it.
    """
    if outcome.timed_out:
        detail = f"ended after {outcome.seconds:.1f} s"
        return CaseMark(case, "took too long to run", detail, outcome.seconds, is_error=True)
    if outcome.problem:
        verdict = f"did not run: {fault}" if fault else "did not run"
        return CaseMark(case, verdict, outcome.problem, outcome.seconds, is_error=True)
    wrong = list(_complaints(case, outcome, steps))
    if not wrong:
        return CaseMark(case, PASSED, f"time {_us(outcome.time_ps)}", outcome.seconds)
    verdicts, details = zip(*wrong, strict=True)
    return CaseMark(case, "; ".join(verdicts), "; ".join(details), outcome.seconds)


def _complaints(
    case: AssignedCase, outcome: CaseOutcome, steps: int | None
) -> Iterator[tuple[str, str]]:
    """Yield what is wrong: without figures, and with them."""
    limits, collective = case.limits, case.collective.value
    if outcome.collective != collective:
        yield "another collective", f"must be {collective}, got {outcome.collective}"
    if outcome.wrong:
        yield "wrong results", f"{outcome.wrong} wrong elements: {outcome.reason}"
    if limits.time_ps is not None and outcome.time_ps > limits.time_ps:
        yield "too slow", f"at most {_us(limits.time_ps)}, got {_us(outcome.time_ps)}"
    if limits.steps is not None and steps is not None and steps > limits.steps:
        yield "too many steps", f"at most {format_count(limits.steps, 'step')}, got {steps}"
    if limits.wire_bytes is not None and outcome.wire_bytes > limits.wire_bytes:
        got = f"{outcome.wire_bytes:,}"
        yield (
            "too many bytes",
            f"at most {format_count(limits.wire_bytes, 'byte', ',')} by a rank, got {got}",
        )


def _us(time_ps: int) -> str:
    return f"{time_ps / PS_PER_US:.2f} us" if time_ps else format_time(0)


def unrun(assignment: StudentAssignment, problem: str) -> list[CaseMark]:
    """Return the marks of a file that can't be run at all.

    The problem is one of the file, and tells nothing of the cases, so students see it.
    """
    verdict = f"did not run: {problem}"
    return [CaseMark(case, verdict, problem, is_error=True) for case in assignment.cases]


def table(
    assignment: StudentAssignment, marks: Sequence[CaseMark], *, reveal: bool
) -> Iterator[str]:
    """Yield the lines of the table; with `reveal`, options and figures of cases, too."""
    width = max(len(each.case.name) for each in marks)
    yield f"# {assignment.title}"
    for each in marks:
        points = f"{each.points:g}/{each.case.points:g}"
        yield f"{each.case.name:<{width}}  {points:>7}  {each.verdict}"
        if reveal:
            options = " ".join(f"{name}={value}" for name, value in each.case.options.items())
            yield f"#   {options}"
            if each.detail:
                yield f"#   {each.detail}"
    yield (
        f"# {sum(each.points for each in marks):g} of "
        f"{format_count(assignment.points, 'point', 'g')}"
    )


def write_junit(
    path: Path, assignment: StudentAssignment, marks: Sequence[CaseMark], *, reveal: bool
) -> None:
    """Write the marks as JUnit XML, each case a test."""
    cases = [
        junit.JUnitCase(each.case.name, _trouble(each, reveal=reveal), each.seconds)
        for each in marks
    ]
    seconds = sum(each.seconds for each in marks)
    suite = junit.Suite(assignment.title, assignment.title, cases, seconds)
    junit.write_junit(path, "ringleaf grade", [suite])


def _trouble(each: CaseMark, *, reveal: bool) -> junit.Trouble | None:
    if each.verdict == PASSED:
        return None
    text = each.detail if reveal else ""
    return junit.Trouble("error" if each.is_error else "failure", each.verdict, text=text)
