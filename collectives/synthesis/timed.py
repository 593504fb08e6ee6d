"""Transfers with times, as searches find them, and the schedules that they become."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ringleaf.collectives.schedule import Op, Transfer


@dataclass(frozen=True, slots=True, order=True)
class Timed:
    """A chunk on its way from `start_ps` to `end_ps`, and what becomes of it there."""

    start_ps: int
    end_ps: int
    src: int
    dst: int
    chunk: int
    op: Op = Op.COPY


def end_of(transfers: Iterable[Timed]) -> int:
    """Return the time at which the last one is done."""
    return max((each.end_ps for each in transfers), default=0)


def backwards(transfers: Sequence[Timed]) -> list[Timed]:
    """Return copies run backwards: a spreading becomes a collecting, as long as before."""
    end_ps = end_of(transfers)
    return [
        Timed(
            end_ps - each.end_ps, end_ps - each.start_ps, each.dst, each.src, each.chunk, Op.REDUCE
        )
        for each in transfers
    ]


def to_rows(transfers: Iterable[Timed]) -> list[Transfer]:
    """Return transfers as rows, with the least steps by which each finds its chunk at its source.

    Rows between two ranks have different steps, in the order of their starts: chunks that follow
    one another are not joined to one message, which could not be handed on before its end.

    Args:
        transfers: Transfers, of which each starts when all that its source has been sent of the
            chunk before is there.
    """
    steps: dict[tuple[int, int], int] = {}  # of a chunk at a rank
    last: dict[tuple[int, int], int] = {}  # of a pair of ranks
    rows = []
    for each in sorted(transfers):
        step = max(
            steps.get((each.src, each.chunk), -1),
            last.get((each.src, each.dst), -1),
        )
        last[each.src, each.dst] = step = step + 1
        at = each.dst, each.chunk
        steps[at] = max(steps.get(at, -1), step)
        rows.append(Transfer(step, each.src, each.dst, each.chunk, each.op))
    return sorted(rows, key=lambda row: row.step)


def one_after_the_other(first: list[Transfer], second: list[Transfer]) -> list[Transfer]:
    """Return all rows, those of the second list in steps after all of the first list."""
    after = max((row.step for row in first), default=-1) + 1
    return first + [replace(row, step=row.step + after) for row in second]
