"""`ringleaf train`: a training script on an emulated network."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from ringleaf.experiments.commands.run_commands import DryRun, do
from ringleaf.experiments.runs.console import Debug, guard
from ringleaf.experiments.spec.options import options_of
from ringleaf.experiments.spec.typed import with_options
from ringleaf.experiments.workloads.train.kind import SCRIPT
from ringleaf.experiments.workloads.train.spec import TrainSpec

OPTIONS = {name: option for name, option in options_of(TrainSpec).items() if option.flags}
"""The options of `ringleaf train`, by name."""

Script = Annotated[
    list[str], typer.Argument(help="The script, and its own arguments.", show_default=False)
]
Serve = Annotated[
    Path | None,
    typer.Option("--serve", hidden=True, help="Folder of a fabric for ranks that run elsewhere."),
]


def train_command(
    typed: Mapping[str, str],
    script: Script,
    serve: Serve = None,
    dry_run: DryRun = False,
    debug: Debug = False,
) -> None:
    """Run a training script on an emulated network; the script's own options come behind `--`."""
    do([{SCRIPT: script, **typed}], dry_run=dry_run, serve=serve)


def register(app: typer.Typer) -> None:
    """Add the command."""
    settings = {"allow_interspersed_args": True}
    app.command("train", context_settings=settings)(guard(with_options(train_command, OPTIONS)))
