"""Slowdowns of flows by size: their times over those of the same flows alone in the network.

A flow alone takes the time of its packets on its way, stored and forwarded by each switch, and of
the acknowledgement of the last one on the way back. With ECMP, that is one of the shortest paths,
and with UGAL the usual way, as all queues are empty.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import networkx as nx
import numpy as np

from ringleaf.experiments.bounds.bounds import Bounds, overhead_bytes
from ringleaf.experiments.workloads.graph.messages import Messages, Table, bin_edges
from ringleaf.experiments.workloads.graph.schedules import ITEM_BYTES
from ringleaf.topologies.detours import with_usual_ways

PERCENTILES = (50.0, 95.0, 99.0)

AETH_BYTES = 4  # of an acknowledgement, which has no payload


@dataclass(frozen=True, slots=True)
class Bin:
    """Flows of some sizes, and percentiles of their slowdowns.

    Attributes:
        most_bytes: The largest size; that of the bin before is too small.
        count: The number of flows.
        p50, p95, p99: The least slowdown that so many per cent of them don't exceed.
    """

    most_bytes: int
    count: int
    p50: float
    p95: float
    p99: float


def alone_ps(
    graph: nx.Graph[str],
    places: Sequence[str],
    messages: Messages,
    *,
    mtu_bytes: int,
    cc: str,
    message_overhead_ps: int,
) -> Table:
    """Return the time of each message, if it were alone.

    Args:
        graph: The topology.
        places: The host of each rank.
        messages: The messages.
        mtu_bytes: Payload of a full packet.
        cc: Congestion control of the hosts.
        message_overhead_ps: Time that a host takes for each message.
    """
    bounds = Bounds(with_usual_ways(graph), mtu_bytes=mtu_bytes, cc=cc)
    number = {host: at for at, host in enumerate(bounds.ways.hosts)}
    at = np.array([number[host] for host in places], np.int64)
    answer_bytes = overhead_bytes(cc) + AETH_BYTES
    source, target, sizes = messages.table[:, 0], messages.table[:, 1], messages.table[:, 2]
    there = bounds.ways.ways(at[source], at[target])
    back = bounds.ways.ways(at[target], at[source])
    whole = -(-sizes // ITEM_BYTES) * ITEM_BYTES
    rows = zip(there, back, whole.tolist(), strict=True)
    times_ps = [
        bounds.message_ps(way, size) + answer.alone_ps(*[answer_bytes] * 3)
        for way, answer, size in rows
    ]
    return np.array(times_ps, np.int64) + message_overhead_ps


def slowdowns(messages: Messages, ideal_ps: Table) -> list[Bin]:
    """Return the slowdowns of messages by size, in order."""
    sizes = messages.sizes_bytes
    return list(_bins(sizes, _factors(messages, ideal_ps))) if len(sizes) else []


def slowdown_of_all(messages: Messages, ideal_ps: Table) -> Bin | None:
    """Return the slowdowns of messages of all sizes together; None: there are no messages."""
    if not len(messages.table):
        return None
    return _bin(int(messages.sizes_bytes.max()), _factors(messages, ideal_ps))


def _factors(messages: Messages, ideal_ps: Table) -> np.ndarray:
    return messages.times_ps / np.maximum(ideal_ps, 1)


def _bins(sizes: Table, factors: np.ndarray) -> Iterator[Bin]:
    edges = bin_edges(sizes)
    of = np.searchsorted(edges, sizes)
    for place, most in enumerate(edges.tolist()):
        yield _bin(most, factors[of == place])


def _bin(most_bytes: int, factors: np.ndarray) -> Bin:
    percentiles = np.percentile(factors, PERCENTILES, method="inverted_cdf").tolist()
    return Bin(most_bytes, len(factors), *percentiles)
