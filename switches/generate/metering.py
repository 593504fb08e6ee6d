"""Meters in generated code."""

from __future__ import annotations

from ringleaf.switches.generate.code import FunctionCode
from ringleaf.switches.source import PSA, MeterArray

COLOR_BITS = 2


def color(code: FunctionCode, meter: MeterArray, at: str) -> str:
    """Return code that runs the meter at `at` on the packet, and is its colour."""
    size = "U(length)" if meter.by_bytes else code.u(1)
    call = f"meter_color(state, {at}, {size}, U(now_ps))"
    if code.source.architecture is PSA:  # which numbers red, green, yellow; v1model from green
        return f"({call} + {code.u(1)}) % {code.u(3)}"
    return call
