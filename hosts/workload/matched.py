"""A graph whose nodes are matched: which of them are one collective, or one message."""

from __future__ import annotations

from dataclasses import dataclass

from ringleaf.hosts.workload.graph import CalledCollective, Graph


@dataclass(frozen=True, slots=True)
class MatchedWork:
    """A collective, or a message from the first of two ranks to the second.

    Attributes:
        call: The collective; None: a message.
        ranks: The ranks that take part, in the order of their group.
        places: By rank that takes part, the place of its node among its rank's nodes.
        size_bytes: Bytes that each rank brings in; the message's length.
        root: The place of the root among `ranks`.
        group: The place of its group among the graph's; -1: a message.
        label: The traffic that it belongs to.
        name: The first rank's name of it.
        is_eager: Whether it is a message that leaves before its receiver has reached it.
    """

    call: CalledCollective | None
    ranks: tuple[int, ...]
    places: tuple[int, ...]
    size_bytes: int
    root: int = 0
    group: int = -1
    label: str = ""
    name: str = ""
    is_eager: bool = False

    @property
    def is_alone(self) -> bool:
        """Whether there is nobody to exchange anything with."""
        return len(self.ranks) == 1


PlacesOfRank = tuple[tuple[int, ...], ...]
"""By place of a rank's node, the places of others."""

Places = tuple[PlacesOfRank, ...]
"""By rank and place of a node, the places of others."""


@dataclass(frozen=True, slots=True)
class Matched:
    """A graph whose nodes are matched; none of them would wait forever.

    Attributes:
        graph: The graph.
        meetings: All collectives and messages.
        meeting_of: By rank and place of a node, the number of its meeting; -1: it computes.
        after: By rank and place of a node, the places of the nodes that must have ended before it.
        begun: Likewise, of those that must have begun.
    """

    graph: Graph
    meetings: tuple[MatchedWork, ...]
    meeting_of: tuple[tuple[int, ...], ...]
    after: Places
    begun: Places
