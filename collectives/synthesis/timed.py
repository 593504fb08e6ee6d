"""Transfers with times, as searches find them, and the schedules that they become."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

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


def backwards(transfers: Sequence[Timed], *, copies: bool = False) -> list[Timed]:
    """Return transfers run backwards: a spreading becomes a collecting, as long as before.

    Args:
        transfers: Copies.
        copies: Whether a collecting is to become a spreading instead.
    """
    op = Op.COPY if copies else Op.REDUCE
    end_ps = end_of(transfers)
    return [
        Timed(end_ps - each.end_ps, end_ps - each.start_ps, each.dst, each.src, each.chunk, op)
        for each in transfers
    ]


def to_rows(transfers: Iterable[Timed], *, together: bool = False) -> list[Transfer]:
    """Return transfers as rows, with the least steps by which each finds its chunk at its source.

    Rows between two ranks have different steps, in the order of their starts: chunks that follow
    one another are not joined to one message, which could not be handed on before its end.

    Args:
        transfers: Transfers, of which each starts when all that its source has been sent of the
            chunk before is there.
        together: Whether transfers between two ranks that start together are one message.
    """
    steps: dict[tuple[int, int], int] = {}  # of a chunk at a rank
    last: dict[tuple[int, int], int] = {}  # of a pair of ranks
    rows = []
    known = sorted(transfers)
    for _, group in groupby(known, _message if together else None):
        parts = list(group)
        pair = parts[0].src, parts[0].dst
        step = 1 + max(last.get(pair, -1), *(steps.get((p.src, p.chunk), -1) for p in parts))
        last[pair] = step
        for each in parts:
            at = each.dst, each.chunk
            steps[at] = max(steps.get(at, -1), step)
            rows.append(Transfer(step, each.src, each.dst, each.chunk, each.op))
    return sorted(rows, key=lambda row: row.step)


def _message(each: Timed) -> tuple[int, int, int, int]:
    return each.start_ps, each.end_ps, each.src, each.dst


def one_after_the_other(first: list[Transfer], second: list[Transfer]) -> list[Transfer]:
    """Return all rows, those of the second list in steps after all of the first list."""
    after = max((row.step for row in first), default=-1) + 1
    return first + [replace(row, step=row.step + after) for row in second]
