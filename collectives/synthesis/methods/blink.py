"""Blink: spanning trees packed into the links, down which data goes, and up which it is reduced.

Source:
    Wang et al., "Blink: Fast and Generic Collectives for Distributed ML", MLSys 2020, arXiv
    1910.04940.

The source fixes: trees by multiplicative weights, then fewer of them; data is split in proportion
to their rates, and pipelined; an allreduce reduces up each tree and broadcasts down it. Chosen
here: few trees are found exactly, by growing them, not by a program in whole numbers that gives
up 5 %; the number of chunks is that of the least expected time, not found by trying while it runs;
few links stand for switches, as `unwound` says. Trees of an allreduce are packed into the lesser
rate of both directions of each link.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import accumulate
from math import gcd

from ringleaf.collectives.algorithm import Look
from ringleaf.collectives.collective import Collective
from ringleaf.collectives.schedule import Op, Schedule
from ringleaf.collectives.synthesis.bounds import least_in_pieces_ps
from ringleaf.collectives.synthesis.flow import broadcast_rate
from ringleaf.collectives.synthesis.packing import Tree, TreePacking, pack
from ringleaf.collectives.synthesis.problem import MOST_CELLS, Problem, Synthesiser, SynthesisPlan
from ringleaf.collectives.synthesis.timed import Timed, end_of, to_rows
from ringleaf.collectives.synthesis.unwound import unwound
from ringleaf.collectives.wires import Pair, RankNetwork
from ringleaf.core.units import PS_PER_S
from ringleaf.errors import ScheduleError

MOST_UNITS = 64  # that the rates of trees are rounded to
PIPELINES = tuple(1 << power for power in range(10))  # chunks for each unit of rate


def solve(problem: Problem) -> SynthesisPlan:
    """Return the best plan found: of some networks, low and other trees, and numbers of chunks."""
    if problem.ranks == 1:
        return SynthesisPlan(Schedule(problem.collective, "blink", 1, 1, ()), 0, 0)
    plans = [
        plan
        for wires in unwound(problem.wires, problem.seed)
        for packing, unit_bps in _packings(problem, wires)
        for plan in _plans(problem, wires, packing, unit_bps)
    ]
    if not plans:
        raise ScheduleError(
            f"blink: must reach all ranks by links both ways, got none from rank {problem.root}"
        )
    return min(plans, key=lambda plan: plan.expected_ps)


def _packings(problem: Problem, wires: RankNetwork) -> Iterator[tuple[TreePacking, int]]:
    """Yield packings on a network whose ways do not meet, and the bit/s that their rates count."""
    rates = _rates(wires, problem.collective)
    if not rates or not broadcast_rate(rates, problem.ranks, problem.root):
        return
    unit_bps = gcd(*rates.values())
    capacity = {pair: rate // unit_bps for pair, rate in rates.items()}
    for low in (True, False):
        packing = pack(capacity, problem.ranks, problem.root, problem.limit_s / 4, low=low)
        assert packing.rate == packing.optimum
        yield packing, unit_bps


def _plans(
    problem: Problem, wires: RankNetwork, packing: TreePacking, unit_bps: int
) -> Iterator[SynthesisPlan]:
    """Yield a plan for each number of chunks."""
    notes = (
        ("trees", str(len(packing.trees))),
        ("rate of trees", f"{packing.rate * unit_bps / 1e9:g} Gbit/s"),
        ("trees by multiplicative weights", str(packing.many)),
        ("rate of these", f"{packing.many_rate * unit_bps / 1e9:g} Gbit/s"),
    )
    bound_ps = least_in_pieces_ps(
        problem.wires, problem.size_bytes, problem.collective, problem.root
    )
    if (
        wires.ways.keys() == problem.wires.ways.keys()
        and problem.collective is not Collective.ALLREDUCE
    ):
        flow_ps = problem.size_bytes * 8 * PS_PER_S // (packing.optimum * unit_bps)
        bound_ps = max(bound_ps, flow_ps)
    counts = PIPELINES if problem.chunks is None else (problem.chunks,)
    units = _units(packing)
    for number, count in enumerate(counts):
        if number and sum(units) * count * problem.ranks > MOST_CELLS:
            break
        moves = _moves(problem, wires, packing, [unit * count for unit in units])
        schedule = Schedule(
            problem.collective,
            "blink",
            problem.ranks,
            sum(units) * count,
            to_rows(moves),
            problem.root,
        )
        plan = SynthesisPlan(schedule, end_of(moves), bound_ps, notes)
        problem.offer(plan)
        yield plan


def _rates(wires: RankNetwork, collective: Collective) -> dict[Pair, int]:
    """Return the rates that trees may take, by link away from the root."""
    down, up = wires.rates_bps, wires.mirrored.rates_bps
    if collective is Collective.BROADCAST:
        return dict(down)
    if collective is Collective.REDUCE:
        return dict(up)
    return {pair: min(rate, up[pair]) for pair, rate in down.items() if pair in up}


def _units(packing: TreePacking) -> list[int]:
    """Return the share of each tree in the data, as a small whole number."""
    weights = list(packing.trees.values())
    common = gcd(*weights)
    if sum(weights) // common <= MOST_UNITS:
        return [weight // common for weight in weights]
    return [max(round(MOST_UNITS * weight / sum(weights)), 1) for weight in weights]


def _moves(
    problem: Problem, wires: RankNetwork, packing: TreePacking, chunks: list[int]
) -> list[Timed]:
    """Return all transfers, each link taking what is ready in the order in which it is."""
    pipes = _Pipes(wires, -(-problem.size_bytes // sum(chunks)))
    shares = sorted(  # trees take turns
        ((turn + 1) / count, start + turn, tree)
        for tree, start, count in zip(packing.trees, accumulate([0, *chunks]), chunks, strict=False)
        for turn in range(count)
    )
    reduces = problem.collective is not Collective.BROADCAST
    spreads = problem.collective is not Collective.REDUCE
    for _, chunk, tree in shares:
        pipes.add(tree, chunk, reduces=reduces, spreads=spreads)
    return pipes.run()


_Hop = tuple[Pair, int, Op]
"""A chunk on a link, up its tree or down."""


class _Pipes:
    """Chunks on trees, and the times at which they pass links."""

    def __init__(self, wires: RankNetwork, chunk_bytes: int) -> None:
        self._wires = wires
        self._port_ps = {
            pair: wires.time_ps(pair, chunk_bytes) - wires.delays_ps[pair] for pair in wires.ways
        }
        self._free_ps = dict.fromkeys(wires.ways, 0)
        self._waiting: dict[_Hop, int] = {}  # arrivals that a move waits for
        self._from_ps: dict[_Hop, int] = {}  # when all that it waits for is there
        self._next: dict[_Hop, list[_Hop]] = {}
        self._ready: list[tuple[int, int, _Hop]] = []  # a heap
        self._number: dict[_Hop, int] = {}

    def add(self, tree: Tree, chunk: int, *, reduces: bool, spreads: bool) -> None:
        """Add a chunk that goes up a tree, down the tree, or both."""
        children: list[list[int]] = [[] for _ in tree]
        for rank, parent in enumerate(tree):
            if parent >= 0:
                children[parent].append(rank)
        for rank, parent in enumerate(tree):
            if parent < 0:
                continue
            up, down = ((rank, parent), chunk, Op.REDUCE), ((parent, rank), chunk, Op.COPY)
            if reduces:
                self._await(up, [((child, rank), chunk, Op.REDUCE) for child in children[rank]])
            if spreads and tree[parent] >= 0:
                self._await(down, [((tree[parent], parent), chunk, Op.COPY)])
            elif spreads:
                before = children[parent] if reduces else []
                self._await(down, [((child, parent), chunk, Op.REDUCE) for child in before])

    def _await(self, move: _Hop, before: list[_Hop]) -> None:
        self._waiting[move] = len(before)
        self._number[move] = len(self._number)
        for each in before:
            self._next.setdefault(each, []).append(move)

    def run(self) -> list[Timed]:
        """Return the transfers."""
        for move, count in self._waiting.items():
            if not count:
                heappush(self._ready, (0, self._number[move], move))
        transfers = []
        while self._ready:
            ready_ps, _, move = heappop(self._ready)
            pair, chunk, op = move
            start_ps = max(ready_ps, self._free_ps[pair])
            self._free_ps[pair] = start_ps + self._port_ps[pair]
            end_ps = self._free_ps[pair] + self._wires.delays_ps[pair]
            transfers.append(Timed(start_ps, end_ps, *pair, chunk, op))
            for later in self._next.get(move, ()):
                self._waiting[later] -= 1
                self._from_ps[later] = max(self._from_ps.get(later, 0), end_ps)
                if not self._waiting[later]:
                    heappush(self._ready, (self._from_ps[later], self._number[later], later))
        return transfers


SYNTHESISER = Synthesiser(
    "blink",
    "Blink",
    (Collective.ALLREDUCE, Collective.BROADCAST, Collective.REDUCE),
    Look("#3b7f9e", "$B$"),
    solve,
    revision=3,
)
