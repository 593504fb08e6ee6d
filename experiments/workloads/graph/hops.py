"""The arrivals of packets that a replay will have, counted before it runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import networkx as nx
import numpy as np
import numpy.typing as npt

from ringleaf.collectives.rows import AGGREGATE
from ringleaf.collectives.schedule import Schedule
from ringleaf.experiments.workloads.graph.schedules import ITEM_BYTES, Form, Scheduling, elements_of
from ringleaf.hosts.workload.matched import MatchedWork
from ringleaf.topologies.graph import attachment, distances, switch_graph


class _Shape(NamedTuple):
    """Meetings of one shape have the same messages, between other hosts."""

    elements: int
    form: Form


Traffic = npt.NDArray[np.int64]
"""Packets from each of a meeting's ranks to each, (ranks, ranks)."""


def count_hops(
    graph: nx.Graph[str],
    places: Sequence[str],
    meetings: Sequence[MatchedWork],
    scheduling: Scheduling,
    mtu_bytes: int,
) -> int:
    """Return the arrivals of data packets at switches and hosts, if none is lost.

    Args:
        graph: The topology.
        places: The host of each rank.
        meetings: All meetings.
        scheduling: Makes their schedules.
        mtu_bytes: Payload of a full packet.
    """
    shapes: dict[_Shape, Traffic] = {}
    counts: Counter[tuple[_Shape, tuple[int, ...]]] = Counter()
    for each in meetings:
        if each.is_alone:
            continue
        shape = _Shape(elements_of(each), scheduling.form(each))
        counts[shape, each.ranks] += 1
        if shape not in shapes:
            schedule = scheduling.schedule(each, shape.elements)
            shapes[shape] = _packets(schedule, shape.elements, mtu_bytes)
    links = _Links(graph, places)
    return sum(
        count * int((shapes[shape] * links.between(ranks)).sum())
        for (shape, ranks), count in counts.items()
    )


def _packets(schedule: Schedule, elements: int, mtu_bytes: int) -> Traffic:
    """Return the packets between ranks; sums of switches are two of each rank's whole tensor."""
    columns = schedule.columns
    edges = np.arange(schedule.chunks + 1) * elements // schedule.chunks
    packets = np.zeros((schedule.ranks, schedule.ranks), np.int64)
    goes = (columns.op != AGGREGATE) & ~schedule.is_local(columns)
    messages, nodes = columns.take(goes), schedule.nodes
    sizes = (edges[messages.stop] - edges[messages.start]) * ITEM_BYTES
    np.add.at(packets, (messages.src % nodes, messages.dst % nodes), -(-sizes // mtu_bytes))
    if columns.groups:
        packets += np.eye(schedule.ranks, dtype=np.int64) * (-(-elements * ITEM_BYTES // mtu_bytes))
    return packets


class _Links:
    """Numbers of links between the hosts of ranks, two of which are the hosts' own."""

    def __init__(self, graph: nx.Graph[str], places: Sequence[str]) -> None:
        peers = switch_graph(graph)
        self._below = [attachment(graph, host) for host in places]
        self._far = {start: distances(peers, start) for start in dict.fromkeys(self._below)}

    def between(self, ranks: Sequence[int]) -> Traffic:
        """Return the number of links on the way between ranks, of shape (ranks, ranks)."""
        at = [self._below[rank] for rank in ranks]
        return np.array([[self._far[a][b] + 2 for b in at] for a in at], np.int64)
