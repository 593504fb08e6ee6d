"""Several runs, one after the other, and what they say together.

`OUT` holds a folder per run, and `sweep.csv`: the rows of all runs, each after the options by which
the runs differ. Figures of a sweep are drawn from nothing but that file.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path

from ringleaf.errors import RingleafError
from ringleaf.experiments import results, session
from ringleaf.experiments.checks import check
from ringleaf.experiments.figures import sparse as sparse_figure
from ringleaf.experiments.folder import check_out, write_text
from ringleaf.experiments.results import Row, Run
from ringleaf.experiments.session import Emit
from ringleaf.experiments.spec.file import swept
from ringleaf.experiments.spec.options import OPTIONS, file_name, resolve

FILE = "sweep.csv"

TOLD = ("density", "cluster", "overlap")
"""Options that are in the file though runs don't differ by them."""


def run(cases: Sequence[Mapping[str, str]], *, name: str, emit: Emit) -> bool:
    """Do all runs, and write what they say together; return whether all values were right.

    Args:
        cases: The options of each, which differ in some.
        name: Of the folder below `runs`, if the options don't name one.
        emit: Takes the lines of the table.

    Raises:
        RingleafError: If an option, the topology or the network does not allow it.
    """
    names = swept([dict(case) for case in cases])
    out = Path(cases[0].get("out") or Path("runs") / name)
    for case in cases:
        check(resolve(case))  # what is wrong shall be said before the first run
    check_out(out)
    columns = list(dict.fromkeys([*names, *TOLD]))
    lines: list[dict[str, object]] = []
    places = [
        file_name("-".join(f"{key}={case[key]}" for key in names if key in case)) for case in cases
    ]
    options = [{**case, "out": str(out / place)} for case, place in zip(cases, places, strict=True)]
    kept = _finished(options)
    for case, place, given in zip(cases, places, options, strict=True):
        done = kept.get(given["out"])
        emit(f"# {place}" if done is None else f"# {place}: finished before, and kept")
        if done is None:
            done = session.run(given, emit=emit, drawn=False)
        lines += _lines(case, columns, done)
        write(out / FILE, columns, lines)
    emit(f"# sweep: {out / FILE}")
    if sparse_figure.fits(out / FILE):
        emit(f"# figure: {sparse_figure.draw(out / FILE)}")
    return not any(line["wrong"] for line in lines)


def _finished(cases: Sequence[Mapping[str, str]]) -> dict[str, Run]:
    """By folder, the runs that an interrupted sweep has finished with these very options and code.

    None, if all are finished: then they shall be run anew. Live runs differ each time, and count
    all the same.
    """
    commit = results.git_commit(Path(__file__).parent)
    found = {}
    for case in cases:
        folder = Path(case["out"])
        try:
            run, config = results.read_run(folder), results.read_json(folder / "config.json")
        except RingleafError:
            continue
        is_same = config["given"] == dict(case) and config["versions"] == results.versions()
        if run.complete and is_same and config["git_commit"] == commit:
            found[case["out"]] = run
    return {} if len(found) == len(cases) else found


def _lines(case: Mapping[str, str], names: Sequence[str], done: Run) -> list[dict[str, object]]:
    options = {name: case.get(name, OPTIONS[name].default) for name in names}
    links = done.reference
    links_of = {"rate_bps": links.rate_bps, "delay_ps": links.delay_ps}
    about = {"clock": done.clock, "ranks": done.ranks, **links_of}
    return [options | about | asdict(row) for row in done.rows]


def write(path: Path, names: Sequence[str], lines: Sequence[Mapping[str, object]]) -> None:
    """Write the rows so far."""
    columns = [
        *names,
        "clock",
        "ranks",
        "rate_bps",
        "delay_ps",
        *(each.name for each in fields(Row)),
    ]
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    write_text(path, text.getvalue())
