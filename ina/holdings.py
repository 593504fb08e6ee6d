"""Parts of the switches' memory that jobs hold, and may exchange while they run.

A job's part is a range of entries, slots or aggregators, the same in all switches. It can only be
changed while none of the job's tensors is under way: then no sum waits in the switches, and all of
the job's agents number blocks alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from ringleaf.core.units import PS_PER_S

if TYPE_CHECKING:
    import networkx as nx

    from ringleaf.core.arena import Arena

Updates = Mapping[str, Sequence[Any]]
"""P4Runtime entities with their verbs, as finsy's objects, by switch."""


@dataclass(frozen=True, slots=True)
class Holding:
    """The entries from `first` on, so many; none at all if `entries` is 0."""

    first: int = 0
    entries: int = 0

    @property
    def stop(self) -> int:
        """The first entry behind it."""
        return self.first + self.entries

    def overlaps(self, other: Holding) -> bool:
        """Return whether an entry is in both."""
        return self.first < other.stop and other.first < self.stop and 0 not in (
            self.entries,
            other.entries,
        )  # fmt: skip


NOTHING = Holding()


def entry_bps(graph: nx.Graph[str], elements: int, lanes: int) -> int:
    """Return the goodput of an entry that has so many elements at a time.

    A block takes half a round trip between hosts, the longest: a slot's worker is answered by a
    switch that is half-way, and an aggregator by a server that is half-way from its switch.
    """
    from ringleaf.topologies.routing import longest_rtt_ps  # loads networkx

    return 2 * 32 * elements * PS_PER_S // longest_rtt_ps(graph, 4 * lanes)


class Mover(Protocol):
    """Changes one job's holding.

    Attributes:
        holding: The job's present part.
        least: The fewest entries that the job can run with.
        most: The entries that the job can have in use at a time; more would be idle.
        available: The entries that a switch has, for all jobs together.
        entry_bps: Goodput that an entry brings.
    """

    holding: Holding
    least: int
    most: int
    available: int
    entry_bps: int

    def move(self, arena: Arena, holding: Holding) -> Updates:
        """Give agents another part; return what switches must be told, before anything is sent.

        None of the job's tensors may be under way.
        """
