"""The meaning of NetReduce's registers and packets: positions of a ring's connections, and sums."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import networkx as nx
import numpy as np

from ringleaf.core.headers import UDP_DST_AT
from ringleaf.core.units import format_count
from ringleaf.hosts.rc.wire import (
    ACKNOWLEDGE,
    CNP,
    CREDIT_MASK,
    CREDITS,
    CUT,
    HEAD_BYTES,
    ICRC_BYTES,
    OPCODE_AT,
    PROBE,
    PSN_AT,
    RNR_NAK,
    SEND_FIRST,
    SEND_LAST,
    SEND_MIDDLE,
    SEND_ONLY,
    SEQUENCE_NAK,
    SYNDROME_AT,
)
from ringleaf.ina.netreduce.wire import FIRST_UDP_PORT, LANES, UDP_PORTS
from ringleaf.ina.reading import EntryFact
from ringleaf.ina.switchml import reading as switchml
from ringleaf.ina.switchml.reading import read_counter, usage
from ringleaf.switches.control.plane import ControlPlane

__all__ = ["read_counter", "read_entry", "read_packet", "read_values", "usage"]

POSITION_SHIFT = 8
"""A block is a position in its upper bits, as `p4/netreduce.p4` has it."""

SUM_OF_ALL = 1
"""The second byte of the BTH of a sum on its way from the root to other switches."""

DATA_BYTES = tuple(HEAD_BYTES + 4 * lanes + ICRC_BYTES for lanes in LANES)
"""Lengths of the frames that switches add up."""

SENDS = (SEND_FIRST, SEND_MIDDLE, SEND_LAST, SEND_ONLY)
NEGATIVE = {RNR_NAK: "receiver not ready", SEQUENCE_NAK: "packet missing"}
OTHERS = {CNP: "congestion notification", PROBE: "probe", CUT: "data cut off"}


def read_entry(
    graph: nx.Graph[str], switch: ControlPlane, index: int, cells: Mapping[str, int]
) -> list[EntryFact]:
    """Return what an entry of SwitchML's is, with the position in place of a block."""
    return [
        replace(fact, name="position", text=str(int(fact.text) >> POSITION_SHIFT))
        if fact.name == "block"
        else fact
        for fact in switchml.read_entry(graph, switch, index, cells)
    ]


def read_packet(data: bytes) -> str:
    """Return `data, PSN 3` and the like; "" if the packet is not NetReduce's."""
    port = int.from_bytes(data[UDP_DST_AT : UDP_DST_AT + 2])
    if not FIRST_UDP_PORT <= port < FIRST_UDP_PORT + UDP_PORTS:
        return ""
    psn = int.from_bytes(data[PSN_AT : PSN_AT + 3])
    opcode = data[OPCODE_AT]
    if opcode == ACKNOWLEDGE:
        return f"{_answer(data[SYNDROME_AT])}, PSN {psn}"
    if opcode not in SENDS:
        return f"{OTHERS.get(opcode, f'opcode {opcode:#04x}')}, PSN {psn}"
    return f"{'sum' if data[OPCODE_AT + 1] == SUM_OF_ALL else 'data'}, PSN {psn}"


def _answer(syndrome: int) -> str:
    """Return what an acknowledgement says: it, or why not, and for how many messages is room."""
    if (negative := NEGATIVE.get(syndrome & ~CREDIT_MASK)) is not None:
        return negative
    code = syndrome & CREDIT_MASK
    if code >= len(CREDITS):  # the code for no credits at all, of receivers that count none
        return "acknowledgement"
    return f"acknowledgement with {format_count(CREDITS[code], 'receive')} posted"


def read_values(data: bytes) -> tuple[int, ...]:
    """Return the packet's lanes, signed; none if it is no packet of data."""
    if not read_packet(data) or data[OPCODE_AT] not in SENDS or len(data) not in DATA_BYTES:
        return ()
    return tuple(np.frombuffer(data[HEAD_BYTES:-ICRC_BYTES], ">i4").tolist())
