"""Figures and the report of a run, or of a sweep, from nothing but the files of its directory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from zipfile import BadZipFile

from ringleaf.core.disk import write_text
from ringleaf.errors import ConfigError
from ringleaf.experiments.figures.sheet import given_to, in_column_of
from ringleaf.experiments.figures.style import SUFFIXES, matplotlib_style
from ringleaf.experiments.figures.tasks import Perform, in_turn
from ringleaf.experiments.pages.report import render
from ringleaf.experiments.records.config import read_given, read_json, read_summary
from ringleaf.experiments.records.folder import CONFIG, PLAN, REPORT, SPEC
from ringleaf.experiments.records.results import Results
from ringleaf.experiments.runs import sweep_files
from ringleaf.experiments.runs.request import kind_named, kind_of_run


def redraw(folder: Path, perform: Perform = in_turn, *, with_figures: bool = True) -> list[Path]:
    """Draw a run of any workload, or a sweep, from its directory; return report and figures.

    Args:
        folder: The directory.
        perform: Does the drawing of all figures.
        with_figures: Whether there shall be figures.

    Raises:
        ConfigError: If it is no run directory, or nothing was measured.
    """
    if (folder / PLAN).is_file():
        return sweep_files.redraw(folder)
    results = read_results(folder)
    if not results.has_any:
        raise ConfigError(
            f"plot: nothing was measured in this run, got {str(folder)!r}; run it again"
        )
    with _reading(folder):
        command = kind_named(results.kind).command(read_given(folder))
        spec, config = _spec_of(folder), read_json(folder / CONFIG)
    svgs = _draw(folder, results, perform) if with_figures else {}
    page = render(results, svgs, command=command, spec=spec, config=config)
    write_text(folder / REPORT, page)
    stems = [folder / "figures" / name for name in svgs]
    return [folder / REPORT, *(Path(f"{stem}{suffix}") for stem in stems for suffix in SUFFIXES)]


def read_results(folder: Path) -> Results:
    """Load the results of a run of any kind from its directory.

    Raises:
        ConfigError: If it is no such directory, or was written in another version's format.
    """
    summary = read_summary(folder)
    kind = kind_of_run(summary)
    with _reading(folder):
        return kind.read(folder, summary)


@contextmanager
def _reading(folder: Path) -> Iterator[None]:
    """Have a run's files, while they are read, called damaged where they are."""
    try:
        yield
    except (OSError, LookupError, TypeError, ValueError, EOFError, BadZipFile) as error:
        raise ConfigError(
            f"plot: can't read the run's files, got {str(folder)!r}: {error}; run it again"
        ) from error


def _draw(folder: Path, results: Results, perform: Perform) -> dict[str, str]:
    place = folder / "figures"
    place.mkdir(exist_ok=True)
    with matplotlib_style(), in_column_of(given_to(folder)):
        tasks = results.tasks(folder)
        return perform({name: partial(draw, place / name) for name, draw in tasks.items()})


def _spec_of(folder: Path) -> str:
    path = folder / SPEC
    return path.read_text(encoding="utf-8") if path.exists() else ""
