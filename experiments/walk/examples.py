"""A packet worth following through a program, with its switch's entries.

Systems bring the examples of their programs; those of programs that only forward are here.
Entries are those that our control planes write; packets, those that our hosts send.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import replace

from ringleaf.core.headers import ECN_CAPABLE, PRIORITY_SHIFT
from ringleaf.errors import ConfigError
from ringleaf.ina.registry import of_programs
from ringleaf.ina.samples import Example
from ringleaf.networks.adaptive import adaptive_rows
from ringleaf.networks.forwarding import forwarding_entities, tensor_queues
from ringleaf.switches.p4runtime.table_rows import entities_of
from ringleaf.topologies.addresses import ipv4
from ringleaf.topologies.frames import host_frame, switch_mac
from ringleaf.topologies.graph import attachment, hosts, port
from ringleaf.topologies.registry import build
from ringleaf.topologies.valiant import with_ugal

ROCE_PORT = 4791
SEND_ONLY = 4  # RoCEv2's opcode, reliable connection


def example(program: str) -> Example:
    """Return the example of a program, with the entities that forward.

    Raises:
        ConfigError: If it has none.
    """
    known = examples()
    if program not in known:
        raise ConfigError(
            f"trace: there are examples for {', '.join(known)}, got {program!r}; "
            "give --packet and --entries"
        )
    sample = known[program]()
    forwarding = forwarding_entities(sample.graph)[sample.switch]
    return replace(sample, entities=[*sample.entities, *forwarding])


def examples() -> dict[str, Callable[[], Example]]:
    """Return functions that make the examples, by the program's name."""
    known = dict(PLAIN)
    for name, (_, make) in of_programs(lambda system: system.examples()).items():
        known.setdefault(name, make)
    return known


def _forward() -> Example:
    """Return a packet of h0 to a host below another leaf, where there are two ways up."""
    graph = build("leafspine,leaves=2,spines=2,hosts=2")
    source, target = hosts(graph)[0], hosts(graph)[-1]
    leaf = attachment(graph, source)
    to = switch_mac(graph, source), ipv4(graph, target)
    data = host_frame(graph, source, to, ROCE_PORT, bytes(16), tos=ECN_CAPABLE, identification=1)
    story = f"{leaf} has two ways to {target}: watch the hash choose one"
    return Example(graph, leaf, [], [(port(graph, leaf, source), data)], story)


def _ugal() -> Example:
    """Return a packet of h0 to a host of the next group, at a switch with empty queues."""
    graph = with_ugal(build("dragonfly,a=2,p=1,h=1"), 1)
    source, target = hosts(graph)[0], hosts(graph)[2]
    first = attachment(graph, source)
    to = switch_mac(graph, source), ipv4(graph, target)
    data = host_frame(graph, source, to, ROCE_PORT, bytes(16), tos=ECN_CAPABLE, identification=1)
    story = f"{first} has two ways to {target}, and empty queues: watch it take the usual one"
    rows = list(entities_of(adaptive_rows(graph)[first]))
    return Example(graph, first, rows, [(port(graph, first, source), data)], story)


def _tensorexpress() -> Example:
    """Return a packet of a tensor of priority 2, whose job has priority over all others."""
    graph = build("leafspine,leaves=2,spines=1,hosts=2")
    source, target = hosts(graph)[0], hosts(graph)[-1]
    leaf = attachment(graph, source)
    job, priority, queue = 5, 2, 6
    body = struct.pack(">BBHII", SEND_ONLY, 0, 0x8000 | job, 1, 0)
    to = switch_mac(graph, source), ipv4(graph, target)
    tos = priority << PRIORITY_SHIFT | ECN_CAPABLE
    data = host_frame(graph, source, to, ROCE_PORT, body, tos=tos, identification=1)
    return Example(
        graph,
        leaf,
        list(tensor_queues({(job, priority): queue, (None, priority): priority})),
        [(port(graph, leaf, source), data)],
        f"job {job}'s tensors of priority {priority} go by queue {queue}, others' by {priority}",
    )


PLAIN: Mapping[str, Callable[[], Example]] = {
    "forward": _forward,
    "tensorexpress": _tensorexpress,
    "ugal": _ugal,
}
