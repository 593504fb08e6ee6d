"""The colour and marker of each algorithm: the same in every figure, whatever else is in it."""

from __future__ import annotations

from itertools import product
from zlib import crc32

from ringleaf.collectives.algorithm import Look
from ringleaf.collectives.files.registry import names_file
from ringleaf.collectives.registry import ALGORITHMS

_OTHER_COLORS = ("#4f9f5f", "#a05050", "#5c7cfa", "#c08a5a", "#8d6fa8", "#4fa3a3", "#c25b78")
_OTHER_MARKERS = "oDs^vPX*<>ph"
_OTHERS = tuple(Look(color, marker) for color, marker in product(_OTHER_COLORS, _OTHER_MARKERS))


def look_of(algo: str) -> Look:
    """Return an algorithm's look; if it has none, or is unknown, one by its name's checksum."""
    name = algo.partition(":")[0]  # settings and sketches have no look of their own
    known = None if names_file(algo) or name not in ALGORITHMS else ALGORITHMS[name].look
    return known or _OTHERS[crc32(algo.encode()) % len(_OTHERS)]
