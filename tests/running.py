"""Runs for tests: options are resolved and checked, as commands do, and then run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ringleaf.experiments.pages.report import render
from ringleaf.experiments.records.config import read_summary
from ringleaf.experiments.records.results import Results
from ringleaf.experiments.runs import session
from ringleaf.experiments.runs.checks import check
from ringleaf.experiments.runs.drawing import read_results
from ringleaf.experiments.runs.request import resolve
from ringleaf.experiments.workloads.collective.results import CollectiveResults


def ignore(line: str) -> None:
    pass


def run(
    given: Mapping[str, Any], emit: Callable[[str], None] = ignore, **more: Any
) -> CollectiveResults:
    """Run a collective."""
    found = run_any(given, emit, **more)
    assert isinstance(found, CollectiveResults)
    return found


def run_any(given: Mapping[str, Any], emit: Callable[[str], None] = ignore, **more: Any) -> Results:
    request = resolve(given)
    check(request, live="connect" not in more)
    return session.run(request, emit=emit, **more)


def read_run(folder: Path) -> CollectiveResults:
    found = read_results(folder)
    assert isinstance(found, CollectiveResults)
    return found


def foot(results: Results) -> list[str]:
    """Return the lines below a table, as they are printed if they are short."""
    return [f"# {line}" for line in results.foot()]


def page(results: Results, svgs: Mapping[str, str] | None = None, command: str = "make") -> str:
    """Return the page of results."""
    return render(results, svgs or {}, command=command, spec="", config={})


def kind_of(folder: Path) -> str:
    return str(read_summary(folder)["kind"])
