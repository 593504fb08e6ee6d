"""The figure of circuits: when each was up, and when changes left them draining or dark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ringleaf.core.units import format_size
from ringleaf.experiments.figures import sheet
from ringleaf.experiments.figures.clock_unit import unit_of
from ringleaf.experiments.figures.looks import look_of
from ringleaf.experiments.figures.style import subplots
from ringleaf.experiments.records.circuit_spells import DARK, DRAINING, UP, Spell
from ringleaf.experiments.workloads.collective.rows import CollectiveRow, largest_bytes
from ringleaf.topologies.graph import natural

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ringleaf.experiments.workloads.collective.results import CollectiveResults

MOST_CIRCUITS = 64
"""More than so many circuits are not told apart: the first ones are drawn."""

_SHADES = {DRAINING: "#e8c46a", DARK: "#808080"}

Panel = tuple[CollectiveRow, Sequence[Spell]]


def panels_of(run: CollectiveResults) -> list[Panel]:
    """Return the rows of the largest size whose circuits changed, and what these did."""
    size = largest_bytes(run)
    rows = [row for row in run.rows if row.size_bytes == size and row.changes]
    return [(row, run.spells[row.algo, size]) for row in rows if (row.algo, size) in run.spells]


def draw_circuits(run: CollectiveResults, panels: Sequence[Panel]) -> Figure:
    """Draw when circuits were up, a panel for each algorithm, with one axis of time."""
    figure: Figure
    names = [_circuits(spells) for _, spells in panels]
    tall = [max(1.0, 0.35 + 0.13 * len(own)) for own in names]
    inches = sheet.size(6.6, sum(tall) + 0.7)
    figure, grid = subplots(
        *(len(panels), 1),
        figsize=inches,
        sharex=True,
        squeeze=False,
        height_ratios=tall,
    )
    longest_ps = max(row.time_ps for row, _ in panels)
    unit, unit_ps = unit_of(longest_ps)
    for axes, (row, spells), own in zip(grid.flat, panels, names, strict=True):
        _plot(axes, row, spells, own, unit_ps)
    grid.flat[-1].set_xlim(0, longest_ps / unit_ps)
    grid.flat[-1].set_xlabel(f"{run.clock} time ({unit})")
    size = format_size(panels[0][0].size_bytes)
    title = f"Circuits that were up, {size} on {run.topology}; grey: dark, yellow: draining"
    figure.suptitle(sheet.broken(title, inches[0], 10), x=0.01, ha="left", fontsize=10)
    return figure


def _circuits(spells: Sequence[Spell]) -> list[str]:
    """Return the circuits that were ever up, in natural order."""
    names = {spell.circuit for spell in spells if spell.state == UP}
    return sorted(names, key=lambda name: [natural(end) for end in name.split("-")])[:MOST_CIRCUITS]


def _plot(
    axes: Axes, row: CollectiveRow, spells: Sequence[Spell], names: Sequence[str], unit_ps: int
) -> None:
    place = {name: number for number, name in enumerate(names)}
    color = look_of(row.algo).color
    for spell in spells:
        start, length = spell.start_ps / unit_ps, (spell.end_ps - spell.start_ps) / unit_ps
        if spell.state in _SHADES:
            axes.axvspan(start, start + length, color=_SHADES[spell.state], alpha=0.4, linewidth=0)
        elif spell.circuit in place:
            axes.barh(place[spell.circuit], length, left=start, height=0.7, color=color)
    axes.axvline(row.time_ps / unit_ps, color="#808080", linestyle=":", linewidth=1)
    step = max(1, -(-len(names) // 16))
    axes.set_yticks(range(0, len(names), step), names[::step], fontsize=7)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.grid(visible=False, axis="y")
    axes.set_title(row.algo, loc="left", fontsize=10)
