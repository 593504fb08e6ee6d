"""TernGrad's numbers: their inputs, and whose are in a sum, at hosts and in switches' counts.

In a run beside that with the real numbers, rank r has 1 as element r of each block, and 0
everywhere else. So element r of a sum is how often rank r is in it. A switch counts levels, which
are numbers plus one; the count of an element that is 0 for all is thus the number of ranks in it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ringleaf.core.mersenne import Mersenne
from ringleaf.core.tensors import FLOAT32, Array
from ringleaf.experiments.stepper.blocks import SparseBlocks, repeat
from ringleaf.experiments.stepper.story import TensorCell
from ringleaf.ina.tern.wire import ELEMENTS, PLANE_BYTES


def draw(ranks: int, elements: int, seed: int) -> list[Array]:
    """Return each rank's numbers: float32, -1, 0 or 1, of shape (elements,); the scale is 1."""
    chance = Mersenne(seed)
    return [chance.integers(-1, 2, elements).astype(FLOAT32) for _ in range(ranks)]


def units(ranks: int, elements: int) -> list[Array]:
    """Return the numbers of the run beside: of each block, element r is 1 at rank r alone."""
    return [repeat(block, elements) for block in np.eye(ranks, ELEMENTS, dtype=FLOAT32)]


def who(values: Sequence[int], ranks: int) -> tuple[int, ...]:
    """Return the ranks whose numbers are in a sum, given a block of the run beside."""
    return tuple(rank for rank in range(ranks) for _ in range(values[rank]))


def counts(planes: Sequence[int]) -> list[int]:
    """Return the counts whose bits are in a switch's planes.

    Those of the first element are the lowest bits of the planes' first bytes.
    """
    parts = [plane.to_bytes(PLANE_BYTES) for plane in planes]
    return [
        sum((part[e >> 3] >> (e & 7) & 1) << bit for bit, part in enumerate(parts))
        for e in range(ELEMENTS)
    ]


def cell(planes: Sequence[int], beside: Sequence[int], ranks: int) -> TensorCell:
    """Return a switch's sum, given the planes of its counts, and those of the run beside.

    Behind the last element of a short block all counts are 0. Of its own, none is.
    """
    marked = counts(beside)
    added = marked[ranks]
    numbers = [count - added for count, mark in zip(counts(planes), marked, strict=True) if mark]
    return TensorCell(who([mark - added for mark in marked], ranks), tuple(numbers))


TERNS = SparseBlocks(
    "ternary sums",
    ELEMENTS,
    least=lambda ranks: ranks + 1,
    draw=draw,
    beside=units,
    who=who,
    cell=cell,
    is_exact=True,
)
