"""TACOS's greedy matching of chunks and links along time, for an all-gather.

Whenever a way is free, it takes a chunk that its source has, and its destination neither has nor is
about to get. Ways are asked in the order of their times, equal ones by chance. If there is no such
chunk, one that is on a slower way to the same rank goes by this way instead. A message keeps its
way busy from its first bit to its last one, delay included, as TACOS has it; ways do not meet.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterable
from dataclasses import dataclass
from heapq import heappop, heappush

from ringleaf.collectives.synthesis.timed import Timed, end_of
from ringleaf.collectives.wires import Pair, RankNetwork

DRAWS = 4
"""Chunks that are drawn for a way, of which the rarest goes. One alone, drawn at random, missed
TACOS's published times on tori by 5 and 7 %."""


def best_gather(
    wires: RankNetwork,
    chunks: int,
    chunk_bytes: int,
    *,
    tries: int,
    seed: int,
    limit_s: float,
    bound: int,
) -> list[Timed]:
    """Return the best of some greedy all-gathers; the first one that is as good as the bound.

    Args:
        wires: A network in which ways do not meet.
        chunks: Chunks that each rank contributes: those from rank x chunks on.
        chunk_bytes: Size of a chunk.
        tries: Number of searches; fewer if time runs out, but one.
        seed: Seeds the draws.
        limit_s: Time that all searches may take.
        bound: The least time that there can be, in ps.
    """
    rng = random.Random(seed)
    until = time.monotonic() + limit_s
    best = _Search(wires, chunks, chunk_bytes, rng).run()
    for _ in range(tries - 1):
        if end_of(best) <= bound or time.monotonic() > until:
            break
        best = min(best, _Search(wires, chunks, chunk_bytes, rng).run(), key=end_of)
    return best


@dataclass(frozen=True, slots=True)
class _Move:
    """A chunk, as a bit, on its way."""

    start_ps: int
    end_ps: int
    pair: Pair
    bit: int


class _Search:
    """One greedy all-gather. Sets of chunks are the bits of integers."""

    def __init__(
        self, wires: RankNetwork, chunks: int, chunk_bytes: int, rng: random.Random
    ) -> None:
        self._rng = rng
        self._total = total = wires.ranks * chunks
        self._names = list(range(total))  # bit -> chunk
        rng.shuffle(self._names)  # so that the next bit above a drawn one is a drawn chunk
        bit_of = {chunk: bit for bit, chunk in enumerate(self._names)}
        self._has = [
            sum(1 << bit_of[chunk] for chunk in range(rank * chunks, (rank + 1) * chunks))
            for rank in range(wires.ranks)
        ]
        self._missing = [((1 << total) - 1) & ~has for has in self._has]
        self._copies = [1] * total
        self._time_ps = {pair: wires.time_ps(pair, chunk_bytes) for pair in wires.ways}
        self._busy: set[Pair] = set()
        self._from: list[list[Pair]] = [[] for _ in range(wires.ranks)]
        for pair in wires.ways:
            self._from[pair[0]].append(pair)
        self._ends: list[tuple[int, int]] = []  # end, number: a heap
        self._moves: list[_Move | None] = []  # by number; None: a faster one has replaced it
        self._coming: list[dict[int, int]] = [{} for _ in range(wires.ranks)]  # bit -> number

    def run(self) -> list[Timed]:
        """Return all transfers, in the order of their starts."""
        self._match(self._time_ps, 0)
        while self._ends:
            now_ps = self._ends[0][0]
            touched: dict[Pair, None] = {}
            while self._ends and self._ends[0][0] == now_ps:
                move = self._moves[heappop(self._ends)[1]]
                if move is not None:
                    self._land(move, touched)
            self._match(touched, now_ps)
        assert not any(self._missing)
        moves = [move for move in self._moves if move is not None]
        return [Timed(m.start_ps, m.end_ps, *m.pair, self._names[m.bit]) for m in moves]

    def _land(self, move: _Move, touched: dict[Pair, None]) -> None:
        """Give a rank its chunk, and note the ways that may have become useful."""
        dst = move.pair[1]
        del self._coming[dst][move.bit]
        self._has[dst] |= 1 << move.bit
        self._busy.remove(move.pair)
        touched[move.pair] = None
        touched.update(dict.fromkeys(self._from[dst]))

    def _match(self, pairs: Iterable[Pair], now_ps: int) -> None:
        """Start what can be started on these ways, and on those that become free by that."""
        while pairs:
            asked = [pair for pair in pairs if pair not in self._busy]
            self._rng.shuffle(asked)
            asked.sort(key=self._time_ps.__getitem__)
            pairs = [freed for pair in asked if (freed := self._start(pair, now_ps)) is not None]

    def _start(self, pair: Pair, now_ps: int) -> Pair | None:
        """Send a chunk, if there is one to send; return the way that is free because of it."""
        src, dst = pair
        useful = self._has[src] & self._missing[dst]
        if useful:
            self._send(pair, self._draw(useful), now_ps)
            return None
        for bit, number in self._coming[dst].items():
            old = self._moves[number]
            assert old is not None
            if old.end_ps > now_ps + self._time_ps[pair] and self._has[src] >> bit & 1:
                self._moves[number] = None
                self._busy.remove(old.pair)
                self._send(pair, bit, now_ps)
                return old.pair
        return None

    def _draw(self, useful: int) -> int:
        """Return the one of some drawn chunks that fewest ranks have, or are about to get."""
        drawn = [self._draw_any(useful) for _ in range(DRAWS)]
        return min(drawn, key=self._copies.__getitem__)

    def _draw_any(self, useful: int) -> int:
        """Return one of the bits: the first one from a drawn place on."""
        place = self._rng.randrange(self._total)
        above = useful >> place
        if above:
            return place + (above & -above).bit_length() - 1
        return (useful & -useful).bit_length() - 1

    def _send(self, pair: Pair, bit: int, now_ps: int) -> None:
        dst = pair[1]
        self._missing[dst] &= ~(1 << bit)
        self._copies[bit] += 1
        self._busy.add(pair)
        end_ps = now_ps + self._time_ps[pair]
        heappush(self._ends, (end_ps, len(self._moves)))
        self._coming[dst][bit] = len(self._moves)
        self._moves.append(_Move(now_ps, end_ps, pair, bit))
