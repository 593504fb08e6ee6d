"""BMv2 JSON, changed and read until its module is Python byte code."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path

from bench.soak.inputs.kind import PROGRAMS, InputKind
from bench.soak.inputs.mutators import mutate_bytes, mutate_json
from ringleaf.core.shipped import P4_BUILD
from ringleaf.switches.program import Program

MOST_BYTES = 2 << 20  # of a changed program: larger ones take long to be refused
LARGEST = 60_000  # bytes of a program that is worth changing


@cache
def _programs() -> list[bytes]:
    paths = sorted([*P4_BUILD.glob("*.json"), *PROGRAMS.glob("*.json")])
    return [path.read_bytes() for path in paths if path.stat().st_size < LARGEST]


def _draw_program(rng: random.Random) -> bytes:
    data = rng.choice(_programs())
    changed = mutate_json(rng, data)
    return changed if len(changed) <= MOST_BYTES else mutate_bytes(rng, data)


def _feed_program(data: bytes, folder: Path) -> None:
    path = folder / "program.json"
    path.write_bytes(data)
    Program.load(path)


KIND = InputKind(24, _draw_program, _feed_program)
