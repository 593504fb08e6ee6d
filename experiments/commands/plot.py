"""`ringleaf plot`: draw figures and report of a run again from its files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ringleaf.experiments.console import Debug, guard, say
from ringleaf.experiments.folder import check_written


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("plot")(guard(plot_command))


def plot_command(
    folder: Annotated[Path, typer.Argument(help="Run directory.")], debug: Debug = False
) -> None:
    """Draw figures and report of a run again, from its files."""
    check_written(folder)
    from ringleaf.experiments import results

    if results.read_json(folder / "summary.json").get("kind") == "jobs":
        from ringleaf.experiments.jobs import session as jobs

        say(f"# report: {jobs.redraw(folder)}")
        return
    from ringleaf.experiments import session

    say(f"# report: {session.redraw(folder)}")
