"""The joint files of a sweep's runs, and its figures and report, from the runs' own files."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path

from ringleaf.errors import ConfigError
from ringleaf.experiments.runs import results
from ringleaf.experiments.runs import sweep_report
from ringleaf.experiments.figures import sparse as sparse_figure
from ringleaf.experiments.figures import swept as swept_figure
from ringleaf.experiments.records.folder import PLAN, REPORT, write_text
from ringleaf.experiments.spec.file import Case
from ringleaf.experiments.spec.options import JOBS, WORKLOAD, options_for
from ringleaf.experiments.workloads.graph import swept as work_swept
from ringleaf.experiments.workloads.graph.results import PERCENTILE_NAMES

FILE = "sweep.csv"

TOLD = ("density", "cluster", "overlap")
"""Options that are in the file even if runs don't differ by them."""

WORKLOAD_COLUMNS = (
    *("iteration_ps", "compute_share", "exposed_share", "idle_share", "bubble"),
    *PERCENTILE_NAMES,
    *("fairness", "peak_queue_bytes", "wrong", "retransmissions", "drops", "packet_hops"),
    *("pauses", "trims"),
)
"""The results of a run of a workload that are in the file."""


def rows_of(case: Case, names: Sequence[str]) -> list[dict[str, object]]:
    """Return the rows of a finished run, each after the options by which runs differ.

    Args:
        case: Its options.
        names: Those by which runs differ.
    """
    summary = results.read_json(Path(case["out"]) / "summary.json")
    known = options_for(case)
    options = {name: case.get(name, known[name].default) for name in names if name != JOBS}
    about: dict[str, object] = {}
    if WORKLOAD in case:
        found = {name: summary[name] for name in WORKLOAD_COLUMNS}
        return [{**options, WORKLOAD: case[WORKLOAD], **found}]
    if JOBS not in case:
        run = results.read_run(Path(case["out"]))
        links = run.reference
        about = {"clock": run.clock, "ranks": run.ranks}
        about |= {"rate_bps": links.rate_bps, "delay_ps": links.delay_ps}
    return [{**options, **about, **row} for row in summary["rows"]]


def write(path: Path, lines: Iterable[Mapping[str, object]]) -> None:
    """Write the rows so far as CSV, if there are any."""
    rows = list(lines)
    if not rows:
        return
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_text(path, text.getvalue())


def columns_of(case: Case, names: Sequence[str]) -> list[str]:
    """Return the options whose values are in the file of a sweep whose runs differ by `names`."""
    is_other = JOBS in case or WORKLOAD in case
    return list(names) if is_other else list(dict.fromkeys([*names, *TOLD]))


def draw(
    out: Path,
    places: Sequence[str],
    lines: Sequence[Mapping[str, object]],
    names: Sequence[str],
    *,
    with_figures: bool = True,
) -> list[Path]:
    """Draw the figures and the report of a sweep that has results; return report and figure.

    Args:
        out: Its folder.
        places: The folders of its runs.
        lines: The rows of all runs.
        names: The options by which they differ.
        with_figures: Whether figures are wanted.
    """
    drawn = work_swept.draw_any if WORKLOAD in lines[0] else swept_figure.draw
    svg = drawn(lines, names, out / "sweep") if with_figures else ""
    page = sweep_report.render(out.resolve().name, places, lines, names, svg)
    write_text(out / REPORT, page)
    if with_figures and sparse_figure.fits(out / FILE):
        return [out / REPORT, sparse_figure.draw(out / FILE)]
    return [out / REPORT]


def redraw(out: Path) -> list[Path]:
    """Draw the figures and the report of a sweep again from its runs' files; return them.

    Raises:
        ConfigError: If there are no such files, or no run is finished.
    """
    plan = results.read_json(out / PLAN)
    places = [place for place in plan["runs"] if (out / place / "summary.json").is_file()]
    given = [results.read_given(out / place) | {"out": str(out / place)} for place in places]
    lines = list(
        chain.from_iterable(rows_of(case, columns_of(case, plan["options"])) for case in given)
    )
    if not lines:
        raise ConfigError(f"plot: no run of this sweep is finished, got {str(out)!r}; run it again")
    return draw(out, places, lines, plan["options"])
