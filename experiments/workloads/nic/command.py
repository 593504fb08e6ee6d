"""`ringleaf nic`: workloads that NICs compute, and hosts without for comparison."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import typer

from ringleaf.core import plugins
from ringleaf.experiments.commands.run_commands import AsJson, DryRun, SpecFile, do
from ringleaf.experiments.runs.console import Debug, guard
from ringleaf.experiments.runs.spec_file import read_cases
from ringleaf.experiments.spec.options import options_of
from ringleaf.experiments.spec.typed import with_options
from ringleaf.experiments.workloads.nic.kind import OFFLOAD
from ringleaf.experiments.workloads.nic.workload import workload_of
from ringleaf.hosts.nic.registry import OFFLOADS


def register(app: typer.Typer) -> None:
    """Add the command, with one below it for each workload; a package's that fails has none."""
    below = typer.Typer(help="Workloads that NICs compute.")
    for name, offload in OFFLOADS.items():
        try:
            command = guard(_command_of(name))
        except Exception as error:
            if not (line := plugins.failure(error)):
                raise
            plugins.warn(f"offload {name}: is left out: {line}")
        else:
            below.command(name, help=f"Run the {offload.title}.")(command)
    app.add_typer(below, name="nic")


def _command_of(name: str) -> Callable[..., None]:
    options = options_of(workload_of(name).spec)
    flagged = {key: each for key, each in options.items() if each.flags}
    return with_options(_command_for(name), flagged)


def _command_for(name: str) -> Callable[..., None]:
    def command(
        typed: Mapping[str, str],
        spec: SpecFile = None,
        dry_run: DryRun = False,
        as_json: AsJson = False,
        debug: Debug = False,
    ) -> None:
        options = {OFFLOAD: name, **typed}
        cases = read_cases(spec, options) if spec else [options]
        where = f"spec {spec}: " if spec else ""
        if spec and len(cases) == 1:
            cases[0].setdefault("out", f"runs/{spec.stem}")
        do(cases, name=name, where=where, dry_run=dry_run, as_json=as_json)

    return command
