"""Majority votes, whose numbers are signs: their inputs, and whose votes have decided.

A sum of powers tells its addends, a majority does not. So, in a run beside that with the real
signs, each rank has two elements for which it is the pivot: all others' votes are balanced, and its
own is for, then against. Where both results are the same, its vote was not counted.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ringleaf.core.mersenne import Mersenne
from ringleaf.core.tensors import FLOAT32, Array
from ringleaf.experiments.stepper.blocks import SparseBlocks, repeat
from ringleaf.ina.vote.wire import SIGNS


def draw(ranks: int, elements: int, seed: int) -> list[Array]:
    """Return each rank's signs: float32, +1 or -1, of shape (elements,)."""
    chance = Mersenne(seed)
    return [(2 * chance.integers(0, 2, elements) - 1).astype(FLOAT32) for _ in range(ranks)]


def pivots(ranks: int, elements: int) -> list[Array]:
    """Return the votes of the run beside: of each block, elements 2r and 2r + 1 are rank r's."""
    votes = []
    for rank in range(ranks):
        block = np.ones(SIGNS, FLOAT32)
        for pivot in range(ranks):
            others = [other for other in range(ranks) if other != pivot]
            # With an odd number of others one more is against: a tie is for.
            against = set(others[: (len(others) + 1) // 2])
            vote = -1.0 if rank in against else 1.0
            block[2 * pivot], block[2 * pivot + 1] = (vote, vote) if rank != pivot else (1.0, -1.0)
        votes.append(repeat(block, elements))
    return votes


def who(values: Sequence[int], ranks: int) -> tuple[int, ...]:
    """Return the ranks whose votes have decided, given a block of the run beside."""
    return tuple(rank for rank in range(ranks) if values[2 * rank] != values[2 * rank + 1])


VOTES = SparseBlocks(
    "votes",
    SIGNS,
    least=lambda ranks: 2 * ranks,
    draw=draw,
    beside=pivots,
    who=who,
    cell=lambda _planes, _beside, _ranks: None,  # a count that is not complete tells no majority
    is_exact=False,
)
