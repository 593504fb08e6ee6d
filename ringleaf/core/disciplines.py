"""How a switch port may serve its queues: strict priority, WRR or DRR, as people write it.

    strict      the highest class that has a packet
    wrr         weighted round robin: as many packets of a class per round as its weight
    drr         deficit round robin (Shreedhar and Varghese, IEEE/ACM Trans. Networking 4(3),
                1996): bytes in proportion to weights, whatever packets' sizes are

In text, weights follow the name, of class 0 first: `drr:1,1,1,1,2,2,4,4`; without, class c has
weight c + 1. A class without packets gives its turn away, so the line is never idle for it.

These three are compiled into the event loop. Packages add others by entry points: each is one
handler (`ringleaf.core.compiled`) that the loop calls by address, and that returns a class:

    choose(arena, at, 0, now_ps) -> class   `at` are the port's queues; at least one has a packet

It reads the queues by the columns in `ringleaf.switches.engine.queues` (LENGTHS, CLASS_BYTES,
WEIGHTS, `first_bytes`), and may write TURN, CREDIT and DEFICITS, which are 0 at first, as it likes.
If it returns a class without packets, the highest one with any is served.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ringleaf.core.registry import Registry
from ringleaf.core.units import is_whole
from ringleaf.errors import ConfigError, choose

CLASSES = 8

STRICT = 0
WRR = 1
DRR = 2
OWN_DISCIPLINES = {"strict": STRICT, "wrr": WRR, "drr": DRR}
CALLED = 3  # the code of all others


@dataclass(frozen=True, slots=True)
class Discipline:
    """Another package's way of serving a port's queues.

    Args:
        name: Its name in the registry, by which people choose it.
        choose: A handler as described above.
    """

    name: str
    choose: Callable[..., int]


DISCIPLINES: Registry[Discipline] = Registry(
    "disciplines", "discipline", kind=Discipline, taken=lambda: OWN_DISCIPLINES
)
"""The port disciplines of other packages by name."""

MAX_WEIGHT = 1 << 20


@dataclass(frozen=True, slots=True)
class DisciplineChoice:
    """A discipline's code, the classes' weights (strict priority uses none), and its name.

    The name of a discipline of ours is "".
    """

    code: int = STRICT
    weights: tuple[int, ...] = tuple(range(1, CLASSES + 1))
    name: str = ""


def names() -> list[str]:
    """Return the names of all disciplines, ours first."""
    return [*OWN_DISCIPLINES, *DISCIPLINES]


def parse_discipline(text: str, where: str = "discipline") -> DisciplineChoice:
    """Read a discipline: `strict`, `wrr`, `drr:1,1,1,1,2,2,4,4`.

    Raises:
        ConfigError: If there is none of that name, or weights are not as many as classes.
    """
    name, colon, list_ = text.partition(":")
    code = OWN_DISCIPLINES.get(choose(where, "discipline", name, names()), CALLED)
    other = "" if name in OWN_DISCIPLINES else name
    if not colon:
        return DisciplineChoice(code, name=other)
    parts = list_.split(",")
    if code == STRICT or len(parts) != CLASSES or not all(map(_is_weight, parts)):
        raise ConfigError(
            f"{where}: weights are {CLASSES} whole numbers from 1 to {MAX_WEIGHT}, for wrr and "
            f"drr, got {text!r}"
        )
    return DisciplineChoice(code, tuple(map(int, parts)), other)


def _is_weight(text: str) -> bool:
    return is_whole(text) and 1 <= int(text) <= MAX_WEIGHT
