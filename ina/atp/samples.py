"""ATP's packets for examples and measurements of its P4 programs."""

from __future__ import annotations

import struct
from functools import partial

import networkx as nx

from ringleaf.core.ethernet import group_mac
from ringleaf.core.headers import ECN_CAPABLE
from ringleaf.core.units import format_count
from ringleaf.ina.atp import wire
from ringleaf.ina.atp.control import AtpJob, EntitiesOf, entities, first_aggregators
from ringleaf.ina.samples import Example, Packet, SampleRound, drawn_values, star, told_values
from ringleaf.topologies.addresses import ipv4, mac
from ringleaf.topologies.frames import host_frame, switch_mac
from ringleaf.topologies.graph import attachment, hosts, port

_JOB = 1
_UPWARD, _DOWNWARD = wire.gradient_port(_JOB), wire.parameter_port(_JOB)
_WINDOW = 64


def example(lanes: int, entities_of: EntitiesOf = entities) -> Example:
    """Return the last of three workers' gradients, which takes block 0's sum to the server."""
    graph = star(4)
    *workers, server = hosts(graph)
    rack = attachment(graph, server)
    job = AtpJob(_JOB, tuple(workers), (server,), aggregators=64, window=8, lanes=lanes)
    (aggregator, *_) = first_aggregators(job)
    gradients = []
    for number, worker in enumerate(workers):
        head = _header(wire.GRADIENT, lanes, 0, aggregator, number, proposal=0)
        to = switch_mac(graph, worker), ipv4(graph, server)
        body = head + told_values(number, lanes)
        frame = host_frame(graph, worker, to, _UPWARD, body, tos=ECN_CAPABLE, identification=1)
        gradients.append((port(graph, rack, worker), frame))
    return Example(
        graph,
        rack,
        list(entities_of(graph, job)[rack]),
        gradients,
        f"{rack} has the gradients of {format_count(len(workers) - 1, 'worker')}; this one "
        f"completes the sum, which goes to {server}",
    )


def blocks_round(lanes: int, entities_of: EntitiesOf = entities) -> SampleRound:
    """Return two windows of blocks from 8 workers of the server's rack, and their results.

    Eight gradients go on as one sum, and one result goes to eight workers.
    """
    graph = star(8)
    workers = tuple(hosts(graph))
    rack = attachment(graph, workers[-1])
    job = AtpJob(_JOB, workers, workers[-1:], aggregators=2 * _WINDOW, window=_WINDOW, lanes=lanes)
    return SampleRound(
        graph,
        rack,
        list(entities_of(graph, job)[rack]),
        _blocks(graph, rack, lanes),
        number_at=wire.SEQUENCE_AT,
        number_step=2 * _WINDOW,
    )


def _blocks(graph: nx.Graph[str], rack: str, lanes: int) -> list[Packet]:
    """Return each block's gradients of all hosts, of which the last is the server, and its result.

    A block's aggregator has the block's number.
    """
    workers = hosts(graph)
    server = workers[-1]
    to = mac(graph, server, 1), ipv4(graph, server)
    group = wire.group_address(_JOB, 0)
    values = drawn_values(len(workers), lanes)
    packets = []
    for block in range(2 * _WINDOW):
        for number, (worker, own) in enumerate(zip(workers, values, strict=True)):
            head = _header(wire.GRADIENT, lanes, block, block, number)
            frame = host_frame(graph, worker, to, _UPWARD, head + own)
            packets.append((port(graph, rack, worker), frame))
        body = _header(wire.PARAMETER, lanes, block, block, 0) + values[0]
        frame = host_frame(graph, server, (group_mac(group), group), _DOWNWARD, body)
        packets.append((port(graph, rack, server), frame))
    return packets


def _header(
    message: int,
    lanes: int,
    block: int,
    aggregator: int,
    worker: int,
    *,
    proposal: int = wire.NO_PROPOSAL,
) -> bytes:
    """Return the header of a block's packet."""
    first, size = message << 4, wire.SIZES[lanes]
    numbers = (first, _JOB, 0, size, block, aggregator, proposal, 1 << worker, worker, 0)
    return struct.pack(">BBBBIHHQBB", *numbers)


EXAMPLES = {
    f"{program}-{lanes}": partial(example, lanes)
    for program in ("atp", "atp-switchml")
    for lanes in wire.SIZES
}
ROUNDS = {f"atp-{lanes}": partial(blocks_round, lanes) for lanes in wire.SIZES}
