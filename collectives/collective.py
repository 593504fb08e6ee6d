"""Collectives, and checks of the numbers that all take; nothing here takes long to import."""

from __future__ import annotations

from enum import Enum

from ringleaf.core.units import format_count
from ringleaf.errors import ScheduleError


class Collective(Enum):
    """The condition that must hold when a schedule has run.

    Chunks of the second group are dealt to ranks in equal contiguous blocks, see `owner`.
    All-to-all is in rotated order, as in Bruck's algorithm: chunk d of rank r is at first the
    data of r for rank r + d, and at last the data of rank r - d for r, modulo the ranks.
    """

    ALLREDUCE = "allreduce"
    REDUCE = "reduce"
    BROADCAST = "broadcast"

    REDUCE_SCATTER = "reduce_scatter"
    ALL_GATHER = "all_gather"
    ALL_TO_ALL = "all_to_all"

    @property
    def is_rooted(self) -> bool:
        """Whether one rank, the root, has a part of its own."""
        return self in (Collective.BROADCAST, Collective.REDUCE)


def check_ranks(where: str, ranks: int) -> None:
    """Refuse fewer ranks than 1. One rank alone has nothing to do: its schedule is empty."""
    if ranks < 1:
        raise ScheduleError(f"{where}: ranks must be >= 1, got {ranks}")


def check_segments(where: str, segments: int) -> None:
    """Refuse to cut a tensor into fewer than 1 piece."""
    if segments < 1:
        raise ScheduleError(f"{where}: segments must be >= 1, got {segments}")


def check_root(where: str, root: int, ranks: int) -> None:
    """Refuse a root that is none of the ranks."""
    if not 0 <= root < ranks:
        raise ScheduleError(
            f"{where}: root must be one of {format_count(ranks, 'rank')}, got {root}"
        )
