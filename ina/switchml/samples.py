"""SwitchML's packets for examples and measurements of its P4 programs."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import networkx as nx

from ringleaf.core.ethernet import group_mac
from ringleaf.core.headers import ECN_CAPABLE
from ringleaf.core.units import format_count
from ringleaf.ina.samples import Example, Packet, SampleRound, drawn_values, star, told_values
from ringleaf.ina.switchml import wire
from ringleaf.ina.switchml.control import SwitchmlJob, entities
from ringleaf.ina.systems import LANES
from ringleaf.topologies.frames import host_frame
from ringleaf.topologies.graph import attachment, hosts, port
from ringleaf.topologies.trees import AggregationTree, aggregation_tree

_JOB = 1
_TO = group_mac(wire.group_address(_JOB)), wire.group_address(_JOB)
_UDP_PORT = wire.udp_port(_JOB)
_SLOTS = 64

Entries = Callable[["nx.Graph[str]", AggregationTree, SwitchmlJob], Mapping[str, list[Any]]]
"""A function that makes the entries of switches for a job over a tree."""


def example(
    lanes: int, entries: Entries, *, udp_port: int = _UDP_PORT, tail: bytes = b""
) -> Example:
    """Return the last of three workers' updates, which completes slot 0's sum.

    `tail` ends the header, for systems that have a longer one.
    """
    graph = star(3)
    workers = hosts(graph)
    root = attachment(graph, workers[0])
    job = SwitchmlJob(_JOB, slots=4, lanes=lanes)
    updates = []
    for rank, worker in enumerate(workers):
        body = update_head(lanes, 0, 0, 127 + rank) + tail + told_values(rank, lanes)
        frame = host_frame(graph, worker, _TO, udp_port, body, tos=ECN_CAPABLE, identification=1)
        updates.append((port(graph, root, worker), frame))
    return Example(
        graph,
        root,
        list(entries(graph, aggregation_tree(graph, workers), job)[root]),
        updates,
        f"{root} has the updates of {format_count(len(workers) - 1, 'worker')}; this one "
        "completes the sum",
    )


def slots_round(
    lanes: int, entries: Entries, *, udp_port: int = _UDP_PORT, tail: bytes = b""
) -> SampleRound:
    """Return two rounds of all slots, as 8 workers send them; `tail` as for `example`."""
    graph = star(8)
    root = attachment(graph, hosts(graph)[0])
    job = SwitchmlJob(_JOB, _SLOTS, lanes=lanes)
    return SampleRound(
        graph,
        root,
        list(entries(graph, aggregation_tree(graph, hosts(graph)), job)[root]),
        _updates(graph, root, lanes, udp_port, tail),
        number_at=wire.BLOCK_AT,
        number_step=2 * _SLOTS,  # a packet's slot and version are right for every such block
    )


def _updates(
    graph: nx.Graph[str], root: str, lanes: int, udp_port: int, tail: bytes
) -> list[Packet]:
    workers = hosts(graph)
    values = drawn_values(len(workers), lanes)
    updates = []
    for block in range(2 * _SLOTS):
        version, slot = divmod(block, _SLOTS)
        head = update_head(lanes, block, version << wire.VERSION_SHIFT | slot, 127) + tail
        for worker, own in zip(workers, values, strict=True):
            frame = host_frame(graph, worker, _TO, udp_port, head + own)
            updates.append((port(graph, root, worker), frame))
    return updates


def update_head(lanes: int, block: int, pool_index: int, exponent: int) -> bytes:
    """Return the header of a block's update."""
    first = wire.UPDATE << 4 | wire.CODES[lanes]
    return struct.pack(">BBIHBB", first, _JOB, block, pool_index, exponent, 0)


EXAMPLES = {f"switchml-{lanes}": partial(example, lanes, entities) for lanes in LANES}
ROUNDS = {f"switchml-{lanes}": partial(slots_round, lanes, entities) for lanes in LANES}
