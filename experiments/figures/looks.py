"""The colour and marker of each algorithm: the same in every figure, whatever else is in it."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from zlib import crc32

from ringleaf.collectives.algorithm import Look
from ringleaf.collectives.files.registry import names_file
from ringleaf.collectives.registry import ALGORITHMS

_OTHER_COLORS = ("#4f9f5f", "#a05050", "#5c7cfa", "#c08a5a", "#8d6fa8", "#4fa3a3", "#c25b78")
_OTHER_MARKERS = "oDs^vPX*<>ph"
_OTHERS = tuple(Look(color, marker) for color, marker in product(_OTHER_COLORS, _OTHER_MARKERS))


_SPARE_COLORS = (
    *("#3f7fd1", "#e08a2b", "#1f9d8b", "#d62f5c", "#9467bd", "#92703c", "#7b8794", "#b8a11e"),
    *("#1fb0d0", "#d16fc4", "#5fae4b", "#b0573c"),
)
_NEAR = 96
"""The distance below which two colours are taken for one, in a line or a narrow bar."""


def looks_of(algos: Iterable[str]) -> dict[str, Look]:
    """Return the looks of a figure's algorithms, of which no two have the same colour.

    Each has its own, as in every other figure, unless an earlier one's can't be told from it.
    """
    own = {algo: look_of(algo) for algo in algos}
    looks: dict[str, Look] = {}
    for algo, look in own.items():
        used = [each.color for each in looks.values()]
        if _is_near(look.color, used):
            all_used = [*used, *(each.color for each in own.values())]
            spare = (color for color in _SPARE_COLORS if not _is_near(color, all_used))
            look = Look(next(spare, look.color), look.marker)
        looks[algo] = look
    return looks


def _is_near(color: str, others: Iterable[str]) -> bool:
    """Return whether a colour can't be told from one of the others.

    The distance is weighted by the mean red, as eyes are (compuphase.com/cmetric.htm).
    """
    red, green, blue = _parts(color)
    for other in map(_parts, others):
        mean = (red + other[0]) / 2
        distance = (
            (2 + mean / 256) * (red - other[0]) ** 2
            + 4 * (green - other[1]) ** 2
            + (2 + (255 - mean) / 256) * (blue - other[2]) ** 2
        )
        if distance < _NEAR**2:
            return True
    return False


def _parts(color: str) -> tuple[int, int, int]:
    return int(color[1:3], 16), int(color[3:5], 16), int(color[5:7], 16)


def look_of(algo: str) -> Look:
    """Return an algorithm's look; if it has none, or is unknown, one by its name's checksum."""
    name = algo.partition(":")[0]  # settings and sketches have no look of their own
    known = None if names_file(algo) or name not in ALGORITHMS else ALGORITHMS[name].look
    return known or _OTHERS[crc32(algo.encode()) % len(_OTHERS)]
