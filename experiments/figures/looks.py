"""The colour and marker of each algorithm: the same in every figure, whatever else is in it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from zlib import crc32


@dataclass(frozen=True, slots=True)
class Look:
    """The colour and marker that an algorithm is drawn with."""

    color: str
    marker: str  # matplotlib's name


# Mid tones, which are visible on white and on dark. Colour-blind readers tell algorithms by the
# marker, so algorithms that can be in one figure have different ones. Looks never change: add a
# line for a new algorithm.
_LOOKS = {
    "ring": Look("#3f7fd1", "o"),
    "tree": Look("#92703c", "s"),
    "doubletree": Look("#e08a2b", "D"),
    "halvingdoubling": Look("#1f9d8b", "^"),
    "blueconnect": Look("#9467bd", "v"),
    "ps": Look("#7b8794", "X"),
    "switchml": Look("#d62f5c", "P"),
    "atp": Look("#1fb0d0", "*"),
    "omnireduce": Look("#d16fc4", "h"),
    "ssar-double": Look("#b8a11e", "<"),
    "ssar-split": Look("#5fae4b", ">"),
    "dsar-split": Look("#c23b22", "p"),
    # A figure never has two collectives.
    "reducescatter": Look("#3f7fd1", "H"),
    "allgather": Look("#1f9d8b", "8"),
    "broadcast": Look("#e08a2b", "d"),
    "reduce": Look("#d62f5c", "s"),
    "alltoall": Look("#9467bd", "o"),
}
_OTHER_COLORS = ("#4f9f5f", "#a05050", "#5c7cfa", "#c08a5a", "#8d6fa8", "#4fa3a3", "#c25b78")
_OTHER_MARKERS = "oDs^vPX*<>ph"
_OTHERS = tuple(Look(color, marker) for color, marker in product(_OTHER_COLORS, _OTHER_MARKERS))


def look_of(algo: str) -> Look:
    """Return an algorithm's look; if it is not in the table, by its name's checksum."""
    return _LOOKS.get(algo) or _OTHERS[crc32(algo.encode()) % len(_OTHERS)]
