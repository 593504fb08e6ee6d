"""Packets for examples and measurements of the P4 program that counts votes."""

from __future__ import annotations

import networkx as nx

from ringleaf.ethernet import group_mac
from ringleaf.headers import ECN_CAPABLE
from ringleaf.ina.samples import Example, Packet, Round, star
from ringleaf.ina.switchml import samples
from ringleaf.ina.switchml.control import SwitchmlJob
from ringleaf.ina.switchml.wire import BLOCK_AT, VERSION_SHIFT, group_address
from ringleaf.ina.vote.control import entities
from ringleaf.ina.vote.wire import FIRST_UDP_PORT, SIGNS, WORDS
from ringleaf.topologies.frames import host_frame
from ringleaf.topologies.graph import attachment, hosts, port
from ringleaf.topologies.trees import aggregation_tree

_JOB = 1
_SLOTS = 64
_TO = group_mac(group_address(_JOB)), group_address(_JOB)


def _votes(graph: nx.Graph[str], blocks: int) -> list[Packet]:
    """Return all hosts' votes for so many blocks; host i's are bytes 1 << i."""
    root = attachment(graph, hosts(graph)[0])
    found = []
    for block in range(blocks):
        version, slot = divmod(block, _SLOTS)
        head = samples.update_head(WORDS, block, version << VERSION_SHIFT | slot, 0)
        for number, worker in enumerate(hosts(graph)):
            body = head + bytes([1 << number]) * (SIGNS // 8)
            frame = host_frame(
                graph, worker, _TO, FIRST_UDP_PORT + _JOB, body, tos=ECN_CAPABLE, identification=1
            )
            found.append((port(graph, root, worker), frame))
    return found


def _told(graph: nx.Graph[str]) -> list[object]:
    root = attachment(graph, hosts(graph)[0])
    job = SwitchmlJob(_JOB, _SLOTS, lanes=WORDS)
    return list(entities(graph, aggregation_tree(graph, hosts(graph)), job)[root])


def _example() -> Example:
    graph = star(3)
    root = attachment(graph, hosts(graph)[0])
    story = f"{root} has the votes of 2 workers; this one decides"
    return Example(graph, root, _told(graph), _votes(graph, 1), story)


def _round() -> Round:
    graph = star(8)
    root = attachment(graph, hosts(graph)[0])
    return Round(
        graph,
        root,
        _told(graph),
        _votes(graph, 2 * _SLOTS),
        number_at=BLOCK_AT,
        number_step=2 * _SLOTS,
    )


EXAMPLES = {"vote": _example}
ROUNDS = {"vote": _round}
