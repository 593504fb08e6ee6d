"""Several runs, one after the other, and what they say together.

`OUT` holds a folder per run, and `sweep.csv`: the rows of all runs, each after the options by which
the runs differ. Figures of a sweep are drawn from nothing but that file.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path

from experiments import session, sparse_figure
from experiments.options import OPTIONS, file_name, resolve
from experiments.results import Row, Run
from experiments.session import Emit
from experiments.spec_file import swept

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
        resolve(case)  # what is wrong shall be said before the first run
    columns = list(dict.fromkeys([*names, *TOLD]))
    lines: list[dict[str, object]] = []
    for case in cases:
        place = file_name("-".join(f"{key}={case[key]}" for key in names if key in case))
        emit(f"# {place}")
        done = session.run({**case, "out": str(out / place)}, emit=emit, drawn=False)
        lines += _lines(case, columns, done)
        write(out / FILE, columns, lines)
    emit(f"# sweep: {out / FILE}")
    if sparse_figure.fits(out / FILE):
        emit(f"# figure: {sparse_figure.draw(out / FILE)}")
    return not any(line["wrong"] for line in lines)


def _lines(case: Mapping[str, str], names: Sequence[str], done: Run) -> list[dict[str, object]]:
    options = {name: case.get(name, OPTIONS[name].default) for name in names}
    ranks = {"ranks": done.ranks, "rate_bps": done.rate_bps, "delay_ps": done.options["delay_ps"]}
    return [options | ranks | asdict(row) for row in done.rows]


def write(path: Path, names: Sequence[str], lines: Sequence[Mapping[str, object]]) -> None:
    """Write the rows so far."""
    columns = [*names, "ranks", "rate_bps", "delay_ps", *(each.name for each in fields(Row))]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)
