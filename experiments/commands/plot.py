"""`ringleaf plot`: draw figures and report of a run again from its files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from ringleaf.experiments.figures.sheet import in_column
from ringleaf.experiments.records.folder import REPORT, check_written, claim, folder_of
from ringleaf.experiments.records.lock import Lock
from ringleaf.experiments.runs.console import Debug, guard, say
from ringleaf.experiments.spec.network import NetworkSpec
from ringleaf.experiments.spec.options import options_of
from ringleaf.experiments.spec.typed import with_options


def register(app: typer.Typer) -> None:
    """Add the command."""
    options = {"column": options_of(NetworkSpec)["column"]}
    app.command("plot")(guard(with_options(plot_command, options)))


def plot_command(
    typed: Mapping[str, str],
    folder: Annotated[Path, typer.Argument(help="Folder of a run or a sweep.")],
    debug: Debug = False,
) -> None:
    """Draw figures and report of a run or a sweep again, from its files."""
    inches = NetworkSpec.read(typed).column
    folder = folder_of(folder)
    check_written(folder)
    with Lock(folder, say):
        claim(folder, [REPORT])
        from ringleaf.experiments.runs.drawing import redraw

        with in_column(inches):
            redraw(folder)
    say(f"# report: {folder / REPORT}")
