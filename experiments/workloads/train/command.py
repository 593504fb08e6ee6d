"""`ringleaf train`: a training script on an emulated network."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from ringleaf.errors import ConfigError
from ringleaf.experiments.estimates.needs import check_fits, plain
from ringleaf.experiments.records.folder import check_out, check_own
from ringleaf.experiments.runs.checks import check_machine_for, count_nodes
from ringleaf.experiments.runs.console import FAILURE, Debug, guard, say
from ringleaf.experiments.runs.drawer import drawer
from ringleaf.experiments.spec.network import VIRTUAL
from ringleaf.experiments.spec.options import options_of
from ringleaf.experiments.spec.typed import with_options
from ringleaf.experiments.workloads.train.need import need_of_script
from ringleaf.experiments.workloads.train.spec import TrainSpec
from ringleaf.topologies.family import Counts

OPTIONS = {name: option for name, option in options_of(TrainSpec).items() if option.flags}
"""The options of `ringleaf train`, by name."""

Script = Annotated[
    list[str], typer.Argument(help="The script, and its own arguments.", show_default=False)
]


Serve = Annotated[
    Path | None,
    typer.Option("--serve", hidden=True, help="Folder of a fabric for ranks that run elsewhere."),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Print the resolved options as JSON, and stop.")
]


def train_command(
    typed: Mapping[str, str],
    script: Script,
    serve: Serve = None,
    dry_run: DryRun = False,
    debug: Debug = False,
) -> None:
    """Run a training script on an emulated network; the script's own options come behind `--`."""
    spec = TrainSpec.read({"out": str(Path("runs") / Path(script[0]).stem), **typed})
    _check(spec, script)
    if dry_run:
        estimate = plain(need_of_script(spec, _counts(spec)))
        say(json.dumps(spec.plain() | {"script": script, "estimate": estimate}, indent=2))
        return
    with (drawer() if spec.net == VIRTUAL else None) or nullcontext() as beside:
        from ringleaf.experiments.workloads.train.session import Session  # loads NetworkX

        found = Session(spec, typed, script, say, beside).run(serve)
    if found.wrong:
        raise typer.Exit(FAILURE)


def _check(spec: TrainSpec, script: list[str]) -> None:
    """Refuse at once what can't be done."""
    if not Path(script[0]).is_file():
        raise ConfigError(f"script: must be a Python file, got {script[0]!r}, and there is none")
    hosts = count_nodes(spec).hosts
    if spec.ranks > hosts:
        raise ConfigError(
            f"ranks: must be at most {hosts}, the hosts of {spec.topo}, got {spec.ranks}; take a "
            "larger topology, like fattree,k=8"
        )
    if spec.net != VIRTUAL:
        check_machine_for(spec)
    check_fits(spec, _counts(spec))
    check_out(spec.out)
    check_own(spec.out)


def _counts(spec: TrainSpec) -> Counts:
    """Return the size of the network, which has a host for each rank at least."""
    return count_nodes(spec.model_copy(update={"hosts": spec.hosts or spec.ranks}))


def register(app: typer.Typer) -> None:
    """Add the command."""
    settings = {"allow_interspersed_args": True}
    app.command("train", context_settings=settings)(guard(with_options(train_command, OPTIONS)))
