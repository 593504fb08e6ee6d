"""The outcome of a check of results, and what it may allow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ringleaf.core.tensors import Array

Bound = Callable[[Array], npt.NDArray[np.float64]]
"""A function from the ranks' float32 inputs, (ranks, elements), to each sum's allowed error."""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """The allowed error of an aggregation system's sums; those of integers are exact.

    Attributes:
        bound: The bound on the error that the system documents.
        block: `bound` may be called with parts that start at multiples of so many elements.
    """

    bound: Bound
    block: int = 1


@dataclass(frozen=True, slots=True)
class Verdict:
    """The number of wrong elements over all ranks, and why the first one is wrong, in words.

    Attributes:
        wrong: Elements.
        reason: A sentence; empty if none is wrong.
        error: Of right sums of switches: the greatest error of an element, as a part of the sum of
            the magnitudes that were added; None: it was not measured, or hosts added.
    """

    wrong: int
    reason: str = ""
    error: float | None = None


RIGHT = Verdict(0)
