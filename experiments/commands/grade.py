"""`ringleaf grade`: a student's schedule or P4 program, by the cases of an assignment."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ringleaf.errors import ConfigError, ScheduleError
from ringleaf.experiments.runs.console import FAILURE, Debug, guard, say

if TYPE_CHECKING:
    from ringleaf.experiments.grade.assignment import StudentAssignment
    from ringleaf.experiments.grade.marks import CaseMark


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("grade")(guard(grade_command))


def grade_command(
    assignment: Annotated[Path, typer.Argument(help="Instructor's YAML file with cases.")],
    file: Annotated[
        Path, typer.Argument(help="Student's file: schedule (.csv, .xml), BMv2 JSON or P4.")
    ],
    junit: Annotated[Path | None, typer.Option("--junit", help="File for JUnit XML.")] = None,
    reveal: Annotated[
        bool, typer.Option("--reveal", help="Show cases' options and limits, for instructors.")
    ] = False,
    debug: Debug = False,
) -> None:
    """Run a student's file through the cases of an assignment, and print points.

    The exit code is 0 if all cases pass, 1 if some don't or the student's file is broken, and 2
    if the assignment is.
    """
    from ringleaf.experiments.grade import marks
    from ringleaf.experiments.grade.assignment import read_assignment

    parsed = read_assignment(assignment)
    parsed.check(f"assignment {assignment}")
    case_marks = _marks(parsed, file)
    for line in marks.table(parsed, case_marks, reveal=reveal):
        say(line)
    if junit is not None:
        marks.write_junit(junit, parsed, case_marks, reveal=reveal)
        say(f"# written: {junit}")
    if any(each.verdict != marks.PASSED for each in case_marks):
        raise typer.Exit(FAILURE)


def _marks(assignment: StudentAssignment, file: Path) -> list[CaseMark]:
    """Run the cases; a student's file that can't be run at all has no points in any of them."""
    from ringleaf.experiments.grade import marks
    from ringleaf.experiments.grade.submission import take_in
    from ringleaf.experiments.grade.trial import attempt

    with tempfile.TemporaryDirectory(prefix="ringleaf-grade-") as place:
        try:
            taken = take_in(file, assignment.kind, Path(place))
        except (ConfigError, ScheduleError) as error:
            return marks.unrun(assignment, str(error))
        outcomes = (
            attempt({**case.options, **taken.options}, assignment.seconds)
            for case in assignment.cases
        )
        return [
            marks.mark(case, outcome, taken.steps, taken.fault(outcome.problem))
            for case, outcome in zip(assignment.cases, outcomes, strict=True)
        ]
