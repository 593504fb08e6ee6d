"""Figures and the report of a replay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ringleaf.experiments.figures.sheet import given_to, in_column_of
from ringleaf.experiments.figures.style import SUFFIXES
from ringleaf.experiments.figures.tasks import Perform, in_turn
from ringleaf.experiments.records.folder import REPORT, write_text
from ringleaf.experiments.runs.results import read_json
from ringleaf.experiments.workloads.graph import figures, report, results
from ringleaf.experiments.workloads.graph.results import WorkResults


def draw(
    folder: Path,
    found: WorkResults,
    about: Sequence[str],
    text: str,
    perform: Perform = in_turn,
) -> list[Path]:
    """Write figures and the report; return the files.

    Args:
        folder: The run directory.
        found: The results.
        about: Lines on the workload and the network.
        text: The spec, as YAML.
        perform: Does the drawing of all figures.
    """
    with in_column_of(given_to(folder)):
        svgs = figures.draw_all(folder / "figures", found, perform)
    drawings = [folder / "figures" / f"{name}{suffix}" for name in svgs for suffix in SUFFIXES]
    return [*write_page(folder, found, about, text, svgs), *drawings]


def write_page(
    folder: Path,
    found: WorkResults,
    about: Sequence[str],
    text: str,
    svgs: Mapping[str, str] | None = None,
) -> list[Path]:
    """Write the report, with figures if there are any; return the file."""
    write_text(folder / REPORT, report.render(found, svgs or {}, about=about, spec=text))
    return [folder / REPORT]


def redraw(folder: Path, perform: Perform = in_turn) -> list[Path]:
    """Draw figures and report of a replay again from its directory; return the files.

    Raises:
        ConfigError: If it is no such run.
    """
    about = read_json(folder / "summary.json")["about"]
    found = results.read_results(folder)
    return draw(folder, found, about, (folder / "spec.yaml").read_text(encoding="utf-8"), perform)
