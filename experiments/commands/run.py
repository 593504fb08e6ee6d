"""`ringleaf run`: collectives on a topology, sweeps of them, and training jobs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from ringleaf.errors import ConfigError
from ringleaf.experiments.checks import check, count_nodes
from ringleaf.experiments.console import FAILURE, Debug, guard, say
from ringleaf.experiments.estimate import need
from ringleaf.experiments.folder import check_out
from ringleaf.experiments.machine import free_bytes
from ringleaf.experiments.options import OPTIONS, VIRTUAL, Option, Spec, as_plain, resolve
from ringleaf.experiments.spec_file import is_jobs, read_cases

SpecFile = Annotated[
    Path | None, typer.Option("--spec", help="YAML file of these options; others go before.")
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Print the resolved options as JSON, and stop.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print summary.json in place of the table.")]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("run")(guard(_with_options(run_command)))


def _is_flag(option: Option) -> bool:
    return option.default == "no"


def _parameter(name: str, option: Option) -> Parameter:
    """What typer makes a command-line option of."""
    default = f"; default {option.default}" if option.default else ""
    kind: Any = str | None
    help_ = option.help + default
    if _is_flag(option):
        kind, help_ = bool, option.help
    shown = typer.Option(False if _is_flag(option) else None, *option.flags.split(), help=help_)
    return Parameter(f"{name}_", Parameter.KEYWORD_ONLY, default=shown, annotation=kind)


def _with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command an option for each of `OPTIONS`; it gets those that were typed first."""
    hints = get_type_hints(command, include_extras=True)
    own = [
        parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=hints[name])
        for name, parameter in list(signature(command).parameters.items())[1:]
    ]
    options = [_parameter(name, option) for name, option in OPTIONS.items()]

    @wraps(command)
    def typed(**given: Any) -> None:
        found = {name: given.pop(f"{name}_") for name in OPTIONS}
        texts = {name: "yes" if value is True else value for name, value in found.items() if value}
        command(texts, **given)

    parameters = [*options, *own]
    typed.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    typed.__annotations__ = {each.name: each.annotation for each in parameters}
    return typed


def run_command(
    typed: Mapping[str, str],
    spec: SpecFile = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Run collectives on a topology: table, figures, report."""
    if spec and is_jobs(spec):
        _run_jobs(spec, typed, dry_run=dry_run, as_json=as_json)
        return
    cases = _cases(spec, typed)
    specs = [resolve(case) for case in cases]
    for each in specs:
        check(each)
    if dry_run:
        for each in specs:
            say(json.dumps(as_plain(each) | {"estimate": _estimate(each)}, indent=2))
        return
    from ringleaf.experiments import session, sweep

    emit = _ignore if as_json else say
    if spec and len(cases) > 1:
        if not sweep.run(cases, name=spec.stem, emit=emit):
            raise typer.Exit(FAILURE)
        return
    run = session.run(cases[0], emit=emit)
    if as_json:
        say((specs[0].out / "summary.json").read_text().rstrip())
    if any(row.wrong for row in run.rows):
        raise typer.Exit(FAILURE)


def _cases(spec: Path | None, typed: Mapping[str, str]) -> list[dict[str, str]]:
    """The options of each run."""
    cases: list[dict[str, str]] = []
    for case in read_cases(spec) if spec else [{}]:
        if {**case, **typed} not in cases:  # what is typed may be what they differ by
            cases.append({**case, **typed})
    return cases


def _estimate(spec: Spec) -> dict[str, Any]:
    """What a run is estimated to need."""
    from ringleaf.experiments.network import build_topology, mean_distance

    graph = build_topology(
        spec.topo, rate_bps=spec.rate_bps, delay_ps=spec.delay_ps, hosts=spec.hosts
    )
    needed = need(spec, count_nodes(spec), mean_distance(graph))
    return {
        "memory_bytes": needed.memory_bytes,
        "free_bytes": free_bytes(),
        "time_s": round(needed.time_s, 1),
    }


def _run_jobs(spec: Path, typed: Mapping[str, str], *, dry_run: bool, as_json: bool) -> None:
    """Run an experiment with training jobs, which has most of its options in the file."""
    if typed.get("net", VIRTUAL) != VIRTUAL:
        raise ConfigError(
            f"spec {spec}: of jobs: only in virtual time, got net={typed['net']!r}; live, hosts "
            "are processes, and none of them orders the jobs of all yet"
        )
    surplus = sorted(set(typed) - {"out", "pcap", "net"})
    if surplus:
        raise ConfigError(
            f"spec {spec}: of jobs: options must be in the file, got --{', --'.join(surplus)}"
        )
    from ringleaf.experiments.jobs.spec import read_jobs

    wanted = read_jobs(spec)  # what is wrong shall be said before the session is loaded
    out = Path(typed["out"]) if "out" in typed else Path("runs") / spec.stem
    check_out(out)
    from ringleaf.experiments.jobs import session
    from ringleaf.experiments.jobs.runner import JobsExperiment

    if dry_run:
        say(json.dumps(session.plan(JobsExperiment(wanted)), indent=2))
        return
    rows = session.run(spec, out, emit=_ignore if as_json else say, pcap="pcap" in typed)
    if as_json:
        say((out / "summary.json").read_text().rstrip())
    if any(row.wrong for row in rows):
        raise typer.Exit(FAILURE)


def _ignore(line: str) -> None:
    pass
