"""Places on a circle, for drawings of networks that have no tiers."""

from __future__ import annotations

from math import cos, pi, sin

from ringleaf.topologies.graph import Point

APART = 1.1
"""The least room from one switch to the next, in the units of drawings."""

BESIDE = 0.55
"""The least room from one host to the next."""

OUT = 1.3
"""The room from the switches' circle to that of their hosts."""


class Circle:
    """Switches on a circle, and the hosts of each outside it, clockwise from the top.

    Heights are multiples of 1/4, so that a terminal has few rows.

    Args:
        switches: Number of switches, one after the other.
        hosts: Number of hosts, those of one switch after the other.
    """

    def __init__(self, switches: int, hosts: int) -> None:
        self._switches = switches
        self._hosts = hosts
        around = max(switches * APART, hosts * BESIDE - 2 * pi * OUT)
        self._radius = max(around / (2 * pi), 0.8)

    def switch(self, number: int) -> Point:
        """Return the place of a switch, by its number on the circle."""
        return _at(self._radius, (number + 0.5) / self._switches)

    def host(self, rank: int) -> Point:
        """Return the place of a host, by its rank."""
        return _at(self._radius + OUT, (rank + 0.5) / self._hosts)

    def inner(self, number: int, count: int) -> Point:
        """Return one of some places within the circle of switches."""
        return _at(self._radius * 0.6, (number + 0.5) / count)


def _at(radius: float, turn: float) -> Point:
    x, y = radius * sin(2 * pi * turn), radius * cos(2 * pi * turn)
    return (round(x, 3), round(4 * y) / 4)
