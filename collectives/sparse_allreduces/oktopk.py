"""Ok-Topk: regions of equal work, thresholds that last for steps, and balanced gathering."""

from __future__ import annotations

import numpy as np

from ringleaf.collectives.algorithm import Look
from ringleaf.collectives.collective import Collective
from ringleaf.collectives.compression.choices import smallest_kept
from ringleaf.collectives.compression.program import Ask, Post, Step
from ringleaf.collectives.compression.settings import parse_settings
from ringleaf.collectives.compression.share import Density, parse_share
from ringleaf.collectives.encodings.trimmed import TRIMMED
from ringleaf.collectives.sparse.expected import Expected, exactly, in_turn
from ringleaf.collectives.sparse.pairs import Residual, from_words, scatter, to_words
from ringleaf.collectives.sparse.registry import Method, SparseAllreduce
from ringleaf.core.tensors import Array

EVERY, REGIONS_EVERY = 32, 64
"""Steps between exact thresholds, and between new boundaries of regions."""
RAISE, RAISES = 1.03, 5
SCALE = 1.02
"""The factor by which thresholds adapt; the release has 1.012 to 1.025, by model."""


class OkTopK(Residual):
    """A rank's side; it sends less than 6 k words in a step without exact thresholds.

    Regions, one per rank, are such that each rank's own largest elements are spread over them
    evenly, on average. A rank sends pairs to their regions' owners; owners add up, and keep sums
    above the global threshold; these are dealt evenly, and gathered by all.

    Source:
        Li and Hoefler, "Near-optimal sparse allreduce for distributed deep learning", PPoPP 2022,
        algorithm 1; numbers of its release, which leaves out the balancing. The dense first 512
        steps are left out here.
    """

    def __init__(self, share: Density, rank: int, ranks: int, *, balanced: bool) -> None:
        super().__init__(share, rank, ranks)
        self._balanced = balanced
        self._local = self._global = 0.0
        self._edges = np.zeros(0, np.int64)

    def step(self, values: Array, seed: int) -> Step:
        """Take part in one step."""
        is_exact = self.steps % EVERY == 0
        draws_regions = self.steps % REGIONS_EVERY == 0
        compensated, count = self.compensated(values)
        own = self._choose_own(compensated, count, is_exact=is_exact)
        if draws_regions:
            cuts = own[np.arange(1, self.ranks) * own.size // self.ranks] if own.size else own
            mine = np.resize(cuts, self.ranks - 1) if cuts.size else np.zeros(self.ranks - 1)
            # Sums of float32 are exact below 2^24 only, so halves of indices are added up.
            halves = np.stack([mine // 4096, mine % 4096]).reshape(-1).astype(np.float32)
            total = yield Ask(Collective.ALLREDUCE, halves)
            assert isinstance(total, np.ndarray)
            high, low = total.reshape(2, -1).astype(np.float64)
            edges = ((high * 4096 + low) / self.ranks).astype(np.int64)
            self._edges = np.concatenate([[0], np.maximum.accumulate(edges), [values.size]])
        sums = yield from self._add_up(compensated, own)
        region = slice(self._edges[self.rank], self._edges[self.rank + 1])
        mine = np.flatnonzero(sums[region]) + region.start
        if not is_exact:
            mine = mine[np.abs(sums[mine]) >= self._global]
        places, totals = yield from self._gather(mine, sums[mine])
        if is_exact:
            self._global = smallest_kept(totals, min(count, totals.size)) if totals.size else 0.0
            kept = np.abs(totals) >= self._global
            places, totals = places[kept], totals[kept]
        self._global = _adapted(self._global, places.size, 2 * count / 3, 4 * count / 3)
        result = np.zeros_like(values)
        result[places] = totals
        self.keep(compensated, np.intersect1d(own, places))
        return result

    def _choose_own(self, compensated: Array, count: int, *, is_exact: bool) -> Array:
        if is_exact:
            self._local = smallest_kept(compensated, count) if count else 0.0
        sizes = np.abs(compensated)
        own = np.flatnonzero((sizes >= self._local) & (sizes > 0))
        for _ in range(0 if is_exact else RAISES):
            if own.size <= 4 * count / 3:
                break
            self._local *= RAISE
            own = own[sizes[own] >= self._local]
        self._local = _adapted(self._local, own.size, 2 * count / 3, 5 * count / 4)
        return own

    def _add_up(self, compensated: Array, own: Array) -> Step:
        """Send pairs to their regions' owners; return the sums of this rank's region."""
        cuts = np.searchsorted(own, self._edges)
        parts = [own[cuts[p] : cuts[p + 1]] for p in range(self.ranks)]
        sent = {
            p: to_words(parts[p], compensated[parts[p]])
            for p in ((self.rank + i) % self.ranks for i in range(1, self.ranks))
            if parts[p].size
        }
        received = yield Post(sent)
        assert isinstance(received, dict)
        pairs = [
            (parts[p], compensated[parts[p]])
            if p == self.rank
            else from_words(received.get(p, np.zeros(0, np.float32)))
            for p in range(self.ranks)
        ]
        return scatter(pairs, compensated.size)

    def _gather(self, places: Array, values: Array) -> Step:
        """Gather all ranks' pairs; return indices and values, in order of places."""
        counts = np.zeros(self.ranks, np.float32)
        counts[self.rank] = places.size
        sizes = yield Ask(Collective.ALL_GATHER, counts)
        assert isinstance(sizes, np.ndarray)
        ends = np.cumsum(sizes.astype(np.int64))
        if self._balanced:
            places, values = yield from self._balance(places, values, ends)
            most = -(-int(ends[-1]) // self.ranks)
        else:
            most = int(sizes.max())
        width = 1 + 2 * most
        blocks = np.zeros((self.ranks, width), np.float32)
        words = to_words(places, values)
        blocks[self.rank, : words.size] = words
        gathered = yield Ask(Collective.ALL_GATHER, blocks.reshape(-1), TRIMMED)
        assert isinstance(gathered, np.ndarray)
        pairs = [from_words(block) for block in gathered.reshape(self.ranks, width)]
        return tuple(np.concatenate(part) for part in zip(*pairs, strict=True))  # type: ignore[return-value]

    def _balance(self, places: Array, values: Array, ends: Array) -> Step:
        """Deal pairs so that all ranks have the same number, in order; return this rank's."""
        share = -(-int(ends[-1]) // self.ranks)
        start = int(ends[self.rank]) - places.size
        owner = (start + np.arange(places.size)) // max(share, 1)
        sent = {
            int(p): to_words(places[owner == p], values[owner == p])
            for p in np.unique(owner)
            if p != self.rank
        }
        received = yield Post(sent)
        assert isinstance(received, dict)
        own = owner == self.rank
        pairs = [(places[own], values[own]), *(from_words(words) for words in received.values())]
        pairs.sort(key=lambda pair: int(pair[0][0]) if pair[0].size else -1)
        return tuple(np.concatenate(part) for part in zip(*pairs, strict=True))  # type: ignore[return-value]


def _adapted(threshold: float, count: int, few: float, many: float) -> float:
    """Return a threshold that is a little smaller after too few elements, or larger."""
    if count < few:
        return threshold / SCALE
    return threshold * SCALE if count > many else threshold


def parse(text: str, where: str) -> Method:
    """Return the method for the text behind the colon; errors begin with `where`."""
    settings = parse_settings(text, where, balanced="yes")
    share = parse_share(settings.first, where)
    balanced = settings.named["balanced"] == "yes"

    def expect(values: Array) -> Expected:
        """Return the largest sums of the ranks' largest elements: thresholds are exact at first."""
        count = share.of(values.shape[1])
        least = [smallest_kept(each, count) for each in values]
        kept = [
            np.where(np.abs(v) >= t, v, np.float32(0)) for v, t in zip(values, least, strict=True)
        ]
        sums = in_turn(kept)
        sent = sums[sums != 0]
        if sent.size == 0:
            return exactly(sums)
        limit = smallest_kept(sent, min(count, sent.size))
        return exactly(np.where(np.abs(sums) >= limit, sums, np.float32(0)))

    return Method(lambda rank, ranks: OkTopK(share, rank, ranks, balanced=balanced), expect)


ALLREDUCE = SparseAllreduce("Ok-Topk", parse, Look("#c03a5a", "3"))
