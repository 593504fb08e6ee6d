"""`ringleaf nic`: workloads that NICs compute, and hosts without for comparison."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from ringleaf import plugins
from ringleaf.experiments.estimates.needs import check_fits, plain
from ringleaf.experiments.records.folder import check_out, check_own
from ringleaf.experiments.runs.checks import check_machine_for, count_nodes
from ringleaf.experiments.runs.console import FAILURE, Debug, guard, say
from ringleaf.experiments.spec.network import VIRTUAL
from ringleaf.experiments.spec.options import options_of
from ringleaf.experiments.spec.typed import with_options
from ringleaf.experiments.workloads.nic.need import need_of_nics
from ringleaf.experiments.workloads.nic.spec import NicSpec, read_spec
from ringleaf.experiments.workloads.nic.workload import Workload
from ringleaf.hosts.nic.registry import OFFLOADS, Offload

SpecFile = Annotated[
    Path | None,
    typer.Option(
        "--spec", readable=False, help="YAML file of these options; typed options go before."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print summary.json in place of the table.")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Print the resolved options as JSON, and stop.")
]


def register(app: typer.Typer) -> None:
    """Add the command, with one below it for each workload; a package's that fails has none."""
    below = typer.Typer(no_args_is_help=True, help="Workloads that NICs compute.")
    for name, offload in OFFLOADS.items():
        try:
            command = guard(_command_of(offload))
        except Exception as error:
            if not (told := plugins.failure(error)):
                raise
            plugins.warn(f"offload {name}: is left out: {told}")
        else:
            below.command(name, help=f"Run the {offload.title}.")(command)
    app.add_typer(below, name="nic")


def _command_of(offload: Offload) -> Callable[..., None]:
    workload: Workload[Any] = import_module(offload.workload).WORKLOAD
    given = {key: each for key, each in options_of(workload.spec).items() if each.flags}
    return with_options(_command_for(workload), given)


def _command_for(workload: Workload[Any]) -> Callable[..., None]:
    def command(
        typed: Mapping[str, str],
        spec: SpecFile = None,
        dry_run: DryRun = False,
        as_json: AsJson = False,
        debug: Debug = False,
    ) -> None:
        given = read_spec(spec, typed)
        name = spec.stem if spec else workload.name
        where = f"spec {spec}: " if spec else ""
        read: NicSpec = workload.spec.read({"out": str(Path("runs") / name), **given}, where)
        check_out(read.out)
        check_own(read.out)
        counts = count_nodes(read)
        check_fits(read, counts)
        if dry_run:
            say(
                json.dumps(read.plain() | {"estimate": plain(need_of_nics(read, counts))}, indent=2)
            )
            return
        if read.net != VIRTUAL:
            check_machine_for(read)
        from ringleaf.experiments.workloads.nic.session import run  # loads NetworkX

        found = run(workload, read, given, _ignore if as_json else say)
        if as_json:
            say((read.out / "summary.json").read_text(encoding="utf-8").rstrip())
        if found.wrong:
            raise typer.Exit(FAILURE)

    return command


def _ignore(line: str) -> None:
    pass
