"""`ringleaf run`: collectives on a topology, training jobs, workloads, and sweeps of them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

from ringleaf.errors import ConfigError
from ringleaf.experiments.estimates.estimate import Need, need
from ringleaf.experiments.estimates.needs import plain
from ringleaf.experiments.estimates.pace import read_paces
from ringleaf.experiments.records.folder import check_own
from ringleaf.experiments.runs.checks import check, count_nodes
from ringleaf.experiments.runs.console import FAILURE, Debug, guard, say
from ringleaf.experiments.runs.drawer import drawer
from ringleaf.experiments.runs.machines import Scheduler
from ringleaf.experiments.spec.collective import CollectiveSpec
from ringleaf.experiments.spec.file import Case, read_cases
from ringleaf.experiments.spec.jobs import JobsSpec
from ringleaf.experiments.spec.network import VIRTUAL
from ringleaf.experiments.spec.options import JOBS, TYPED, WORKLOAD, resolve_any
from ringleaf.experiments.spec.typed import with_options
from ringleaf.experiments.spec.workload import WorkloadSpec

SpecFile = Annotated[
    Path | None,
    typer.Option(
        "--spec", readable=False, help="YAML file of these options; typed options go before."
    ),
]
Parallel = Annotated[
    int, typer.Option("--parallel", "-j", min=0, help="Processes of a sweep; 0: one per core.")
]
On = Annotated[
    str | None, typer.Option("--on", help="Dask scheduler that runs the sweep: tls://host:8786.")
]
CaFile = Annotated[
    str | None,
    typer.Option("--tls-ca-file", help="--on: certificate of who vouches for all that take part."),
]
Cert = Annotated[str | None, typer.Option("--tls-cert", help="--on: your certificate.")]
Key = Annotated[str | None, typer.Option("--tls-key", help="--on: your private key.")]
Unencrypted = Annotated[
    bool,
    typer.Option(
        "--unencrypted", help="--on tcp://...: whoever reaches its port can run code as you."
    ),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Print the resolved options as JSON, and stop.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print summary.json in place of the table.")]

Emit = Callable[[str], None]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("run")(guard(with_options(run_command, TYPED)))


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
    parallel = parallel or os.cpu_count() or 1
    if len(cases) == 1 and (parallel > 1 or on):
        got = f"--on {on}" if on else f"--parallel {parallel}"
        raise ConfigError(f"run: only a spec with several runs can be shared out, got {got}")
    scheduler = _scheduler(on, tls_ca_file, tls_cert, tls_key, unencrypted=unencrypted)
    where = f"spec {spec}: " if spec else ""
    specs = [resolve_any(case, where) for case in cases]
    for each in specs:
        check(each)
    if len(specs) == 1:
        check_own(specs[0].out)
    if dry_run:
        for each in specs:
            say(json.dumps(_plan(each), indent=2))
        return
    emit = _ignore if as_json else say
    if spec and len(cases) > 1:
        is_right = _run_all(cases, spec.stem, emit, parallel, scheduler)
    else:
        is_right = _run_one(cases[0], specs[0], emit)
        if as_json:
            say((specs[0].out / "summary.json").read_text(encoding="utf-8").rstrip())
    if not is_right:
        raise typer.Exit(FAILURE)


def _scheduler(
    on: str | None,
    ca_file: str | None,
    cert: str | None,
    key: str | None,
    *,
    unencrypted: bool,
) -> Scheduler | None:
    """Return the scheduler that was named, checked."""
    if on is not None:
        named = Scheduler(on, ca_file, cert, key, unencrypted)
        named.check()
        return named
    if ca_file or cert or key or unencrypted:
        raise ConfigError(
            "run: certificates and --unencrypted are for --on, got none; leave them out, or name "
            "a scheduler"
        )
    return None


def _run_all(
    cases: list[Case], name: str, emit: Emit, parallel: int, scheduler: Scheduler | None
) -> bool:
    from ringleaf.experiments.runs import sweep  # imports PyTorch, which takes a second
    from ringleaf.experiments.runs.workers import Crew

    return sweep.run(cases, name=name, emit=emit, crew=Crew(parallel, scheduler))


def _run_one(case: Case, spec: CollectiveSpec | JobsSpec | WorkloadSpec, emit: Emit) -> bool:
    """Perform one run. A live one has all cores for itself, and draws when it is done."""
    needs_drawer = spec.net == VIRTUAL and spec.figures
    with (drawer() if needs_drawer else None) or nullcontext() as beside:
        from ringleaf.experiments.runs import sweep  # imports PyTorch meanwhile

        return sweep.run_one(case, emit, beside=beside)


def _cases(spec: Path | None, typed: Mapping[str, str]) -> list[Case]:
    """Return the options of each run."""
    if spec is None:
        return [dict(typed)]
    cases = read_cases(spec, typed)
    if len(cases) == 1 and (JOBS in cases[0] or WORKLOAD in cases[0]):
        cases[0].setdefault("out", str(Path("runs") / spec.stem))
    return cases


def _plan(spec: CollectiveSpec | JobsSpec | WorkloadSpec) -> dict[str, Any]:
    """Return the plan of a run, with an estimate of its needs."""
    found, needed = _planned(spec)
    return found | {"estimate": plain(needed)}


def _planned(spec: CollectiveSpec | JobsSpec | WorkloadSpec) -> tuple[dict[str, Any], Need]:
    if isinstance(spec, CollectiveSpec):
        return spec.plain(), _need(spec)
    if isinstance(spec, WorkloadSpec):
        from ringleaf.experiments.workloads.graph.runner import WorkExperiment
        from ringleaf.experiments.workloads.graph.session import plan as plan_work

        work = WorkExperiment(spec)
        return plan_work(work), work.need
    from ringleaf.experiments.workloads.jobs.runner import JobsExperiment
    from ringleaf.experiments.workloads.jobs.session import plan

    jobs = JobsExperiment(spec)
    return plan(jobs), jobs.need


def _need(spec: CollectiveSpec) -> Need:
    """Return the estimated memory and time of a run."""
    from ringleaf.experiments.setup.network import build_topology, mean_distance

    graph = build_topology(
        spec.topo, rate_bps=spec.rate_bps, delay_ps=spec.delay_ps, hosts=spec.hosts
    )
    return need(spec, count_nodes(spec), mean_distance(graph), read_paces())


def _ignore(line: str) -> None:
    pass
