"""The time of a layer pipeline by formula: stages' computation and lines, one behind the other.

With m messages alike, the last result is there when the first message has passed all stages, and
the slowest of them has worked m - 1 times more: a stage takes the longer of its computation and
its message's bytes over the line, since one overlaps with the other. Acknowledgements are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import networkx as nx

from ringleaf.core.ethernet import LINE_OVERHEAD_BYTES
from ringleaf.core.units import serialize_ps
from ringleaf.hosts.rc.wire import PACKET_OVERHEAD_BYTES
from ringleaf.topologies.graph import Link, hosts, link
from ringleaf.topologies.routing import path, routes


@dataclass(frozen=True, slots=True)
class StageLine:
    """The way of messages from one stage to the next.

    Args:
        links: Its links, in their order.
        mtu: Payload bytes of a full packet.
        inside_ps: The time that a packet spends in the hosts and switches on its way.
    """

    links: Sequence[Link]
    mtu: int
    inside_ps: int = 0

    def _packets_ps(self, size_bytes: int, rate_bps: int) -> list[int]:
        sizes = [min(self.mtu, size_bytes - at) for at in range(0, size_bytes, self.mtu)]
        over = PACKET_OVERHEAD_BYTES + LINE_OVERHEAD_BYTES
        return [serialize_ps(size + over, rate_bps) for size in sizes]

    def passage_ps(self, size_bytes: int) -> int:
        """Return the time from a message's first bit on the line to its last one at the end."""
        arrived = [0] * len(self._packets_ps(size_bytes, self.links[0].rate_bps))
        for each in self.links:
            free_ps = 0
            for number, time_ps in enumerate(self._packets_ps(size_bytes, each.rate_bps)):
                free_ps = max(free_ps, arrived[number]) + time_ps
                arrived[number] = free_ps
            arrived = [time_ps + each.delay_ps for time_ps in arrived]
        return arrived[-1] + self.inside_ps

    def turn_ps(self, size_bytes: int) -> int:
        """Return the time for which a message keeps its slowest link busy."""
        return max(sum(self._packets_ps(size_bytes, each.rate_bps)) for each in self.links)


def lines(
    graph: nx.Graph[str], mtu: int, *, host_delay_ps: int = 0, switch_delay_ps: int = 0
) -> list[StageLine]:
    """Return the way from each host to the next one.

    Args:
        graph: The topology.
        mtu: Payload bytes of a full packet.
        host_delay_ps: Of each packet, between an agent and its line, each way.
        switch_delay_ps: Of each packet in a switch.
    """
    table = routes(graph)
    ways = [path(graph, *pair, table=table) for pair in pairwise(hosts(graph))]
    return [
        StageLine(
            [link(graph, *ends) for ends in pairwise(way)],
            mtu,
            2 * host_delay_ps + (len(way) - 2) * switch_delay_ps,
        )
        for way in ways
    ]


@dataclass(frozen=True, slots=True)
class Formula:
    """A pipeline's times, in picoseconds.

    Attributes:
        first_ps: Until the first message's result.
        turn_ps: The slowest stage's time for each further message.
        limit: `compute` or `line`: which of its parts is the longer one.
        total_ps: Until the last result.
    """

    first_ps: int
    turn_ps: int
    limit: str
    total_ps: int


def formula(
    compute_ps: Sequence[int],
    message_bytes: Sequence[int],
    ways: Sequence[StageLine],
    *,
    messages: int,
    latency_ps: int,
) -> Formula:
    """Return the times of a pipeline.

    Args:
        compute_ps: By stage, the computation of a message.
        message_bytes: By stage but the last, the bytes of its result.
        ways: The ways to the next stages.
        messages: The number of messages.
        latency_ps: Time from a message's arrival to the program.
    """
    passing = [way.passage_ps(size) for way, size in zip(ways, message_bytes, strict=True)]
    turns = [way.turn_ps(size) for way, size in zip(ways, message_bytes, strict=True)]
    first_ps = sum(compute_ps) + sum(passing) + len(ways) * latency_ps
    turn_ps = max(*compute_ps, *turns)
    limit = "compute" if max(compute_ps) >= max(turns) else "line"
    return Formula(first_ps, turn_ps, limit, first_ps + (messages - 1) * turn_ps)
