"""The meaning of SwitchML's registers and packets: slots, versions, bitmaps of children."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import networkx as nx
import numpy as np

from ringleaf.core.headers import UDP_DST_AT
from ringleaf.ina.occupancy import Usage, usage_by_owner
from ringleaf.ina.reading import EntryFact, rows_of
from ringleaf.ina.switchml.wire import (
    BLOCK_AT,
    FIRST_UDP_PORT,
    HEADER_BYTES,
    MESSAGE_AT,
    POOL_INDEX_AT,
    RESULT,
    SIZE_NONE,
    UDP_PORTS,
    VALUES_AT,
    VERSION_SHIFT,
)
from ringleaf.switches.control.plane import ControlPlane
from ringleaf.switches.switch import Switch
from ringleaf.topologies.graph import neighbor_at

BLOCK_BITS = 32  # of an owner; the job is above

EVENTS = ("stranger", "malformed", "stale", "waiting", "answered", "sent again")
"""Rows of the counter `events`, as `p4/include/aggregation.p4` numbers them."""


def read_entry(
    graph: nx.Graph[str], switch: ControlPlane, index: int, cells: Mapping[str, int]
) -> list[EntryFact]:
    """Return an entry's slot, version, block, children, and whether it is a sum or the result.

    Where a job has several trees, a member's third key is the tree.
    """
    job, block = divmod(cells["owners"], 1 << BLOCK_BITS)
    members = [row for row in rows_of(switch, "members") if row.keys[0] == job]
    children = [row for row in members if "child" in row.arguments]
    base = children[0].arguments["base"] if children else 0
    trees = 1 + max((row.keys[2] for row in members if len(row.keys) > 2), default=0)
    tree = (index - base) // 2 % trees
    children = [row for row in children if trees == 1 or row.keys[2] == tree]
    bits = {
        row.arguments["child"]: neighbor_at(graph, switch.name, row.keys[1]) for row in children
    }
    bitmap = cells["bitmaps"]
    state = "result" if cells["published"] else "sum"
    if state == "sum" and children and bitmap == children[0].arguments["children"]:
        state = "complete"  # and on its way to the parent
    facts = [
        EntryFact("slot", str((index - base) // 2)),
        EntryFact("version", str((index - base) % 2)),
        EntryFact("block", str(block)),
        *([EntryFact("tree", str(tree))] if trees > 1 else []),
        EntryFact(
            "bitmap",
            f"{bitmap:0{len(bits)}b}",
            tuple((bits[bit], bool(bitmap & bit)) for bit in sorted(bits)),
        ),
        EntryFact("holds", state),
    ]
    return [EntryFact("job", str(job)), *facts] if job != 1 else facts


def usage(switches: Sequence[Switch], jobs: int) -> Usage:
    """Return what counts the slots with a version with a sum that waits for its result."""
    return usage_by_owner(
        *(switches, jobs), owners="owners", used="bitmaps", done="published", versions=2
    )


def read_packet(data: bytes) -> str:
    """Return `update of block 3, slot 1 version 1` and the like; "" if it is not SwitchML's."""
    return describe(data, FIRST_UDP_PORT)


def describe(data: bytes, first_port: int, without: str = "exponent only") -> str:
    """Return what `read_packet` does, for packets to the 16 UDP ports from the first one on.

    `without` says what a packet without values means.
    """
    port = int.from_bytes(data[UDP_DST_AT : UDP_DST_AT + 2])
    if not first_port <= port < first_port + UDP_PORTS:
        return ""
    header = data[MESSAGE_AT : MESSAGE_AT + HEADER_BYTES]
    kind = "result" if header[0] >> 4 == RESULT else "update"
    if header[0] & 7 == SIZE_NONE:
        kind += f" ({without})"
    block = int.from_bytes(data[BLOCK_AT : BLOCK_AT + 4])
    pool = int.from_bytes(data[POOL_INDEX_AT : POOL_INDEX_AT + 2])
    slot, version = pool & (1 << VERSION_SHIFT) - 1, pool >> VERSION_SHIFT
    return f"{kind} of block {block}, slot {slot} version {version}"


def read_values(data: bytes) -> tuple[int, ...]:
    """Return the packet's lanes, signed."""
    if not read_packet(data) or data[MESSAGE_AT] & 7 == SIZE_NONE:
        return ()
    return tuple(np.frombuffer(data[VALUES_AT:], ">i4").tolist())


def read_counter(name: str, row: int) -> str:
    """Return the event that a row of `events` counts."""
    return EVENTS[row] if name == "events" and row < len(EVENTS) else f"{name}[{row}]"
