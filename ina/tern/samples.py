"""Packets for examples and measurements of the P4 program that adds ternary gradients."""

from __future__ import annotations

import struct
from functools import partial

from ringleaf.ina.switchml.control import entities
from ringleaf.ina.tern.wire import FIRST_UDP_PORT, PLANE_BYTES, WORDS
from ringleaf.ina.vote.samples import VoteSamples, example, measured

_ONE = struct.pack(">f", 1.0)


def _values(number: int) -> bytes:
    """Return the scale and elements: of every eight, the one of the worker's number is 1."""
    ones = 1 << number % 8
    return _ONE + bytes([0xFF ^ ones]) * PLANE_BYTES + bytes([ones]) * PLANE_BYTES


BITS = VoteSamples(WORDS, FIRST_UDP_PORT, _values, entities, "ternary elements")

EXAMPLES = {"tern": partial(example, BITS)}
ROUNDS = {"tern": partial(measured, BITS)}
