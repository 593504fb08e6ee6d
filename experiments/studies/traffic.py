"""Traffic patterns as schedules: flows that all start at once, and a collective."""

from __future__ import annotations

import random
from collections.abc import Callable

from ringleaf.collectives.ring import ring_allreduce
from ringleaf.collectives.schedule import Collective, Op, Row, Schedule, Transfer

UNIT_BYTES = 64 << 10
SIZES = (1, 1, 1, 16)
"""Units of the flows of a source, in turn: three of 64 KiB, and one of 1 MiB."""

Pairs = list[tuple[int, int]]
"""Flows, as sources and destinations."""


def incast(hosts: int, rng: random.Random) -> Pairs:
    """All others send to one host."""
    target = rng.randrange(hosts)
    return [(host, target) for host in range(hosts) if host != target]


def permutation(hosts: int, rng: random.Random) -> Pairs:
    """Each host sends to another, and each receives from another: one cycle of all hosts."""
    order = rng.sample(range(hosts), hosts)
    return sorted(zip(order, order[1:] + order[:1], strict=True))


def all_to_all(hosts: int, rng: random.Random) -> Pairs:
    """Each host sends to all others, beginning with the one after it, and all at once."""
    del rng
    return [
        (host, (host + distance) % hosts) for distance in range(1, hosts) for host in range(hosts)
    ]


PATTERNS: dict[str, Callable[[int, random.Random], Pairs]] = {
    "incast": incast,
    "permutation": permutation,
    "all-to-all": all_to_all,
}
"""Patterns of independent flows; `ring`, an allreduce, is the fourth pattern."""
RING = "ring"


def make_traffic(pattern: str, hosts: int, seed: int) -> tuple[Schedule, list[int]]:
    """Return a pattern as a schedule, and the sizes of its messages in units of 64 KiB.

    Sizes go round among the flows of a pattern in a random order. A ring's are equal.
    """
    if pattern == RING:
        schedule = ring_allreduce(hosts)
        return schedule, [1] * len(schedule.columns)
    rng = random.Random(f"{pattern} {seed}")
    pairs = PATTERNS[pattern](hosts, rng)
    sizes = [SIZES[number % len(SIZES)] for number in range(len(pairs))]
    rng.shuffle(sizes)
    rows: list[Row] = []
    for (source, target), size in zip(pairs, sizes, strict=True):
        first = len(rows)
        rows += (Transfer(0, source, target, first + unit, Op.COPY) for unit in range(size))
    return Schedule(Collective.ALL_TO_ALL, pattern, hosts, len(rows), tuple(rows)), sizes
