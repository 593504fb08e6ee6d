"""Schedules: their text, after the format's name and a zero."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path

from bench.soak.inputs.kind import InputKind
from bench.soak.inputs.mutators import mutate_text
from ringleaf.collectives.files.algorithm import read_algorithm
from ringleaf.collectives.files.registry import FORMATS
from ringleaf.collectives.registry import ALGORITHMS


@cache
def _schedules() -> list[bytes]:
    made = [ALGORITHMS[name].build(3) for name in ("ring", "alltoall", "broadcast")]
    texts = [(name, FORMATS[name].write(each)) for name in FORMATS for each in made]
    return [f"{name}\0{text}".encode() for name, text in texts]


def _draw_schedule(rng: random.Random) -> bytes:
    name, _, text = rng.choice(_schedules()).partition(b"\0")
    if rng.random() < 0.4:
        return name + b"\0" + mutate_text(rng, text)
    digits = [place for place, letter in enumerate(text) if letter in b"0123456789"]
    changed = bytearray(text)
    for place in rng.sample(digits, min(len(digits), rng.choice((1, 2, 5)))):
        changed[place] = rng.choice(b"01239-")
    return name + b"\0" + bytes(changed)


def _feed_schedule(data: bytes, folder: Path) -> None:
    name, _, text = data.partition(b"\0")
    path = folder / f"schedule.{'xml' if name == b'xml' else 'csv'}"
    path.write_bytes(text)
    algorithm = read_algorithm(path)
    assert algorithm.ranks is not None
    algorithm.build(algorithm.ranks, size_bytes=1 << 20)


KIND = InputKind(8, _draw_schedule, _feed_schedule)
