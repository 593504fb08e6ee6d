"""Pairs of index and value as a message of 32-bit words, and what programs of sparse sums share."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ringleaf.collectives.compression.choices import largest
from ringleaf.collectives.compression.share import Density
from ringleaf.core.tensors import Array

WORDS = 2
"""Words of a pair: the index and the value."""


def to_words(places: Array, values: Array) -> Array:
    """Return a message, flat float32: the number of pairs, indices, values.

    Indices and the number are integers, in the bits of float32. No pairs are no words.
    """
    if not places.size:
        return np.zeros(0, np.float32)
    head = np.array([places.size], np.int32)
    return np.concatenate(
        [head.view(np.float32), places.astype(np.int32).view(np.float32), values]
    ).astype(np.float32, copy=False)


def from_words(words: Array) -> tuple[Array, Array]:
    """Return the indices (int64) and values of a message, which may have zeros behind."""
    if not words.size:
        return np.zeros(0, np.int64), np.zeros(0, np.float32)
    count = int(words[:1].view(np.int32)[0])
    places = words[1 : 1 + count].view(np.int32).astype(np.int64)
    return places, words[1 + count : 1 + 2 * count]


def scatter(pairs: Iterable[tuple[Array, Array]], elements: int) -> Array:
    """Return the sum of sparse tensors, added in their order: (elements,) float32."""
    total = np.zeros(elements, np.float32)
    for places, values in pairs:
        total[places] += values
    return total


class Residual:
    """The base of a rank's side of a sparse allreduce: what it has not sent, and its share.

    Args:
        share: The share of elements that are wanted.
        rank: This rank, of `ranks`.
    """

    def __init__(self, share: Density, rank: int, ranks: int) -> None:
        self.share, self.rank, self.ranks = share, rank, ranks
        self.steps = 0
        self.left = np.zeros(0, np.float32)

    def compensated(self, values: Array) -> tuple[Array, int]:
        """Return the values with what is left from earlier steps, and k; count the step."""
        if self.left.size != values.size:
            self.left = np.zeros_like(values)
        self.steps += 1
        return self.left + values, self.share.of(values.size)

    def keep(self, compensated: Array, sent: Array) -> None:
        """Keep all but the elements at the places `sent` for the next step."""
        self.left = compensated.copy()
        self.left[sent] = 0

    def choose(self, compensated: Array, count: int) -> Array:
        """Return the places of the largest magnitudes, in order."""
        return np.sort(largest(compensated, count))
