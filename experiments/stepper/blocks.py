"""Systems whose numbers have few values, so that tracers of 4^rank can't be sent through them.

Each has numbers of its own, and a run beside that tells whose numbers are in a result: in each
block, which is a packet's elements, some elements are for one rank each. It is always the P4
program that adds or counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ringleaf.core.tensors import Array
from ringleaf.core.units import format_count
from ringleaf.errors import ConfigError
from ringleaf.experiments.stepper.story import TensorCell


@dataclass(frozen=True, slots=True)
class SparseBlocks:
    """The numbers of one such system, and those of the run beside.

    Attributes:
        noun: Name of the elements, in the plural.
        size: Elements of a block.
        least: Returns the elements that a block must have, given the ranks.
        draw: Returns each rank's numbers, float32 of shape (elements,), given ranks, elements and
            seed.
        beside: Likewise for the run beside, given ranks and elements.
        who: Returns the ranks whose numbers are in a result, given a block of the run beside, and
            the ranks; one that was added twice is there twice.
        cell: Returns an entry of a switch, given its lanes, and those of the run beside, and the
            ranks; None if they do not tell.
        is_exact: Whether the result is the sum.
    """

    noun: str
    size: int
    least: Callable[[int], int]
    draw: Callable[[int, int, int], list[Array]]
    beside: Callable[[int, int], list[Array]]
    who: Callable[[Sequence[int], int], tuple[int, ...]]
    cell: Callable[[Sequence[int], Sequence[int], int], TensorCell | None]
    is_exact: bool

    def ranges(self, elements: int) -> list[tuple[int, int]]:
        """Return the elements of each block: from, to (excluded)."""
        starts = range(0, elements, self.size)
        return [(start, min(start + self.size, elements)) for start in starts]

    def check_elements(self, elements: int, ranks: int) -> None:
        """Check that each block has as many elements as tell the ranks.

        Raises:
            ConfigError: If one has not.
        """
        start, stop = self.ranges(elements)[-1]
        if stop - start < self.least(ranks):
            raise ConfigError(
                f"step: elements of {self.noun} must be {self.least(ranks)} or more in each block "
                f"of {self.size}, to tell {format_count(ranks, 'rank')}, got {elements}"
            )


def repeat(block: Array, elements: int) -> Array:
    """Return blocks that are all the same, cut to the number of elements."""
    return np.resize(block, elements)
