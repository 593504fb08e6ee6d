"""Draw losses over steps, bytes and simulated time: a figure per part, a row per model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ringleaf.experiments.converge.run import Curve

COLOURS, LOOK = 10, ("-", "--", ":", "-.")
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


def draw(curves: Sequence[Curve], folder: Path) -> None:
    """Write a PNG per part of the plan to a folder."""
    import matplotlib as mpl

    mpl.use("Agg")
    for part in dict.fromkeys(curve.case.part for curve in curves):
        _draw_part([curve for curve in curves if curve.case.part == part], folder / f"{part}.png")


def _draw_part(curves: Sequence[Curve], path: Path) -> None:
    import matplotlib.pyplot as plt

    models = list(dict.fromkeys(curve.case.model for curve in curves))
    figure, plots = plt.subplots(
        len(models), 3, figsize=(12, 3.4 * len(models) + 1.2), squeeze=False, layout="constrained"
    )
    names = list(dict.fromkeys(map(label, curves)))
    for row, model in zip(plots, models, strict=True):
        for axes, (field, title) in zip(row, AXES, strict=True):
            for curve in curves:
                if curve.case.model != model:
                    continue
                number = names.index(label(curve))
                across = getattr(curve, field)
                scale = 1 if field == "steps" else 1000
                axes.plot(
                    [each / scale for each in across],
                    curve.loss,
                    LOOK[number // COLOURS % len(LOOK)],
                    color=f"C{number % COLOURS}",
                    label=label(curve),
                    linewidth=1.2,
                )
            if field != "steps":
                axes.set_xscale("symlog" if field == "bytes_sent" else "linear")
            axes.set(xlabel=title, ylabel=f"test loss, {model}")
            axes.set_ylim(0, 3)
            axes.grid(alpha=0.3)
    handles, labels = plots[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=6, fontsize=8)
    figure.savefig(path, dpi=110)
    plt.close(figure)
