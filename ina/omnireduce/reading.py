"""The meaning of OmniReduce's packets: blocks of a slot's round; switches only forward them."""

from __future__ import annotations

from collections.abc import Mapping

import networkx as nx

from ringleaf.core.headers import UDP_DST_AT
from ringleaf.core.units import format_count
from ringleaf.ina.omnireduce.wire import (
    FIRST_UDP_PORT,
    MESSAGE_AT,
    PRESENT_AT,
    RESULT,
    ROUND_AT,
    SLOT_AT,
    UDP_PORTS,
    WORKER_AT,
)
from ringleaf.ina.reading import EntryFact
from ringleaf.switches.control.plane import ControlPlane


def read_entry(
    _graph: nx.Graph[str], _switch: ControlPlane, index: int, cells: Mapping[str, int]
) -> list[EntryFact]:
    """Return the registers as they are: the system has none in switches."""
    return [EntryFact("index", str(index)), *(EntryFact(n, str(v)) for n, v in cells.items())]


def read_packet(data: bytes) -> str:
    """Return `update of round 0, slot 1, 2 blocks` and the like; "" if it is not OmniReduce's."""
    port = int.from_bytes(data[UDP_DST_AT : UDP_DST_AT + 2])
    if not FIRST_UDP_PORT <= port < FIRST_UDP_PORT + 2 * UDP_PORTS:
        return ""
    kind = "result" if data[MESSAGE_AT] >> 4 == RESULT else "update"
    number = int.from_bytes(data[ROUND_AT:WORKER_AT])
    slot = int.from_bytes(data[SLOT_AT:ROUND_AT])
    blocks = format_count(data[PRESENT_AT].bit_count(), "block")
    return f"{kind} of round {number}, slot {slot}, {blocks}"


def read_values(_data: bytes) -> tuple[int, ...]:
    """Return nothing: each block of a packet may have a sum of other ranks than the next one."""
    return ()


def read_counter(name: str, row: int) -> str:
    """Return a counter's row as it is."""
    return f"{name}[{row}]"
