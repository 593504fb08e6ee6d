"""Packets for examples and measurements of P4 programs whose elements have a few bits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import networkx as nx

from ringleaf.core.ethernet import group_mac
from ringleaf.core.headers import ECN_CAPABLE
from ringleaf.ina.samples import Example, Packet, SampleRound, star
from ringleaf.ina.switchml import samples
from ringleaf.ina.switchml.control import SwitchmlJob
from ringleaf.ina.switchml.wire import BLOCK_AT, VERSION_SHIFT, group_address
from ringleaf.ina.vote.control import entities
from ringleaf.ina.vote.wire import FIRST_UDP_PORT, SIGNS, WORDS
from ringleaf.topologies.frames import host_frame
from ringleaf.topologies.graph import attachment, hosts, port
from ringleaf.topologies.trees import AggregationTree, aggregation_tree

_JOB = 1
_SLOTS = 64
_TO = group_mac(group_address(_JOB)), group_address(_JOB)


@dataclass(frozen=True, slots=True)
class VoteSamples:
    """The packets of a system.

    Args:
        words: Words of 4 bytes in a host's packet.
        first_port: The first of its UDP ports.
        values: Returns all that follows SwitchML's header, by worker's number.
        entities: Makes the entities of switches.
        what: The elements, for people.
    """

    words: int
    first_port: int
    values: Callable[[int], bytes]
    entities: Callable[[nx.Graph[str], AggregationTree, SwitchmlJob], Mapping[str, Sequence[Any]]]
    what: str


def _packets(bits: VoteSamples, graph: nx.Graph[str], blocks: int) -> list[Packet]:
    """Return all hosts' packets for so many blocks."""
    root = attachment(graph, hosts(graph)[0])
    packets = []
    for block in range(blocks):
        version, slot = divmod(block, _SLOTS)
        head = samples.update_head(bits.words, block, version << VERSION_SHIFT | slot, 0)
        for number, worker in enumerate(hosts(graph)):
            body = head + bits.values(number)
            udp_port = bits.first_port + _JOB
            frame = host_frame(
                graph, worker, _TO, udp_port, body, tos=ECN_CAPABLE, identification=1
            )
            packets.append((port(graph, root, worker), frame))
    return packets


def _describe(bits: VoteSamples, graph: nx.Graph[str]) -> list[object]:
    root = attachment(graph, hosts(graph)[0])
    job = SwitchmlJob(_JOB, _SLOTS, lanes=bits.words)
    return list(bits.entities(graph, aggregation_tree(graph, hosts(graph)), job)[root])


def example(bits: VoteSamples) -> Example:
    """Return the last of three workers' packets, which completes the count."""
    graph = star(3)
    root = attachment(graph, hosts(graph)[0])
    story = f"{root} has the {bits.what} of 2 workers; this one completes the count"
    return Example(graph, root, _describe(bits, graph), _packets(bits, graph, 1), story)


def measured(bits: VoteSamples) -> SampleRound:
    """Return two windows of blocks from 8 workers."""
    graph = star(8)
    root = attachment(graph, hosts(graph)[0])
    return SampleRound(
        graph,
        root,
        _describe(bits, graph),
        _packets(bits, graph, 2 * _SLOTS),
        number_at=BLOCK_AT,
        number_step=2 * _SLOTS,
    )


def _signs(number: int) -> bytes:
    """Return votes, of which every eighth is for."""
    return bytes([1 << number]) * (SIGNS // 8)


BITS = VoteSamples(WORDS, FIRST_UDP_PORT, _signs, entities, "votes")

EXAMPLES = {"vote": partial(example, BITS)}
ROUNDS = {"vote": partial(measured, BITS)}
