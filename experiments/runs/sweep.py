"""Several runs, one after the other, and their joint results.

`OUT` holds a folder per run, and `sweep.csv`: the rows of all runs, each after the options by which
the runs differ. Figures of a sweep are drawn from nothing but that file. A sweep that was
interrupted keeps the runs that were finished; several processes or machines may do them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from itertools import chain
from pathlib import Path

from ringleaf.errors import ConfigError, RingleafError
from ringleaf.experiments.runs import results
from ringleaf.experiments.runs import session
from ringleaf.experiments.runs.drawer import Drawer
from ringleaf.experiments.runs.checks import check
from ringleaf.experiments.runs.console import Write, in_place, to_terminal
from ringleaf.experiments.estimates.estimate import format_wait
from ringleaf.experiments.figures.sheet import in_column_of
from ringleaf.experiments.records.folder import (
    FILES,
    PLAN,
    REPORT,
    RunFolder,
    check_out,
    check_own,
    write_text,
)
from ringleaf.experiments.workloads.jobs import session as jobs_session
from ringleaf.experiments.runs.session import Emit
from ringleaf.experiments.spec.file import Case, swept
from ringleaf.experiments.spec.network import VIRTUAL
from ringleaf.experiments.spec.options import JOBS, WORKLOAD, folder_name, resolve_any
from ringleaf.experiments.runs.sweep_files import FILE, columns_of, draw, rows_of, write
from ringleaf.experiments.records.topology_copy import has_changed
from ringleaf.experiments.workloads.graph import session as work_session
from ringleaf.experiments.runs.workers import ALONE, Crew, run_all

ALL = (PLAN, FILE, REPORT)


def run(cases: Sequence[Case], *, name: str, emit: Emit, crew: Crew = ALONE) -> bool:
    """Perform all runs, and write their joint results; return whether all values were right.

    Args:
        cases: The options of each run, which differ in some of them.
        name: Name of the folder below `runs`, if the options don't name one.
        emit: Called with each line of the tables.
        crew: The processes that do the runs.

    Raises:
        RingleafError: If an option, the topology or the network does not allow it.
    """
    names = swept(cases)
    out = Path(cases[0].get("out") or Path("runs") / name)
    check_out(out)
    check_own(out, ALL, is_sweep=True)
    places = [_place(case, names) for case in cases]
    given = {
        place: {**case, "out": str(out / place)} for case, place in zip(cases, places, strict=True)
    }
    kept = _finished(given)
    for place in kept:
        emit(f"# {place}: finished before, and kept")
    left = {place: case for place, case in given.items() if place not in kept}
    _check(left, crew)
    files = [*ALL, *(f"{place}/{FILES}" for place in given)]
    with RunFolder(out, emit, files, is_sweep=True, keeps=places) as folder:
        return _run(given, kept, names, emit, crew, folder)


def _run(
    given: Mapping[str, Case],
    kept: Sequence[str],
    names: Sequence[str],
    emit: Emit,
    crew: Crew,
    folder: RunFolder,
) -> bool:
    out = folder.path
    columns = columns_of(next(iter(given.values())), names)
    left = {place: case for place, case in given.items() if place not in kept}
    plan = {"schema_version": results.SCHEMA_VERSION, "options": names, "runs": list(given)}
    write_text(out / PLAN, json.dumps(plan, indent=1) + "\n")
    rows = {place: rows_of(given[place], columns) if place in kept else [] for place in given}
    shown = SweepProgress(len(given), len(kept), to_terminal())
    folder.count(len(kept), len(given))
    try:
        done = _run_here(left, emit) if crew.is_alone else _run_apart(left, emit, crew, shown)
        with closing(done):  # so that its processes end first
            for count, place in enumerate(done, len(kept) + 1):
                rows[place] = rows_of(given[place], columns)
                folder.count(count, len(given))
                shown.finish()
                write(out / FILE, chain.from_iterable(rows.values()))
    finally:
        shown.clear()
    lines = list(chain.from_iterable(rows.values()))
    write(out / FILE, lines)
    emit(f"# sweep: {out / FILE}")
    if lines:
        first = next(iter(given.values()))
        with in_column_of(first):
            report, *figures = draw(
                out, list(given), lines, names, with_figures=with_figures(first)
            )
        emit(f"# report: {report}")
        for figure in figures:
            emit(f"# figure: {figure}")
    return not any(line["wrong"] for line in lines)


def run_one(given: Case, emit: Emit, *, drawn: bool = True, beside: Drawer | None = None) -> bool:
    """Perform one run, whatever its workload; return whether all values were right.

    Figures and the report are written if `drawn`, by the process `beside` if there is one.

    Raises:
        RingleafError: If an option, the topology or the network does not allow it.
    """
    if JOBS in given:
        rows = jobs_session.run(given, emit=emit, drawn=drawn, beside=beside)
        return not any(row.wrong for row in rows)
    if WORKLOAD in given:
        return not work_session.run(given, emit=emit, drawn=drawn, beside=beside).wrong
    done = session.run(given, emit=emit, drawn=drawn, beside=beside)
    return not any(row.wrong for row in done.rows)


def with_figures(case: Case) -> bool:
    """Return whether a run's options ask for figures."""
    return resolve_any(case).figures


