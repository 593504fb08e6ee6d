"""The meaning of ATP's registers and packets: aggregators, their blocks and workers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import networkx as nx
import numpy as np

from ringleaf.core.headers import UDP_DST_AT
from ringleaf.ina.atp.limits import BITS
from ringleaf.ina.atp.wire import (
    AGGREGATOR_AT,
    COLLISION,
    FIRST_UDP_PORT,
    GRADIENT,
    INTEGERS,
    MESSAGE_AT,
    REQUEST,
    RESEND,
    SEQUENCE_AT,
    SIZE_AT,
    SIZE_MASK,
    SIZE_NONE,
    UDP_PORTS,
    VALUES_AT,
)
from ringleaf.ina.occupancy import Usage, usage_by_owner
from ringleaf.ina.reading import EntryFact, rows_of
from ringleaf.switches.control.plane import ControlPlane
from ringleaf.switches.switch import Switch
from ringleaf.topologies.graph import hosts

SEQUENCE_BITS = 32  # of a holder; the job is above

KINDS = {GRADIENT: "gradient", REQUEST: "request"}

OUTCOMES = (
    "taken",
    "added",
    "completed",
    "repeated",
    "passed",
    "collided",
    "merged",
    "replaced",
    "crossed",
    "freed",
    "preempted",  # ESA alone
)
"""Rows of the counter `outcomes`, as `p4/include/aggregators.p4` numbers them."""


def read_entry(
    graph: nx.Graph[str], switch: ControlPlane, index: int, cells: Mapping[str, int]
) -> list[EntryFact]:
    """Return an entry's aggregator, block and workers in the sum, and whether it is free."""
    job, block = divmod(cells["holders"], 1 << SEQUENCE_BITS)
    names = hosts(graph)  # worker w is rank w's host
    arrived, complete = cells["arrived"], _complete(switch, job)
    if len(names) > BITS:  # a bit is a rack, or a worker of one
        names = [f"bit {bit}" for bit in range(BITS)]
        complete = _complete_of(switch, job, block)
    waited = [bit for bit in range(complete.bit_length()) if complete >> bit & 1]
    state = "sum" if arrived else "free"
    if arrived and arrived == complete:
        state = "complete"
    facts = [
        EntryFact("aggregator", str(index)),
        EntryFact("block", str(block)),
        EntryFact(
            "bitmap",
            f"{arrived:0{len(waited)}b}",
            tuple((names[bit], bool(arrived >> bit & 1)) for bit in waited),
        ),
        EntryFact("holds", state),
    ]
    return [EntryFact("job", str(job)), *facts] if job != 1 else facts


def usage(switches: Sequence[Switch], jobs: int) -> Usage:
    """Return what counts the aggregators that are not free."""
    return usage_by_owner(switches, jobs, owners="holders", used="arrived")


def _complete(switch: ControlPlane, job: int) -> int:
    """Return the workers of a job that the switch waits for, for any of the job's servers."""
    workers = 0
    for row in rows_of(switch, "shares"):
        if row.keys[0] == job:
            workers |= row.arguments.get("complete", 0)
    return workers


def _complete_of(switch: ControlPlane, job: int, block: int) -> int:
    """Return the bits that the switch waits for in a block; they differ between a job's servers."""
    shares = [row for row in rows_of(switch, "shares") if row.keys[0] == job]
    servers = 1 + max((row.keys[1] for row in shares), default=0)
    own = [row for row in shares if row.keys[1] == block % servers]
    return own[0].arguments.get("complete", 0) if own else 0


def read_packet(data: bytes) -> str:
    """Return `gradient of block 3, aggregator 17` and the like; "" if the packet is not ATP's."""
    port = int.from_bytes(data[UDP_DST_AT : UDP_DST_AT + 2])
    if not FIRST_UDP_PORT <= port < FIRST_UDP_PORT + 2 * UDP_PORTS:
        return ""
    flags = data[MESSAGE_AT]
    kind = KINDS.get(flags >> 4, "parameters")
    block = int.from_bytes(data[SEQUENCE_AT : SEQUENCE_AT + 4])
    aggregator = int.from_bytes(data[AGGREGATOR_AT : AGGREGATOR_AT + 2])
    notes = [f"{kind} of block {block}", f"aggregator {aggregator}"]
    if flags & RESEND:
        notes.append("sent again")
    if flags & COLLISION:
        notes.append("collided")
    return ", ".join(notes)


def read_values(data: bytes) -> tuple[int, ...]:
    """Return the packet's lanes, if they are whole numbers."""
    if not read_packet(data) or not data[SIZE_AT] & INTEGERS:
        return ()
    if data[SIZE_AT] & SIZE_MASK == SIZE_NONE:
        return ()
    return tuple(np.frombuffer(data[VALUES_AT:], ">i4").tolist())


def read_counter(name: str, row: int) -> str:
    """Return the outcome that a row of `outcomes` counts."""
    return OUTCOMES[row] if name == "outcomes" and row < len(OUTCOMES) else f"{name}[{row}]"
