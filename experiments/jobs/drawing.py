"""Figures and the report of a run of jobs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ringleaf.errors import ConfigError
from ringleaf.experiments.figures.style import SUFFIXES
from ringleaf.experiments.figures.tasks import Perform, in_turn
from ringleaf.experiments.folder import REPORT, write_text
from ringleaf.experiments.jobs import figures, report, results
from ringleaf.experiments.jobs.results import JobsCase
from ringleaf.experiments.results import read_json


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
    svgs = figures.draw_all(folder / "figures", cases, perform)
    most = max(case.combination.count for case in cases)
    title = f"{most} training jobs beside each other" if most > 1 else "A training job"
    page = report.render(cases, svgs, title=title, about=about, spec=text)
    write_text(folder / REPORT, page)
    drawings = [folder / "figures" / f"{name}{suffix}" for name in svgs for suffix in SUFFIXES]
    return [folder / REPORT, *drawings]


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
