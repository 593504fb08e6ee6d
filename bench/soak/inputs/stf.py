"""STF tests, whose statements are translated for a program of ours."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path

from bench.soak.inputs.device import device_program
from bench.soak.inputs.kind import STF, InputKind
from bench.soak.inputs.mutators import mutate_text
from ringleaf.errors import RingleafError


@cache
def _stf() -> list[bytes]:
    return [path.read_bytes() for path in sorted(STF.glob("*.stf"))]


def _draw_stf(rng: random.Random) -> bytes:
    return mutate_text(rng, rng.choice(_stf()))


def _feed_stf(data: bytes, folder: Path) -> None:
    from ringleaf.switches.stf.entries import EntryTranslator
    from ringleaf.switches.stf.parser import read_stf
    from ringleaf.switches.stf.statements import AddEntry, SetDefault

    path = folder / "test.stf"
    path.write_bytes(data)
    translator = EntryTranslator(device_program()[0])
    for statement in read_stf(path):
        try:
            if isinstance(statement, AddEntry):
                translator.add("here", statement)
            elif isinstance(statement, SetDefault):
                translator.set_default("here", statement)
        except RingleafError:
            pass  # the statement is of another program


KIND = InputKind(8, _draw_stf, _feed_stf)
