"""The unit in which a figure has times."""

from __future__ import annotations

from typing import NamedTuple

from ringleaf.core.units import PS_PER_MS, PS_PER_S, PS_PER_US

_LEAST = 5  # of a unit: 4 ms are 4,000 µs


class ClockUnit(NamedTuple):
    """A unit of time: its name, and its length."""

    name: str
    ps: int


def unit_of(time_ps: float) -> ClockUnit:
    """Return the unit for figures of such times: the longest one that they have five of, or µs."""
    for unit in (ClockUnit("s", PS_PER_S), ClockUnit("ms", PS_PER_MS)):
        if time_ps > _LEAST * unit.ps:
            return unit
    return ClockUnit("µs", PS_PER_US)
