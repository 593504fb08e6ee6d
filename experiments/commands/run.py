"""`ringleaf run`: collectives on a topology, training jobs, workloads, and sweeps of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from ringleaf.errors import ConfigError
from ringleaf.experiments.commands.run_commands import AsJson, DryRun, SpecFile, do
from ringleaf.experiments.runs.console import Debug, guard
from ringleaf.experiments.runs.machines import DaskScheduler
from ringleaf.experiments.runs.request import kind_of, typed
from ringleaf.experiments.runs.spec_file import Case, read_cases
from ringleaf.experiments.spec.typed import RARE, with_options

Parallel = Annotated[
    int, typer.Option("--parallel", "-j", min=0, help="Processes of a sweep; 0: one per core.")
]
On = Annotated[
    str | None,
    typer.Option(
        "--on", rich_help_panel=RARE, help="Dask scheduler that runs the sweep: tls://host:8786."
    ),
]
CaFile = Annotated[
    str | None,
    typer.Option(
        "--tls-ca-file",
        rich_help_panel=RARE,
        help="--on: certificate of who vouches for all that take part.",
    ),
]
Cert = Annotated[
    str | None, typer.Option("--tls-cert", rich_help_panel=RARE, help="--on: your certificate.")
]
Key = Annotated[
    str | None, typer.Option("--tls-key", rich_help_panel=RARE, help="--on: your private key.")
]
Unencrypted = Annotated[
    bool,
    typer.Option(
        "--unencrypted",
        rich_help_panel=RARE,
        help="--on tcp://...: whoever reaches its port can run code as you.",
    ),
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("run")(guard(with_options(run_command, typed())))


def run_command(
    typed: Mapping[str, str],
    spec: SpecFile = None,
    parallel: Parallel = 1,
    on: On = None,
    tls_ca_file: CaFile = None,
    tls_cert: Cert = None,
    tls_key: Key = None,
    unencrypted: Unencrypted = False,
    dry_run: DryRun = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Run collectives, training jobs or a workload; write a table, figures and a report."""
    cases = _cases(spec, typed)
    if len(cases) == 1 and (parallel != 1 or on):
        got = f"--on {on}" if on else f"--parallel {parallel}"
        raise ConfigError(f"run: only a spec with several runs can be shared out, got {got}")
    do(
        cases,
        name=spec.stem if spec else "sweep",
        where=f"spec {spec}: " if spec else "",
        parallel=parallel,
        scheduler=_scheduler(on, tls_ca_file, tls_cert, tls_key, unencrypted=unencrypted),
        dry_run=dry_run,
        as_json=as_json,
    )


def _scheduler(
    on: str | None,
    ca_file: str | None,
    cert: str | None,
    key: str | None,
    *,
    unencrypted: bool,
) -> DaskScheduler | None:
    """Return the scheduler that was named, checked."""
    if on is not None:
        named = DaskScheduler(on, ca_file, cert, key, unencrypted)
        named.check()
        return named
    if ca_file or cert or key or unencrypted:
        raise ConfigError(
            "run: certificates and --unencrypted are for --on, got none; leave them out, or name "
            "a scheduler"
        )
    return None


def _cases(spec: Path | None, typed: Mapping[str, str]) -> list[Case]:
    """Return the options of each run."""
    if spec is None:
        return [dict(typed)]
    cases = read_cases(spec, typed)
    if len(cases) == 1 and kind_of(cases[0]).key:
        cases[0].setdefault("out", str(Path("runs") / spec.stem))
    return cases
