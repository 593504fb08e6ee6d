"""`ringleaf plot`: draw figures and report of a run again from its files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ringleaf.experiments.figures.sheet import in_column
from ringleaf.experiments.records.folder import REPORT, check_written, claim
from ringleaf.experiments.records.lock import Lock
from ringleaf.experiments.runs.console import Debug, guard, say
from ringleaf.plausible import parse_column


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("plot")(guard(plot_command))


def plot_command(
    folder: Annotated[Path, typer.Argument(help="Run directory.")],
    column: Annotated[
        str | None,
        typer.Option("--column", help="Width of figures, for a column of a paper: 3.3in, 84mm."),
    ] = None,
    debug: Debug = False,
) -> None:
    """Draw figures and report of a run or a sweep again, from its files."""
    inches = None if column is None else parse_column(column)
    check_written(folder)
    with Lock(folder, say):
        claim(folder, [REPORT])
        from ringleaf.experiments.runs.drawing import redraw

        with in_column(inches):
            redraw(folder)
    say(f"# report: {folder / REPORT}")
