"""The meaning of registers and packets of OmniReduce in switches: SwitchML's, and next blocks."""

from __future__ import annotations

from collections.abc import Mapping

import networkx as nx
import numpy as np

from ringleaf.ina.omnireduce_switch.wire import FIRST_UDP_PORT, NEXT_AT, NONE, VALUES_AT
from ringleaf.ina.reading import EntryFact
from ringleaf.ina.switchml import reading as switchml
from ringleaf.ina.switchml.reading import describe, read_counter, usage
from ringleaf.ina.switchml.wire import MESSAGE_AT, SIZE_NONE
from ringleaf.switches.control.plane import ControlPlane

__all__ = ["read_counter", "read_entry", "read_packet", "read_values", "usage"]


def read_entry(
    graph: nx.Graph[str], switch: ControlPlane, index: int, cells: Mapping[str, int]
) -> list[EntryFact]:
    """Return what an entry of SwitchML's is, and the least block that any child names next."""
    facts = switchml.read_entry(graph, switch, index, cells)
    return [*facts, EntryFact("next block", _name(cells["nexts"]))]


def read_packet(data: bytes) -> str:
    """Return `update of block 3, slot 1 version 1, next block 5` and the like.

    It is "" if the packet is not of this system.
    """
    words = describe(data, FIRST_UDP_PORT, without="no values")
    if not words:
        return ""
    return f"{words}, next block {_name(int.from_bytes(data[NEXT_AT:VALUES_AT]))}"


def _name(block: int) -> str:
    return "none" if block == NONE else str(block)


def read_values(data: bytes) -> tuple[int, ...]:
    """Return the packet's lanes, signed; none if it says that the block is zero."""
    if not read_packet(data) or data[MESSAGE_AT] & 7 == SIZE_NONE:
        return ()
    return tuple(np.frombuffer(data[VALUES_AT:], ">i4").tolist())
