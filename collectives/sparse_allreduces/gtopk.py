"""gTop-k: a tree that adds pairs of ranks' largest elements, and keeps the k largest sums."""

from __future__ import annotations

import numpy as np

from ringleaf.collectives.algorithm import Look
from ringleaf.collectives.compression.choices import largest
from ringleaf.collectives.compression.program import Post, Step
from ringleaf.collectives.compression.share import parse_share
from ringleaf.collectives.sparse.expected import Expected, exactly, only
from ringleaf.collectives.sparse.pairs import Residual, from_words, to_words
from ringleaf.collectives.sparse.registry import Method, SparseAllreduce
from ringleaf.core.tensors import Array
from ringleaf.errors import ConfigError


def merge(
    first: tuple[Array, Array], second: tuple[Array, Array], count: int
) -> tuple[Array, Array]:
    """Return the `count` largest sums of two sparse tensors, by place; of equal ones the first."""
    places = np.union1d(first[0], second[0])
    sums = np.zeros(places.size, np.float32)
    for own, values in (first, second):
        sums[np.searchsorted(places, own)] += values
    order = np.sort(np.argsort(-np.abs(sums), kind="stable")[:count])
    return places[order], sums[order]


class GTopK(Residual):
    """A rank's side, for 2^i ranks; the one that sends most sends 2 k log2 n words.

    Source:
        Shi et al., "A distributed synchronous SGD algorithm with global top-k sparsification for
        low bandwidth networks", ICDCS 2019, algorithm 2. Equal sums are taken by place (chosen).
    """

    def step(self, values: Array, seed: int) -> Step:
        """Take part in one step: log2 n rounds to rank 0, and as many back."""
        compensated, count = self.compensated(values)
        own = self.choose(compensated, count)
        pairs = own, compensated[own]
        levels = [1 << level for level in range(self.ranks.bit_length() - 1)]
        for distance in levels:
            sends = self.rank % (2 * distance) == distance
            post = {self.rank - distance: to_words(*pairs)} if sends else {}
            received = yield Post(post)
            assert isinstance(received, dict)
            for words in received.values():
                pairs = merge(pairs, from_words(words), count)
        for distance in reversed(levels):
            sends = self.rank % (2 * distance) == 0
            post = {self.rank + distance: to_words(*pairs)} if sends else {}
            received = yield Post(post)
            assert isinstance(received, dict)
            for words in received.values():
                pairs = from_words(words)
        result = np.zeros_like(values)
        result[pairs[0]] = pairs[1]
        self.keep(compensated, np.intersect1d(own, pairs[0]))
        return result


def parse(text: str, where: str) -> Method:
    """Return the method for the text behind the colon; errors begin with `where`."""
    share = parse_share(text, where)

    def make(rank: int, ranks: int) -> GTopK:
        if ranks & (ranks - 1):
            raise ConfigError(f"{where}: ranks must be a power of two, got {ranks}")
        return GTopK(share, rank, ranks)

    def expect(values: Array) -> Expected:
        """Return the sums that pairs, then pairs of pairs keep, with all zeros in place."""
        count = share.of(values.shape[1])
        vectors = [only(each, largest(each, count)) for each in values]
        while len(vectors) > 1:
            sums = [
                first + second for first, second in zip(vectors[::2], vectors[1::2], strict=True)
            ]
            vectors = [only(s, np.argsort(-np.abs(s), kind="stable")[:count]) for s in sums]
        return exactly(vectors[0])

    return Method(make, expect)


ALLREDUCE = SparseAllreduce("gTop-k", parse, Look("#b0703a", "2"), reduces=False)
