"""SparCML's DSAR with quantisation: sparse parts to their owners, and dense levels to all."""

from __future__ import annotations

import numpy as np

from ringleaf.collectives.algorithm import Look
from ringleaf.collectives.collective import Collective
from ringleaf.collectives.compression.choices import largest
from ringleaf.collectives.compression.member import short
from ringleaf.collectives.compression.program import Ask, Post, Step
from ringleaf.collectives.compression.rounding import rounded_at_random
from ringleaf.collectives.compression.settings import parse_settings
from ringleaf.collectives.compression.share import Density, parse_share
from ringleaf.collectives.encodings.levels import LEVELS
from ringleaf.collectives.sparse.expected import Expected, in_turn, only
from ringleaf.collectives.sparse.pairs import Residual, from_words, scatter, to_words
from ringleaf.collectives.sparse.registry import Method, SparseAllreduce
from ringleaf.core.tensors import Array


class SparCML(Residual):
    """A rank's side: a split of sparse pairs, then an all-gather of sums in few bits.

    Source:
        Renggli, Ashkboos, Aghagolzadeh, Alistarh and Hoefler, "SparCML: high-performance sparse
        communication for machine learning", SC '19, sections 5.3.3 and 6 (low precision by QSGD);
        one unit per owner, and no buckets, are chosen.
    """

    def __init__(self, share: Density, rank: int, ranks: int, bits: int) -> None:
        super().__init__(share, rank, ranks)
        self._most = (1 << (bits - 1)) - 1

    def step(self, values: Array, seed: int) -> Step:
        """Take part in one step."""
        compensated, count = self.compensated(values)
        places = self.choose(compensated, count)
        self.keep(compensated, places)
        width = -(-values.size // self.ranks)
        edges = np.searchsorted(places, np.arange(self.ranks + 1) * width)
        parts = []
        for owner in range(self.ranks):
            part = places[edges[owner] : edges[owner + 1]]
            parts.append((part - owner * width, compensated[part]))
        sent = {p: to_words(*parts[p]) for p in range(self.ranks) if p != self.rank}
        received = yield Post({p: words for p, words in sent.items() if words.size})
        assert isinstance(received, dict)
        pairs = [
            parts[p] if p == self.rank else from_words(received.get(p, np.zeros(0, np.float32)))
            for p in range(self.ranks)
        ]
        total = scatter(pairs, width)
        unit = short(float(np.abs(total).max(initial=0)) / self._most)
        blocks = np.zeros((self.ranks, width), np.float32)
        blocks[self.rank] = rounded_at_random(total, unit, self._most, seed, self.rank)
        gathered = yield Ask(Collective.ALL_GATHER, blocks.reshape(-1), LEVELS)
        assert isinstance(gathered, np.ndarray)
        return gathered[: values.size]


def parse(text: str, where: str) -> Method:
    """Return the method for the text behind the colon; errors begin with `where`."""
    settings = parse_settings(text, where, bits="4")
    share = parse_share(settings.first, where)
    bits = settings.whole(settings.named["bits"], 2, 12)

    def expect(values: Array) -> Expected:
        """Return the levels next to each sum, of which one is drawn; each owner has its unit."""
        count, width = share.of(values.shape[1]), -(-values.shape[1] // len(values))
        sums = in_turn([only(each, largest(each, count)) for each in values]).astype(np.float64)
        units = np.ones_like(sums)
        for start in range(0, sums.size, width):
            top = np.abs(sums[start : start + width]).max()
            units[start : start + width] = short(top / ((1 << (bits - 1)) - 1)) or 1.0
        levels, slack = sums / units, 1e-6  # of a level: rounding of the quotient
        return Expected(np.floor(levels + slack) * units, np.ceil(levels - slack) * units)

    return Method(lambda rank, ranks: SparCML(share, rank, ranks, bits), expect)


ALLREDUCE = SparseAllreduce("SparCML, quantised DSAR", parse, Look("#8a6a4a", "."), reduces=False)
