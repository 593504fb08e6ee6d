"""The account of a run: its collectives, iterations, and what ranks have noted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

from ringleaf.collectives.collective import Collective
from ringleaf.experiments.bounds.busbw import busbw_factor
from ringleaf.experiments.workloads.train import calls
from ringleaf.experiments.workloads.train.ways import PARTS
from ringleaf.experiments.workloads.train.wire import ITERATION, SPANS, TIMED

if TYPE_CHECKING:
    from ringleaf.experiments.workloads.train.rank_data import (
        FinishedCollective,  # loads, or compiles, networks
    )


class Key(NamedTuple):
    """What tells rows of the table apart."""

    call: str
    group: str
    ranks: int
    size_bytes: int
    dtype: str
    op: str
    algorithm: str


@dataclass(frozen=True, slots=True)
class CallRow:
    """A row of the results: all calls that are alike."""

    call: str
    group: str  # world, or its ranks
    ranks: int
    size_bytes: int  # of the whole tensor
    dtype: str
    redop: str
    algo: str
    count: int  # calls
    time_ps: int  # median, from the last rank's call, or its turn, to the last rank's end
    total_ps: int  # of all calls
    busbw_gb_s: float  # of the median
    wrong: int | None  # elements, over all ranks and calls; None: not checked


class RankIteration(NamedTuple):
    """One rank's iteration; picoseconds."""

    end_ps: int
    exposed_ps: int  # of it, the rank waited for calls


class RankSpan(NamedTuple):
    """A stretch of a rank's time."""

    kind: str
    name: str
    start_ps: int
    end_ps: int


@dataclass(frozen=True, slots=True)
class CollectiveLine:
    """A collective, for the timeline."""

    title: str
    group: str
    algorithm: str
    size_bytes: int
    members: tuple[int, ...]
    called_ps: tuple[int, ...]  # by member
    begin_ps: int
    end_ps: int


MOST_LINES = 50_000

_BOUNDED_AS = {
    **PARTS,
    calls.GATHER: Collective.ALL_GATHER,
    calls.SCATTER: Collective.ALL_GATHER,
}
"""The collective by which the busbw of each call is reckoned; a message's is its algbw.

Of gathers and scatters the root's part stays where it is (nccl-tests, gather.cu and scatter.cu).
"""


@dataclass
class Account:
    """Takes notes while ranks train, and adds them up.

    Attributes:
        ranks: The number of ranks.
        lines: The first collectives.
        iterations: By rank.
        spans: By rank.
        timed: Paths and classes of modules whose times have counted.
    """

    ranks: int
    lines: list[CollectiveLine] = field(default_factory=list)
    left_out: int = 0
    iterations: list[list[RankIteration]] = field(default_factory=list)
    spans: list[list[RankSpan]] = field(default_factory=list)
    timed: set[str] = field(default_factory=set)
    end_ps: int = 0
    _times: dict[Key, list[int]] = field(default_factory=dict)
    _wrong: dict[Key, int | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.iterations = [[] for _ in range(self.ranks)]
        self.spans = [[] for _ in range(self.ranks)]

    def add(self, carried: FinishedCollective, group: str) -> None:
        """Note a collective that is over, in a group of this title."""
        collective, way = carried.collective, carried.way
        call = collective.call
        key = Key(
            *(call.kind, group, len(collective.members), carried.size_bytes),
            *(call.dtype, call.op, way.algorithm),
        )
        self._times.setdefault(key, []).append(carried.end_ps - carried.begin_ps)
        self._wrong[key] = _sum(self._wrong.get(key, 0), carried.wrong)
        self.end_ps = max(self.end_ps, carried.end_ps)
        if len(self.lines) == MOST_LINES:
            self.left_out += 1
            return
        self.lines.append(
            CollectiveLine(
                *(str(call), group, way.algorithm, carried.size_bytes, collective.members),
                tuple(part.clock_ps for part in collective.parts),
                *(carried.begin_ps, carried.end_ps),
            )
        )

    def note(self, rank: int, what: Sequence[Any]) -> None:
        """Take what a rank notes.

        Raises:
            ValueError: If it is no note.
        """
        kind, *rest = what
        if kind == ITERATION:
            self.iterations[rank].append(RankIteration(*map(int, rest)))
        elif kind == SPANS:
            [rows] = rest
            self.spans[rank] += [RankSpan(str(k), str(n), int(s), int(e)) for k, n, s, e in rows]
        elif kind == TIMED:
            self.timed.update(map(str, rest))
        else:
            raise ValueError(f"unknown note {kind!r}")

    def rows(self) -> list[CallRow]:
        """Return the rows, those that took longest in all first."""
        rows = [self._row(key, times) for key, times in self._times.items()]
        return sorted(rows, key=lambda row: (-row.total_ps, row.call, row.group, row.size_bytes))

    def _row(self, key: Key, times: Sequence[int]) -> CallRow:
        typical_ps = round(median(times))
        factor = busbw_factor(_BOUNDED_AS.get(key.call, Collective.BROADCAST), key.ranks)
        rate = factor * key.size_bytes * 1000 / typical_ps if typical_ps else 0.0
        return CallRow(
            *(key.call, key.group, key.ranks, key.size_bytes, key.dtype, key.op, key.algorithm),
            *(len(times), typical_ps, sum(times), rate, self._wrong[key]),
        )


def _sum(before: int | None, more: int | None) -> int | None:
    return None if before is None or more is None else before + more
