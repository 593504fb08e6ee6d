"""What all commands that do runs have in common."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ringleaf.experiments.records.folder import SUMMARY
from ringleaf.experiments.runs.console import FAILURE, say, say_if_read
from ringleaf.experiments.runs.perform import perform_one, requests_of
from ringleaf.experiments.runs.request import RunRequest
from ringleaf.experiments.runs.spec_file import Case

if TYPE_CHECKING:
    from ringleaf.experiments.runs.machines import DaskScheduler

SpecFile = Annotated[
    Path | None,
    typer.Option(
        "--spec", readable=False, help="YAML file of these options; typed options go before."
    ),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Print the resolved options as JSON, and stop.")
]
AsJson = Annotated[
    bool,
    typer.Option(
        "--json", help="Print summary.json in place of the table; of a sweep, all of them."
    ),
]


def do(
    cases: Sequence[Case],
    *,
    name: str = "sweep",
    where: str = "",
    parallel: int = 1,
    scheduler: DaskScheduler | None = None,
    dry_run: bool = False,
    as_json: bool = False,
    **own: Any,
) -> None:
    """Do one run, or a sweep of several; end with an exit status if values were wrong.

    Args:
        cases: The options of each run.
        name: The name of a sweep's folder, if the options name none.
        where: The beginning of messages.
        parallel: Processes of a sweep.
        scheduler: The scheduler that runs a sweep, if there is one.
        dry_run: Print plans, and stop.
        as_json: Print the summary in place of the table.
        own: What only the kind of workload knows, of one run.

    Raises:
        RingleafError: If an option, the topology or the network does not allow it.
    """
    emit = _ignore if as_json else say_if_read
    if dry_run:
        for request in requests_of(cases, where):
            say(json.dumps(_plan(request), indent=2))
        return
    if len(cases) > 1:
        from ringleaf.experiments.runs import sweep  # imports the networks
        from ringleaf.experiments.runs.workers import RunProcesses

        crew = RunProcesses(parallel, scheduler)
        is_right = sweep.run(cases, name=name, emit=emit, crew=crew, where=where)
        if as_json:
            say(json.dumps(sweep.read_summaries(sweep.folder_of(cases, name)), indent=2))
    else:
        [request] = requests_of(cases, where)
        is_right = not perform_one(request, emit, **own).wrong
        if as_json:
            say((request.spec.out / SUMMARY).read_text(encoding="utf-8").rstrip())
    if not is_right:
        raise typer.Exit(FAILURE)


def _plan(request: RunRequest) -> dict[str, Any]:
    """Return the plan of a run, with an estimate of its needs."""
    from ringleaf.experiments.estimates.needs import plain  # with it, all algorithms' costs

    plan, need = request.kind.plan(request.spec)
    return plan | ({"estimate": plain(need)} if need else {})


def _ignore(line: str) -> None:
    pass
