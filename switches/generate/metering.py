"""Meters in generated code."""

from __future__ import annotations

from ringleaf.switches.generate.code import Code
from ringleaf.switches.source import MeterArray

COLOR_BITS = 2


def color(code: Code, meter: MeterArray, at: str) -> str:
    """Return code that runs the meter at `at` on the packet, and is its colour."""
    size = "U(length)" if meter.by_bytes else code.u(1)
    return f"meter_color(state, {at}, {size}, U(now_ps))"
