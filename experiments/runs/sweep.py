"""Several runs, one after the other, and their joint results.

`OUT` holds a folder per run, and `sweep.csv`: the rows of all runs, each after the options by which
the runs differ. Figures of a sweep are drawn from nothing but that file. A sweep that was
interrupted keeps the runs that were finished; several processes or machines may do them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import Any

from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.core.file_names import in_home
from ringleaf.errors import ConfigError, RingleafError
from ringleaf.experiments.figures.sheet import in_column_of
from ringleaf.experiments.records.config import (
    SCHEMA_VERSION,
    code,
    read_json,
    read_summary,
    without_aside,
    write_json,
)
from ringleaf.experiments.records.folder import (
    CONFIG,
    FILES,
    PLAN,
    REPORT,
    SWEPT_ROWS,
    RunFolder,
    check_out,
    check_own,
)
from ringleaf.experiments.records.named_files import digests, words
from ringleaf.experiments.runs import session
from ringleaf.experiments.runs.checks import check
from ringleaf.experiments.runs.progress import Progress, progress
from ringleaf.experiments.runs.request import RunRequest, resolve
from ringleaf.experiments.runs.session import Emit
from ringleaf.experiments.runs.spec_file import Case, swept
from ringleaf.experiments.runs.sweep_files import columns_of, draw, rows_of, write
from ringleaf.experiments.runs.workers import ALONE, RunProcesses, run_all
from ringleaf.experiments.spec.options import folder_name, with_digest
from ringleaf.topologies.registry import TOPOLOGIES

ALL = (PLAN, SWEPT_ROWS, REPORT)


def run(
    cases: Sequence[Case], *, name: str, emit: Emit, crew: RunProcesses = ALONE, where: str = ""
) -> bool:
    """Perform all runs, and write their joint results; return whether all values were right.

    Args:
        cases: The options of each run, which differ in some of them.
        name: Name of the folder below `runs`, if the options don't name one.
        emit: Called with each line of the tables.
        crew: The processes that do the runs.
        where: The beginning of messages.

    Raises:
        RingleafError: If an option, the topology or the network does not allow it.
    """
    names = swept(cases)
    out = folder_of(cases, name)
    check_out(out)
    check_own(out, ALL, is_sweep=True)
    places = _places(cases, names)
    by_place = {
        place: {**case, "out": str(out / place)} for case, place in zip(cases, places, strict=True)
    }
    kept = _finished(by_place)
    for place in kept:
        emit(f"# {place}: finished before, and kept")
    left = {place: case for place, case in by_place.items() if place not in kept}
    requests = _checked(left, crew, where)
    files = [*ALL, *(f"{place}/{FILES}" for place in by_place)]
    with RunFolder(out, emit, files, is_sweep=True, keeps=places) as folder:
        is_right = _run(by_place, requests, names, emit, crew, folder)
        folder.check()
    return is_right


def folder_of(cases: Sequence[Case], name: str) -> Path:
    """Return the folder of a sweep: the one that its options name, or `runs/NAME`."""
    return Path(in_home(str(cases[0].get("out") or Path("runs") / name)))


def read_summaries(folder: Path) -> dict[str, Any]:
    """Return what a sweep's folder holds: options that differ, and each run's summary by place.

    Raises:
        ConfigError: If the folder is no sweep's, or a run of it has not ended.
    """
    plan = read_json(folder / PLAN)
    return plan | {"runs": {place: read_summary(folder / place) for place in plan["runs"]}}


def _run(
    cases: Mapping[str, Case],
    requests: Mapping[str, RunRequest],
    names: Sequence[str],
    emit: Emit,
    crew: RunProcesses,
    folder: RunFolder,
) -> bool:
    out, first = folder.path, next(iter(cases.values()))
    columns = columns_of(first, names)
    finished = [place for place in cases if place not in requests]
    _write_plan(out, names, cases, finished)
    rows = {place: rows_of(cases[place], columns) if place in finished else [] for place in cases}
    folder.count(len(finished), len(cases))
    with progress(len(requests)) as shown:
        if crew.is_alone:
            done = _run_here(requests, emit)
        else:
            done = _run_apart({place: cases[place] for place in requests}, emit, crew, shown)
        with closing(done):  # so that its processes end first
            for place in done:
                rows[place] = rows_of(cases[place], columns)
                finished.append(place)
                folder.count(len(finished), len(cases))
                _write_plan(out, names, cases, finished)
                write(out / SWEPT_ROWS, chain.from_iterable(rows.values()))
    lines = list(chain.from_iterable(rows.values()))
    write(out / SWEPT_ROWS, lines)
    emit(f"# sweep: {out / SWEPT_ROWS}")
    if lines:
        with in_column_of(first):
            is_wanted = resolve(first).spec.figures
            report, *figures = draw(out, list(cases), lines, names, with_figures=is_wanted)
        emit(f"# report: {report}")
        for figure in figures:
            emit(f"# figure: {figure}")
    return not any(line["wrong"] for line in lines)


def _write_plan(
    out: Path, names: Sequence[str], cases: Mapping[str, Case], finished: Sequence[str]
) -> None:
    """Write which runs a sweep has, and which are done, whoever was faster."""
    done = [place for place in cases if place in finished]
    plan = {"schema_version": SCHEMA_VERSION, "options": names, "runs": list(cases), "done": done}
    write_json(out / PLAN, plan)


def _places(cases: Sequence[Case], names: Sequence[str]) -> list[str]:
    """Return the folder names of cases: no two of them are the same."""
    places = [_place(case, names) for case in cases]
    counts = Counter(places)
    return [
        place if counts[place] == 1 else with_digest(place, str(case))
        for place, case in zip(places, cases, strict=True)
    ]


def _place(case: Case, names: Sequence[str]) -> str:
    """Return the folder name of a case, made of the options in which cases differ.

    Lists, as of jobs, are last: their text is so long that it may be cut.
    """
    own_names = sorted(
        (name for name in names if name in case), key=lambda name: isinstance(case[name], list)
    )
    return folder_name("-".join(f"{name}={case[name]}" for name in own_names))


def _checked(cases: Mapping[str, Case], crew: RunProcesses, where: str) -> dict[str, RunRequest]:
    """Return all cases as requests, checked before the first run."""
    requests = {}
    for place, case in cases.items():
        requests[place] = request = resolve(case, where)
        check(request)
        spec = request.spec
        if not crew.is_alone and (spec.is_live or spec.record is not None):
            wrong = f"net={spec.net}" if spec.is_live else f"record={spec.record}"
            raise ConfigError(
                f"run: on several processes only in virtual time and without traces, got {wrong}; "
                "leave out --parallel and --on"
            )
    return requests


def _run_here(requests: Mapping[str, RunRequest], emit: Emit) -> Generator[str]:
    for place, request in requests.items():
        emit(f"# {place}")
        session.run(request, emit=emit, drawn=False)
        yield place


def _run_apart(
    cases: Mapping[str, Case], emit: Emit, crew: RunProcesses, shown: Progress
) -> Generator[str]:
    """Perform runs on other processes; yield each run's lines together when it has ended."""
    if crew.scheduler is not None:
        emit(crew.scheduler.trusted)
    label = "run {} of " + str(len(cases))
    shown.begin(label.format(1), packets_s=1)
    for number, (place, leavings) in enumerate(run_all(cases, crew), start=2):
        leavings.check(Path(cases[place]["out"]))
        with RunFolder(Path(cases[place]["out"]), emit, leavings.files) as folder:
            leavings.write(folder.path)
        shown.end()
        emit(f"# {place}")
        for line in leavings.lines:
            emit("".join(filter(str.isprintable, line)))  # the terminal obeys no worker
        if number <= len(cases):
            shown.begin(label.format(number), packets_s=1)
        yield place


def _finished(cases: Mapping[str, Case]) -> list[str]:
    """Return the runs that an interrupted sweep has finished with the same options, files and code.

    If all are finished, return none, so that they are run again. Live runs differ each time, but
    count as well; runs of objects don't, as the same name may be another one's.
    """
    about = code()
    finished = []
    for place, case in cases.items():
        folder = Path(case["out"])
        try:
            summary = read_summary(folder)
            config = read_json(folder / CONFIG)
        except RingleafError:
            continue
        typed = without_aside(case)
        asked = about | {"given": typed, "files": digests(typed)}
        is_same = all(config.get(name) == value for name, value in asked.items())
        if summary["complete"] and is_same and not _has_objects(typed):
            finished.append(place)
    return [] if len(finished) == len(cases) else finished


def _has_objects(options: Case) -> bool:
    """Return whether options name what Python was given: a graph, a schedule, an algorithm."""
    added = {*TOPOLOGIES.added, *ALGORITHMS.added}
    return any(word in added for value in options.values() for word in words(value))
