"""How a switch port may serve its queues: strict priority, WRR or DRR, as people write it.

    strict      the highest class that has a packet
    wrr         weighted round robin: as many packets of a class per round as its weight
    drr         deficit round robin (Shreedhar and Varghese, IEEE/ACM Trans. Networking 4(3),
                1996): bytes in proportion to weights, whatever packets' sizes are

In text, weights follow the name, of class 0 first: `drr:1,1,1,1,2,2,4,4`; without, class c has
weight c + 1. A class without packets gives its turn away, so the line is never idle for it.
"""

from __future__ import annotations

from dataclasses import dataclass

from ringleaf.errors import ConfigError, choose
from ringleaf.units import is_whole

CLASSES = 8

STRICT = 0
WRR = 1
DRR = 2
SCHEDULERS = {"strict": STRICT, "wrr": WRR, "drr": DRR}

MAX_WEIGHT = 1 << 20


@dataclass(frozen=True, slots=True)
class Scheduler:
    """A scheduler's code, and the classes' weights, which strict priority has no use for."""

    code: int = STRICT
    weights: tuple[int, ...] = tuple(range(1, CLASSES + 1))


def parse_scheduler(text: str, where: str = "scheduler") -> Scheduler:
    """Read a scheduler: `strict`, `wrr`, `drr:1,1,1,1,2,2,4,4`.

    Raises:
        ConfigError: If there is none of that name, or weights are not as many as classes.
    """
    name, colon, list_ = text.partition(":")
    code = SCHEDULERS[choose(where, "scheduler", name, SCHEDULERS)]
    if not colon:
        return Scheduler(code)
    parts = list_.split(",")
    if code == STRICT or len(parts) != CLASSES or not all(map(_is_weight, parts)):
        raise ConfigError(
            f"{where}: weights are {CLASSES} whole numbers from 1 to {MAX_WEIGHT}, for wrr and "
            f"drr, got {text!r}"
        )
    return Scheduler(code, tuple(map(int, parts)))


def _is_weight(text: str) -> bool:
    return is_whole(text) and 1 <= int(text) <= MAX_WEIGHT
