"""`ringleaf train`: a training script on an emulated network."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from ringleaf.errors import ConfigError
from ringleaf.experiments.console import FAILURE, Debug, guard, say
from ringleaf.experiments.spec.options import options_of
from ringleaf.experiments.spec.typed import with_options
from ringleaf.experiments.train.spec import TrainSpec

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
    typed: Mapping[str, str], script: Script, serve: Serve = None, debug: Debug = False
) -> None:
    """Run a training script on an emulated network; the script's own options come behind `--`."""
    spec = TrainSpec.read({"out": str(Path("runs") / Path(script[0]).stem), **typed})
    path = Path(script[0])
    if not path.is_file():
        raise ConfigError(f"script: must be a Python file, got {script[0]!r}, and there is none")
    from ringleaf.experiments.train import session

    hosting = session.run(spec, script, say, serve=serve)
    if hosting.account.wrong:
        raise typer.Exit(FAILURE)


def register(app: typer.Typer) -> None:
    """Add the command."""
    settings = {"allow_interspersed_args": True}
    app.command("train", context_settings=settings)(guard(with_options(train_command, OPTIONS)))
