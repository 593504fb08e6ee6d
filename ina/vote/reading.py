"""The meaning of registers and packets of votes: SwitchML's, at ports of their own."""

from __future__ import annotations

from ringleaf.ina.switchml.reading import describe, read_counter, read_entry, usage
from ringleaf.ina.vote.wire import FIRST_UDP_PORT

__all__ = ["read_counter", "read_entry", "read_packet", "read_values", "usage"]


def read_packet(data: bytes) -> str:
    """Return `update of block 3, slot 1 version 1` and the like; "" if it is no packet of votes."""
    return describe(data, FIRST_UDP_PORT)


def read_values(_data: bytes) -> tuple[int, ...]:
    """Return nothing: packets carry bits, not whole numbers."""
    return ()
