"""The joint files of a sweep's runs, and its figures and report, from the runs' own files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path

from ringleaf.core.disk import write_text
from ringleaf.errors import ConfigError
from ringleaf.experiments.records.config import done_places, read_given, read_json, read_summary
from ringleaf.experiments.records.folder import PLAN, REPORT, SUMMARY
from ringleaf.experiments.records.results import as_csv
from ringleaf.experiments.runs import sweep_report
from ringleaf.experiments.runs.kind import SweepFigure
from ringleaf.experiments.runs.request import kind_of, options_for
from ringleaf.experiments.runs.spec_file import Case


def rows_of(case: Case, names: Sequence[str]) -> list[dict[str, object]]:
    """Return the rows of a finished run, each after the options by which runs differ.

    Args:
        case: Its options.
        names: Those that are told, of which a list is told by the run's own rows.
    """
    folder, known, kind = Path(case["out"]), options_for(case), kind_of(case)
    options = {
        kind.column_of(name): case.get(name, known[name].default)
        for name in names
        if not isinstance(case.get(name), list)
    }
    rows = kind.swept_rows(folder, read_summary(folder))
    return [options | row for row in rows]


def write(path: Path, lines: Iterable[Mapping[str, object]]) -> None:
    """Write the rows so far as CSV, if there are any."""
    rows = list(lines)
    if rows:
        write_text(path, as_csv(rows))


def columns_of(case: Case, names: Sequence[str]) -> list[str]:
    """Return the options whose values are in the file of a sweep whose runs differ by `names`."""
    return kind_of(case).swept_options(names)


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
    kind = kind_of(given_first(out, places))
    columns = [kind.column_of(name) for name in names]
    figures = kind.sweep_figures(lines, columns) if with_figures else {}
    svgs = draw_figures(out, figures)
    captions = {name: (each.title, each.caption) for name, each in figures.items()}
    page = sweep_report.render(kind, out.resolve().name, places, lines, names, svgs, captions)
    write_text(out / REPORT, page)
    return [out / REPORT, *(out / f"{name}.png" for name in svgs)]


def given_first(out: Path, places: Sequence[str]) -> Case:
    """Return the options of the first run of a sweep that has begun."""
    return read_given(next(out / place for place in places if (out / place / SUMMARY).is_file()))


def draw_figures(out: Path, figures: Mapping[str, SweepFigure]) -> dict[str, str]:
    """Write figures into a folder; return SVG by name."""
    if not figures:
        return {}
    from ringleaf.experiments.figures.style import matplotlib_style, save  # imports matplotlib

    with matplotlib_style():
        return {name: save(each.draw(), out / name) for name, each in figures.items()}


def redraw(out: Path) -> list[Path]:
    """Draw the figures and the report of a sweep again from its runs' files; return them.

    Raises:
        ConfigError: If there are no such files, or no run is finished.
    """
    plan = read_json(out / PLAN)
    places = [place for place in done_places(plan) if (out / place / SUMMARY).is_file()]
    cases = [read_given(out / place) | {"out": str(out / place)} for place in places]
    lines = list(
        chain.from_iterable(rows_of(case, columns_of(case, plan["options"])) for case in cases)
    )
    if not lines:
        raise ConfigError(f"plot: no run of this sweep is finished, got {str(out)!r}; run it again")
    return draw(out, places, lines, plan["options"])
