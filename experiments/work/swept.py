"""A figure of all runs of a sweep of workloads: how ranks spend an iteration, run by run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ringleaf.experiments.figures.style import matplotlib_style, save
from ringleaf.experiments.work.figures import SPENT
from ringleaf.units import PS_PER_MS

Line = Mapping[str, object]

MOST_BARS = 40
_HEIGHT = 0.32  # inches, of a bar


def draw(lines: Sequence[Line], names: Sequence[str], stem: Path) -> str:
    """Write `stem` as PNG and PDF, and return it as SVG.

    Args:
        lines: The results of all runs, each with the options by which runs differ.
        names: These options.
        stem: Where the figure shall be, without a suffix.
    """
    import matplotlib.pyplot as plt

    shown = lines[:MOST_BARS]
    labels = [", ".join(f"{name} {line[name]}" for name in names) for line in shown]
    with matplotlib_style():
        figure, axes = plt.subplots(figsize=(8, 1.4 + _HEIGHT * len(shown)), layout="constrained")
        left = [0.0] * len(shown)
        for name, label, color in SPENT:
            share = f"{name.removesuffix('_ps')}_share"
            widths = [_ms(line) * float(str(line[share])) for line in shown]
            axes.barh(range(len(shown)), widths, left=left, color=color, label=label)
            left = [start + width for start, width in zip(left, widths, strict=True)]
        axes.set_yticks(range(len(shown)), labels)
        axes.invert_yaxis()
        axes.set_xlabel("a rank's time in an iteration (ms, simulated)")
        axes.grid(axis="y", visible=False)
        figure.legend(loc="outside upper center", ncols=len(SPENT))
        return save(figure, stem)


def _ms(line: Line) -> float:
    return int(str(line["iteration_ps"])) / PS_PER_MS
