"""Figures and the report of a run of a training script."""

from __future__ import annotations

from pathlib import Path

from ringleaf.experiments.figures.style import SUFFIXES
from ringleaf.experiments.figures.tasks import Perform, in_turn
from ringleaf.experiments.records.folder import REPORT, write_text
from ringleaf.experiments.workloads.train import figures, report, results


def redraw(folder: Path, perform: Perform = in_turn, *, with_figures: bool = True) -> list[Path]:
    """Draw figures and report from the files of a run directory; return what was written.

    Raises:
        ConfigError: If it is no such directory.
    """
    run = results.read(folder)
    svgs = figures.draw_all(folder / "figures", run, perform) if with_figures else {}
    write_text(folder / REPORT, report.render(run, svgs))
    drawings = [folder / "figures" / f"{name}{suffix}" for name in svgs for suffix in SUFFIXES]
    return [folder / REPORT, *drawings]
