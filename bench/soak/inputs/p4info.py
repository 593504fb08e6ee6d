"""P4Info as text, for a program of ours."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path

from bench.soak.inputs.device import device_program
from bench.soak.inputs.kind import PROGRAMS, InputKind
from bench.soak.inputs.mutators import mutate_text
from ringleaf.core.shipped import P4INFO_SUFFIX
from ringleaf.switches.program import Program


@cache
def _texts(pattern: str) -> list[bytes]:
    return [path.read_bytes() for path in sorted(PROGRAMS.glob(pattern))]


def _draw_p4info(rng: random.Random) -> bytes:
    return mutate_text(rng, rng.choice(_texts(f"*{P4INFO_SUFFIX}")))


def _feed_p4info(data: bytes, folder: Path) -> None:
    program, _ = device_program()
    path = folder / f"program{P4INFO_SUFFIX}"
    path.write_bytes(data)
    other = Program(program.parts, path)
    other.schema.check()
    assert other.encoder


KIND = InputKind(6, _draw_p4info, _feed_p4info)
