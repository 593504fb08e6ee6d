"""The results that sparse allreduces must have, by their own mathematics.

Exchanges are judged one by one, as any collective's. Whether a method makes the right result of
them is another question: it is answered from all ranks' tensors at once, without messages, regions
or words. Sums whose order a method fixes are exact in float32; for others an interval is given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ringleaf.core.tensors import Array

UNIT = 2.0**-24
"""The relative error of one addition in float32."""


@dataclass(frozen=True, slots=True)
class Expected:
    """The least and the most that each element may be: (elements,), in float64."""

    least: npt.NDArray[np.float64]
    most: npt.NDArray[np.float64]

    def count_wrong(self, results: Sequence[Array]) -> tuple[int, str]:
        """Return how many elements are outside, or not rank 0's bits; and the first one in words.

        Args:
            results: Each rank's, (elements,) float32.
        """
        wrong, reason = 0, ""
        for rank, result in enumerate(results):
            inside = (result >= self.least) & (result <= self.most)
            same = result.view(np.uint32) == results[0].view(np.uint32)
            bad = np.flatnonzero(~(inside & same))
            if bad.size and not wrong:
                at = int(bad[0])
                if inside[at]:
                    reference = f"not rank 0's {results[0][at]!s}"
                else:
                    reference = f"not {self.least[at]!s} to {self.most[at]!s}, by its definition"
                reason = f"rank {rank}, element {at} is {result[at]!s}, {reference}"
            wrong += int(bad.size)
        return wrong, reason


Expect = Callable[[Array], Expected]


def exactly(values: Array) -> Expected:
    """Return the expectation of these values and no others."""
    wide = values.astype(np.float64)
    return Expected(wide, wide)


def in_turn(parts: Sequence[Array]) -> Array:
    """Return the float32 sum of ranks' tensors, added in the order of ranks."""
    total = np.zeros_like(parts[0])
    for part in parts:
        total += part
    return total


def in_any_order(parts: Array) -> Expected:
    """Return the expectation of a float32 sum whose order is left open.

    Source:
        Higham, "Accuracy and stability of numerical algorithms", 2nd edition, section 4.2.
    """
    wide = parts.astype(np.float64)
    additions = max(len(parts) - 1, 0) * UNIT
    error = additions / (1 - additions) * np.abs(wide).sum(axis=0)
    total = wide.sum(axis=0)
    return Expected(total - error, total + error)


def only(values: Array, places: Array) -> Array:
    """Return a tensor that is zero but at these places."""
    kept = np.zeros_like(values)
    kept[places] = values[places]
    return kept
