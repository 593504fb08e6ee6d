"""The program of the switch that messages, P4Info and statements are for."""

from __future__ import annotations

from functools import cache

from bench.soak.inputs.kind import PROGRAMS
from ringleaf.switches.program import Program


@cache
def device_program() -> tuple[Program, bytes]:
    path = PROGRAMS / "controller.json"
    return Program.load(path), path.read_bytes()
