"""`ringleaf grade`: a student's schedule or P4 program, by the cases of an assignment."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from ringleaf.errors import RingleafError
from ringleaf.experiments.console import FAILURE, Debug, guard, say


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

    The exit code is 0 if all cases pass, 1 if some don't, 2 if a file is broken.
    """
    from ringleaf.experiments.grade import marks
    from ringleaf.experiments.grade.assignment import read_assignment
    from ringleaf.experiments.grade.submission import take_in

    wanted = read_assignment(assignment)
    with tempfile.TemporaryDirectory(prefix="ringleaf-grade-") as place:
        try:
            taken = take_in(file, wanted.kind, Path(place))
        except RingleafError as error:
            if junit is not None:
                found = marks.unrun(wanted, str(error))
                marks.write_junit(junit, wanted, found, reveal=reveal)
            raise
        for case in wanted.cases:
            case.spec(taken.options, f"assignment {assignment}")
        from ringleaf.experiments.grade.trial import attempt

        found = [
            marks.mark(
                case, attempt({**case.options, **taken.options}, wanted.seconds), taken.steps
            )
            for case in wanted.cases
        ]
    for line in marks.table(wanted, found, reveal=reveal):
        say(line)
    if junit is not None:
        marks.write_junit(junit, wanted, found, reveal=reveal)
        say(f"# written: {junit}")
    if any(each.verdict != marks.PASSED for each in found):
        raise typer.Exit(FAILURE)
