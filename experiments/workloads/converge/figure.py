"""Draw losses over steps, bytes and simulated time: a figure per part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from statistics import median
from typing import TYPE_CHECKING

from ringleaf.experiments.figures.style import INK, subplots
from ringleaf.experiments.workloads.converge.curve import Curve

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST = 7
"""Methods in a row of panels, besides the first of all."""

AXES = (
    ("steps", "gradients per rank"),
    ("bytes_sent", "sent by the busiest rank (KB)"),
    ("time_us", "time (ms, simulated)"),
)


def label(curve: Curve) -> str:
    """Return what tells a curve from the others of its part."""
    case = curve.case
    words = {"sparse": [case.method], "compressors": [case.method]}
    others = [case.method, case.algo if case.part == "collectives" else case.workload]
    return ", ".join(words.get(case.part, others))


def figures_of(curves: Sequence[Curve]) -> dict[str, Callable[[], Figure]]:
    """Return functions that draw each part of a plan, by the part's name."""
    parts: dict[str, list[Curve]] = {}
    for curve in curves:
        parts.setdefault(curve.case.part, []).append(curve)
    return {name: partial(draw, own) for name, own in parts.items()}


def draw(curves: Sequence[Curve]) -> Figure:
    """Draw a part: rows are models, each with a few methods; the first one is in all rows."""
    first, *others = dict.fromkeys(map(label, curves))
    groups = [[first, *others[at : at + MOST]] for at in range(0, max(len(others), 1), MOST)]
    models = list(dict.fromkeys(curve.case.model for curve in curves))
    rows = [(model, group) for model in models for group in groups]
    figure: Figure
    figure, plots = subplots(len(rows), 3, figsize=(12, 2.9 * len(rows)), squeeze=False)
    for row, (model, group) in zip(plots, rows, strict=True):
        chosen = [each for each in curves if each.case.model == model and label(each) in group]
        for axes, (field, title) in zip(row, AXES, strict=True):
            for curve in chosen:
                number = group.index(label(curve))
                scale = 1 if field == "steps" else 1000
                axes.plot(
                    [each / scale for each in getattr(curve, field)],
                    smooth(curve.loss),
                    color=INK if number == 0 else f"C{number - 1}",
                    label=label(curve),
                    linewidth=1.2,
                )
            if field == "bytes_sent":
                axes.set_xscale("symlog")
                axes.set_xlim(left=1)
            axes.set(xlabel=title, ylabel=f"test loss, {model}")
            axes.set_ylim(0, 3)
            axes.grid(alpha=0.3)
        row[-1].legend(loc="center left", bbox_to_anchor=(1.02, 0.5), fontsize=8)
    return figure


def smooth(losses: Sequence[float]) -> list[float]:
    """Return the median of each loss, the two before it and the two after it, at most."""
    places = range(len(losses))
    return [median(losses[max(at - 2, 0) : at + 3]) for at in places]
