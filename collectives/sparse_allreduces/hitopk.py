"""HiTopKComm (CommLib): dense inside nodes, MSTopK between them."""

from __future__ import annotations

import numpy as np

from ringleaf.collectives.algorithm import Look
from ringleaf.collectives.compression.program import Post, Step
from ringleaf.collectives.compression.settings import parse_settings
from ringleaf.collectives.compression.share import Density, parse_share
from ringleaf.collectives.compressors.mstopk import choose
from ringleaf.collectives.schedule import chunk_ranges
from ringleaf.collectives.sparse.expected import Expected, exactly, in_turn, only
from ringleaf.collectives.sparse.pairs import Residual, from_words, scatter, to_words
from ringleaf.collectives.sparse.registry import Method, SparseAllreduce
from ringleaf.core.tensors import Array
from ringleaf.errors import ConfigError


class HiTopK(Residual):
    """A rank's side: ranks of a node are neighbours, `node` of them.

    Ranks of a node scatter and add up dense parts; each sends the largest k / node elements of its
    part to the ranks with that part in other nodes; sums go to all in the node. What a part does
    not send is kept by the rank that has it, and added to the part in the next step.

    Source:
        Shi et al., "Towards scalable distributed training of deep learning on public cloud
        clusters", MLSys 2021, section 3.2 (from memory). Parts are exchanged directly (chosen).
    """

    def __init__(self, share: Density, rank: int, ranks: int, node: int) -> None:
        super().__init__(share, rank, ranks)
        self._local = rank % node
        self._node = range(rank - self._local, rank - self._local + node)
        self._peers = range(self._local, ranks, node)

    def step(self, values: Array, seed: int) -> Step:
        """Take part in one step."""
        ranges = chunk_ranges(values.size, len(self._node))
        received = yield Post(self._parts(values, ranges))
        assert isinstance(received, dict)
        start, stop = ranges[self._local]
        part = np.zeros(stop - start, np.float32)
        for peer in self._node:
            part += values[start:stop] if peer == self.rank else received[peer][: stop - start]
        compensated, _ = self.compensated(part)
        count = min(-(-self.share.of(values.size) // len(self._node)), part.size)
        places = np.sort(choose(compensated, count)) if count else np.zeros(0, np.int64)
        self.keep(compensated, places)
        own = places, compensated[places]
        received = yield Post({p: to_words(*own) for p in self._peers if p != self.rank})
        assert isinstance(received, dict)
        pairs = [own if p == self.rank else from_words(received[p]) for p in self._peers]
        total = scatter(pairs, stop - start)
        received = yield Post({p: total for p in self._node if p != self.rank})
        assert isinstance(received, dict)
        result = np.empty_like(values)
        for peer, (first, last) in zip(self._node, ranges, strict=True):
            # Zeros at the end of a part don't travel.
            got = total if peer == self.rank else received[peer]
            result[first:last] = got[: last - first]
        return result

    def _parts(self, values: Array, ranges: list[tuple[int, int]]) -> dict[int, Array]:
        return {
            peer: values[start:stop]
            for peer, (start, stop) in zip(self._node, ranges, strict=True)
            if peer != self.rank
        }


def parse(text: str, where: str) -> Method:
    """Return the method for the text behind the colon; errors begin with `where`."""
    settings = parse_settings(text, where, node="4")
    share = parse_share(settings.first, where)
    node = settings.whole(settings.named["node"], 1, 1 << 16)

    def make(rank: int, ranks: int) -> HiTopK:
        if ranks % node:
            raise ConfigError(f"{where}: ranks must be whole nodes of {node}, got {ranks}")
        return HiTopK(share, rank, ranks, node)

    def expect(values: Array) -> Expected:
        """Return the sums of what nodes' sums keep of each part."""
        ranges = chunk_ranges(values.shape[1], node)
        count = -(-share.of(values.shape[1]) // node)
        total = np.zeros(values.shape[1], np.float32)
        for first in range(0, len(values), node):
            sums = in_turn([*values[first : first + node]])
            for start, stop in ranges:
                part = sums[start:stop]
                places = choose(part, min(count, part.size)) if part.size else np.arange(0)
                total[start:stop] += only(part, places)
        return exactly(total)

    return Method(make, expect)


ALLREDUCE = SparseAllreduce("HiTopKComm", parse, Look("#6a5ab8", "+"), reduces=False)
