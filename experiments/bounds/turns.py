"""Least times of a circulant schedule's messages, a step at a time, without all its rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ringleaf.collectives.circulant import CirculantRows
from ringleaf.collectives.rows import Column
from ringleaf.core.units import FOREVER_PS


@dataclass(frozen=True, slots=True)
class Sends:
    """What each rank sends to the one that comes so many after it.

    Attributes:
        size_bytes: (ranks,) bytes on the line.
        begin_ps: (ranks,) the earliest begin of the first message.
        after_ps: (ranks,) the least time that follows the arrival of the last one.
    """

    size_bytes: Column
    begin_ps: Column
    after_ps: Column


@dataclass(frozen=True, slots=True)
class TurnedTimes:
    """The least times of a circulant schedule, as if each message had the network for itself.

    Attributes:
        sends: What ranks send, by how many ranks it goes on.
        end_ps: The earliest time when all can have arrived.
    """

    sends: dict[int, Sends]
    end_ps: int


def least_times(
    rows: CirculantRows,
    kinds: Column,
    line_bytes: Column,
    alone_ps: Callable[[int], npt.NDArray[np.int64]],
) -> TurnedTimes:
    """Return the least times of messages, as `ringleaf.experiments.bounds.moves.least_times` does.

    The times of a step's chunks are a row of a table: by rank, those of the chunk that is so many
    after it.

    Args:
        rows: The rows; none is empty.
        kinds: (chunks,) which kind of size each chunk has.
        line_bytes: (kinds,) the bytes on the line of a message.
        alone_ps: Returns the times of messages that go so many ranks on, alone: (kinds, ranks).
    """
    ranks = rows.ranks
    rank = np.arange(ranks)
    first = rows.first
    steps = list(
        zip(
            ((first.dst - first.src) % ranks).tolist(),
            ((first.start - first.src) % ranks).tolist(),
            ((first.start - first.dst) % ranks).tolist(),
            strict=True,
        )
    )
    times = {distance: alone_ps(distance) for distance in {distance for distance, _, _ in steps}}
    sends = {
        distance: Sends(np.zeros(ranks, np.int64), *(np.full(ranks, FOREVER_PS) for _ in range(2)))
        for distance in times
    }
    there_ps, left_ps = np.zeros((2, ranks, ranks), np.int64)
    for distance, read, write in steps:
        kind, known = np.roll(kinds, -read), sends[distance]
        begin_ps = there_ps[read]
        known.size_bytes[:] += line_bytes[kind]
        np.minimum(known.begin_ps, begin_ps, out=known.begin_ps)
        arrival_ps = np.roll(begin_ps + times[distance][kind, rank], distance)
        np.maximum(there_ps[write], arrival_ps, out=there_ps[write])
    for distance, read, write in reversed(steps):
        kind, known = np.roll(kinds, -read), sends[distance]
        after_ps = np.roll(left_ps[write], -distance)
        np.minimum(known.after_ps, after_ps, out=known.after_ps)
        np.maximum(left_ps[read], after_ps + times[distance][kind, rank], out=left_ps[read])
    return TurnedTimes(sends, int(there_ps.max()))
