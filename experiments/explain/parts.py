"""The parts of the time between a row's bound and its measured time.

The path of causes (`path.py`) says where all of the measured time went. Part of that the bound has,
too: its time on the line, of which some is because links are slower than others of their kind, and
its latency. The differences, kind by kind, are the parts, so they add up to the measured time
minus the bound.

A difference may be negative: a path that waits much may carry less data than the bound's link.
Then the waits overlap with work that the bound demands anyway, and the overlap is taken off the
other parts, in the order of ABSORB, so that no part is negative.
"""

from __future__ import annotations

from ringleaf.experiments.explain import findings as f
from ringleaf.experiments.explain.path import Path

ABSORB = (f.LATENCY, f.WAITING, f.QUEUEING, f.IMBALANCE, f.PROCESSORS, f.OTHER, f.RESENDS)
"""The order in which overlap is taken off."""


def lost(bound: f.BoundParts, path: Path, busiest_ps: int) -> dict[str, int]:
    """Return the parts of a path's time beyond a bound, in ps; they add up to the difference.

    Args:
        bound: The bound.
        path: The path of causes.
        busiest_ps: The most time that data, sent for the first time, takes on one link, if all were
            as fast as the best of their kind.
    """
    spent = path.spent_ps
    on_line_ps = spent[f.LINE] - bound.line_ps
    uneven_ps = min(max(busiest_ps - bound.line_ps, 0), max(on_line_ps, 0))
    parts = {
        f.LATENCY: spent[f.LINKS] + spent[f.SWITCHES] + spent[f.HOSTS] - bound.latency_ps,
        f.QUEUEING: on_line_ps - uneven_ps,
        f.IMBALANCE: uneven_ps + spent[f.SLOW] - bound.slow_ps,
        f.WAITING: spent[f.ANSWERS] + spent[f.RATE],
        f.RESENDS: spent[f.RESENDS],
        f.PROCESSORS: spent[f.PROCESSORS],
        f.OTHER: spent[f.OTHER],
    }
    return _without_overlap(parts)


def _without_overlap(parts: dict[str, int]) -> dict[str, int]:
    """Take negative parts off the others; what nothing absorbs stays in OTHER."""
    overlap_ps = -sum(min(time_ps, 0) for time_ps in parts.values())
    times_ps = {name: max(time_ps, 0) for name, time_ps in parts.items()}
    for name in ABSORB:
        taken_ps = min(overlap_ps, times_ps[name])
        times_ps[name] -= taken_ps
        overlap_ps -= taken_ps
    times_ps[f.OTHER] -= overlap_ps
    return times_ps
