"""`ringleaf plot`: draw figures and report of a run again from its files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ringleaf.experiments.console import Debug, guard, say
from ringleaf.experiments.folder import REPORT, check_written, claim
from ringleaf.experiments.lock import Lock


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("plot")(guard(plot_command))


def plot_command(
    folder: Annotated[Path, typer.Argument(help="Run directory.")], debug: Debug = False
) -> None:
    """Draw figures and report of a run or a sweep again, from its files."""
    check_written(folder)
    with Lock(folder, say):
        claim(folder, [REPORT])
        from ringleaf.experiments.drawing import redraw

        redraw(folder)
    say(f"# report: {folder / REPORT}")
