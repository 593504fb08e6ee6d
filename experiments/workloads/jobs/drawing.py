"""Figures and the report of a run of jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ringleaf.errors import ConfigError
from ringleaf.experiments.figures.sheet import given_to, in_column_of
from ringleaf.experiments.figures.style import SUFFIXES
from ringleaf.experiments.figures.tasks import Perform, in_turn
from ringleaf.experiments.records.folder import REPORT, write_text
from ringleaf.experiments.runs.results import read_json
from ringleaf.experiments.workloads.jobs import figures, report, results
from ringleaf.experiments.workloads.jobs.results import JobsCase


def draw(
    folder: Path,
    cases: Sequence[JobsCase],
    about: Sequence[str],
    text: str,
    perform: Perform = in_turn,
) -> list[Path]:
    """Write figures and the report; return the files.

    Args:
        folder: The run directory.
        cases: The measurements.
        about: Lines on the network.
        text: The spec, as YAML.
        perform: Does the drawing of all figures.
    """
    with in_column_of(given_to(folder)):
        svgs = figures.draw_all(folder / "figures", cases, perform)
    drawings = [folder / "figures" / f"{name}{suffix}" for name in svgs for suffix in SUFFIXES]
    return [*write_page(folder, cases, about, text, svgs), *drawings]


def write_page(
    folder: Path,
    cases: Sequence[JobsCase],
    about: Sequence[str],
    text: str,
    svgs: Mapping[str, str] | None = None,
) -> list[Path]:
    """Write the report, with figures if there are any; return the file."""
    most = max(case.combination.count for case in cases)
    title = f"{most} training jobs beside each other" if most > 1 else "A training job"
    write_text(
        folder / REPORT, report.render(cases, svgs or {}, title=title, about=about, spec=text)
    )
    return [folder / REPORT]


def redraw(folder: Path, perform: Perform = in_turn) -> list[Path]:
    """Draw figures and report of a run of jobs again from its directory; return the files.

    Raises:
        ConfigError: If it is no such run, or nothing was measured.
    """
    cases = results.read_cases(folder)
    if not cases:
        raise ConfigError(
            f"plot: nothing was measured in this run, got {str(folder)!r}; run it again"
        )
    about = read_json(folder / "summary.json")["config"].get("about", [])  # older files lack it
    return draw(folder, cases, about, (folder / "spec.yaml").read_text(encoding="utf-8"), perform)