def _place(case: Case, names: Sequence[str]) -> str:
    """Return the folder name of a case, made of the options in which cases differ.

    Jobs are last, as their text is so long that it may be cut.
    """
    told = sorted((name for name in names if name in case), key=lambda name: name == JOBS)
    return folder_name("-".join(f"{name}={case[name]}" for name in told))


def _check(cases: Mapping[str, Case], crew: Crew) -> None:
    """Check all cases before the first run."""
    for case in cases.values():
        spec = resolve_any(case)
        check(spec)
        if not crew.is_alone and (spec.net != VIRTUAL or spec.record is not None):
            wrong = f"net={spec.net}" if spec.net != VIRTUAL else f"record={spec.record}"
            raise ConfigError(
                f"run: on several processes only in virtual time and without traces, got {wrong}; "
                "leave out --parallel and --on"
            )


def _run_here(cases: Mapping[str, Case], emit: Emit) -> Generator[str]:
    for place, case in cases.items():
        emit(f"# {place}")
        run_one(case, emit, drawn=False)
        yield place


def _run_apart(
    cases: Mapping[str, Case], emit: Emit, crew: Crew, shown: SweepProgress
) -> Generator[str]:
    """Perform runs on other processes; yield each run's lines together when it has ended."""
    if crew.scheduler is not None:
        emit(crew.scheduler.trusted)
    shown.draw()
    for place, found in run_all(cases, crew):
        found.check(Path(cases[place]["out"]))
        with RunFolder(Path(cases[place]["out"]), emit, found.files) as folder:
            found.write(folder.path)
        shown.clear()
        emit(f"# {place}")
        for line in found.lines:
            emit("".join(filter(str.isprintable, line)))  # the terminal obeys no worker
        yield place


def _finished(cases: Mapping[str, Case]) -> list[str]:
    """Return the runs that an interrupted sweep has finished with the same options and code.

    If all are finished, return none, so that they are run again. Live runs differ each time, but
    count as well.
    """
    commit = results.git_commit(Path(__file__).parent)
    found = []
    for place, case in cases.items():
        folder = Path(case["out"])
        try:
            summary = results.read_json(folder / "summary.json")
            config = results.read_json(folder / "config.json")
        except RingleafError:
            continue
        is_same = config["given"] == _asked(case) and config["versions"] == results.versions()
        is_same = is_same and not has_changed(str(case.get("topo", "")), folder)
        if summary["complete"] and is_same and config["git_commit"] == commit:
            found.append(place)
    return [] if len(found) == len(cases) else found


def _asked(case: Case) -> Case:
    """Return the options of a run as its `config.json` has them."""
    return {name: value for name, value in case.items() if name != "out"}


class SweepProgress:
    """A progress line on the terminal's stderr, if it is one: runs done, and the time left."""

    def __init__(
        self,
        runs: int,
        kept: int,
        write: Write | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._runs = runs
        self._kept = self._done = kept
        self._write = write
        self._clock = clock
        self._began_s = clock()

    def finish(self) -> None:
        """Note that a run is done."""
        self._done += 1
        self.draw()

    @property
    def text(self) -> str:
        """The text of the line."""
        text = f"{self._done} of {self._runs} runs"
        done, left = self._done - self._kept, self._runs - self._done
        if done and left:
            wait = format_wait((self._clock() - self._began_s) * left / done)
            text += f", about {wait} left"
        return text

    def draw(self) -> None:
        """Draw the line."""
        if self._write is not None:
            self._write(in_place(self.text))

    def clear(self) -> None:
        """Remove the line."""
        if self._write is not None:
            self._write(in_place(""))
