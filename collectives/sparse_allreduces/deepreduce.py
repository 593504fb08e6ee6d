"""DeepReduce: places in a Bloom filter, values as they are or as fitted curves."""

from __future__ import annotations

import numpy as np

from ringleaf.collectives.algorithm import Look
from ringleaf.collectives.collective import Collective
from ringleaf.collectives.compression.choices import largest
from ringleaf.collectives.compression.program import Ask, Step
from ringleaf.collectives.compression.settings import parse_settings
from ringleaf.collectives.compression.share import Density, parse_share
from ringleaf.collectives.encodings.trimmed import TRIMMED
from ringleaf.collectives.sparse.bloom import filter_size, hashes, positives
from ringleaf.collectives.sparse.expected import Expected, exactly, in_any_order, in_turn
from ringleaf.collectives.sparse.fitted import fit, unfit
from ringleaf.collectives.sparse.pairs import Residual, scatter
from ringleaf.collectives.sparse.registry import Method, SparseAllreduce
from ringleaf.core.tensors import Array
from ringleaf.errors import choose

SMALLEST = 1000
"""Tensors of no more elements are sent as they are."""
VALUES = PLAIN, FITTED = ("plain", "fitted")


class DeepReduce(Residual):
    """A rank's side: all gather filters and values; the first k positives have the values.

    The sender reads the values at the places that receivers will take them for, so a false
    positive brings a right value of another place, and the place that it displaces is left.

    Source:
        Xu, Kostopoulou, Dutta, Li, Ntoulas and Kalnis, "DeepReduce: a sparse-tensor communication
        framework for federated deep learning", NeurIPS 2021; and its released code (policy
        `leftmost`).
    """

    def __init__(self, share: Density, rank: int, ranks: int, values: str) -> None:
        super().__init__(share, rank, ranks)
        self._fitted = values == FITTED

    def step(self, values: Array, seed: int) -> Step:
        """Take part in one step."""
        compensated, count = self.compensated(values)
        if values.size <= SMALLEST:
            total = yield Ask(Collective.ALLREDUCE, compensated)
            assert isinstance(total, np.ndarray)
            self.left[:] = 0
            return total
        bits, functions = filter_size(values.size, count)
        bloom = np.zeros(bits, np.bool_)
        bloom[hashes(self.choose(compensated, count), bits, functions).reshape(-1)] = True
        taken = positives(bloom, values.size, functions)[:count]
        sent = compensated[taken]
        tail = fit(sent) if self._fitted else sent
        head = -(-bits // 32)
        packed = np.zeros(4 * head, np.uint8)
        packed[: -(-bits // 8)] = np.packbits(bloom)
        size = head + (count + SMALLEST if self._fitted else count)
        blocks = np.zeros((self.ranks, size), np.float32)
        blocks[self.rank, :head] = packed.view(np.float32)
        blocks[self.rank, head : head + tail.size] = tail
        gathered = yield Ask(Collective.ALL_GATHER, blocks.reshape(-1), TRIMMED)
        assert isinstance(gathered, np.ndarray)
        pairs = []
        for block in gathered.reshape(self.ranks, size):
            filled = np.unpackbits(block[:head].copy().view(np.uint8), count=bits).astype(np.bool_)
            places = positives(filled, values.size, functions)[:count]
            pairs.append((places, unfit(block[head:]) if self._fitted else block[head:]))
        own = np.zeros_like(compensated)
        own[taken] = pairs[self.rank][1]
        self.left = compensated - own
        return scatter(pairs, values.size)


def parse(text: str, where: str) -> Method:
    """Return the method for the text behind the colon; errors begin with `where`."""
    settings = parse_settings(text, where, values=PLAIN)
    share = parse_share(settings.first, where)
    values = settings.named["values"]
    choose(where, "form of values", values, VALUES)

    def expect(tensors: Array) -> Expected:
        """Return sums of values at the first places that each rank's filter seems to have."""
        elements = tensors.shape[1]
        if elements <= SMALLEST:
            return in_any_order(tensors)
        count = share.of(elements)
        bits, functions = filter_size(elements, count)
        parts = []
        for each in tensors:
            has = np.zeros(bits, np.bool_)
            has[hashes(largest(each, count), bits, functions)] = True
            seems = has[hashes(np.arange(elements), bits, functions)].all(axis=0)
            taken = np.flatnonzero(seems)[:count]
            part = np.zeros(elements, np.float32)
            part[taken] = unfit(fit(each[taken])) if values == FITTED else each[taken]
            parts.append(part)
        return exactly(in_turn(parts))

    return Method(lambda rank, ranks: DeepReduce(share, rank, ranks, values), expect)


ALLREDUCE = SparseAllreduce("DeepReduce", parse, Look("#3a9a8a", "x"))
