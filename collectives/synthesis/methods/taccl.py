"""TACCL: a sketch, routing by a program in whole numbers, a heuristic order, exact times.

Source:
    Shah et al., "TACCL: Guiding Collective Algorithm Synthesis using Communication Sketches", NSDI
    2023; github.com/microsoft/taccl 426bd1e.

The source fixes: sketches; three stages, routing with relaxed bandwidth, a heuristic order of
chunks on links, and contiguity with exact times; an allreduce is an all-gather backwards and an
all-gather. Chosen here: HiGHS solves, and not Gurobi; of 1 and 2 chunks for each rank, and of
messages of one chunk and of several, those of the least expected time; greedy trees where the
solver has none in time, or none that are better; without a sketch, all links where ways do not
meet, and few where they do, as `unwound` says.
"""

from __future__ import annotations

import time

from ringleaf.collectives.algorithm import Look
from ringleaf.collectives.collective import Collective
from ringleaf.collectives.schedule import Schedule
from ringleaf.collectives.synthesis.bounds import least_in_pieces_ps
from ringleaf.collectives.synthesis.contiguity import scheduled
from ringleaf.collectives.synthesis.ordering import ordered
from ringleaf.collectives.synthesis.problem import Problem, Synthesiser, SynthesisPlan
from ringleaf.collectives.synthesis.routing import candidates, greedy_routes, route
from ringleaf.collectives.synthesis.sketch import Sketch
from ringleaf.collectives.synthesis.timed import (
    Timed,
    backwards,
    end_of,
    one_after_the_other,
    to_rows,
)
from ringleaf.collectives.wires import RankNetwork
from ringleaf.core.units import format_count
from ringleaf.errors import ScheduleError

CHUNKS = (1, 2)
LEAST_CHUNK_BYTES = 4096  # of those that are chosen here
MOST_SENDS = 40_000  # chunks x links that they may take
ROUTING = 0.7  # of the time, for the first stage


def solve(problem: Problem) -> SynthesisPlan:
    """Return the best plan found, for one number of chunks or several, on one or more networks."""
    ranks = problem.ranks
    if ranks == 1:
        return SynthesisPlan(Schedule(problem.collective, "taccl", 1, 1, ()), 0, 0)
    sketch = problem.sketch or Sketch()
    chunks = problem.chunks or sketch.chunks
    counts = [c for c in CHUNKS if problem.size_bytes // (ranks * c) >= LEAST_CHUNK_BYTES] or [1]
    if chunks is not None:
        counts = [chunks]
    networks = sketch.networks(problem.wires, problem.seed)
    tasks = [(wires, count) for wires in networks for count in counts]
    sends = [sum(map(len, candidates(w, c, sketch.longer).values())) for w, c in tasks]
    if min(sends) > MOST_SENDS:
        raise ScheduleError(
            f"taccl: takes at most {MOST_SENDS} chunks times links, got {min(sends)}; give a "
            "sketch with fewer links or chunks, or take tacos"
        )
    plans = []
    for (wires, count), size in zip(tasks, sends, strict=True):
        if size <= MOST_SENDS:
            plans += _plans(problem, sketch, wires, count, problem.limit_s / len(tasks))
    return min(plans, key=lambda plan: plan.expected_ps)


def _plans(
    problem: Problem, sketch: Sketch, wires: RankNetwork, chunks: int, limit_s: float
) -> list[SynthesisPlan]:
    """Return a greedy plan, and the solver's, for a number of chunks on a network."""
    collects = problem.collective is not Collective.ALL_GATHER
    spreads = problem.collective is not Collective.REDUCE_SCATTER
    parts = [(wires.mirrored, True)] * collects + [(wires, False)] * spreads
    same = len(parts) == 2 and wires.rates_bps == wires.mirrored.rates_bps
    same = same and wires.delays_ps == wires.mirrored.delays_ps
    plans = []
    for is_greedy in (True, False):
        halves: list[list[Timed]] = []
        notes: tuple[tuple[str, str], ...] = ()
        for part, is_mirrored in parts:
            if same and halves:
                halves.append(backwards(halves[0], copies=True))
                break
            share_s = limit_s / (1 if same else len(parts))
            moves, notes = _gather(problem, sketch, part, chunks, 0 if is_greedy else share_s)
            halves.append(backwards(moves) if is_mirrored else moves)
        plan = _plan(problem, halves, chunks, notes)
        problem.offer(plan)
        plans.append(plan)
    return plans


def _plan(
    problem: Problem, halves: list[list[Timed]], chunks: int, notes: tuple[tuple[str, str], ...]
) -> SynthesisPlan:
    rows = to_rows(halves[0], together=True)
    for half in halves[1:]:
        rows = one_after_the_other(rows, to_rows(half, together=True))
    total = problem.ranks * chunks
    schedule = Schedule(problem.collective, "taccl", problem.ranks, total, rows)
    bound_ps = least_in_pieces_ps(problem.wires, problem.size_bytes, problem.collective)
    all_notes = (("chunks for each rank", str(chunks)), *notes)
    return SynthesisPlan(schedule, sum(map(end_of, halves)), bound_ps, all_notes)


def _gather(
    problem: Problem, sketch: Sketch, wires: RankNetwork, chunks: int, limit_s: float
) -> tuple[list[Timed], tuple[tuple[str, str], ...]]:
    """Return an all-gather; greedily if there is no time."""
    chunk_bytes = -(-problem.size_bytes // (wires.ranks * chunks))
    least = max(min(wires.time_ps(pair, chunk_bytes) for pair in wires.ways), 1)
    times = {pair: wires.time_ps(pair, chunk_bytes) / least for pair in wires.ways}
    until = time.monotonic() + limit_s
    routed = route(wires, chunks, times, sketch, limit_s * ROUTING) if limit_s else None
    routes = greedy_routes(wires, chunks, times) if routed is None else routed.routes
    moves = ordered(wires, routes, chunks, chunk_bytes)
    gap = "greedy" if routed is None else f"{100 * routed.gap:.1f} %"
    messages = "each of a chunk"
    left_s = until - time.monotonic()
    better = scheduled(wires, moves, chunk_bytes, left_s) if limit_s and left_s > 0 else None
    if better is not None and end_of(better[0]) < end_of(moves):
        moves = better[0]
        count = len({(move.start_ps, move.src, move.dst) for move in moves})
        messages = f"{count} of {format_count(len(moves), 'chunk')}, gap {100 * better[1]:.1f} %"
    return moves, (("routing's gap", gap), ("messages", messages))


SYNTHESISER = Synthesiser(
    "taccl",
    "TACCL",
    (Collective.ALLREDUCE, Collective.ALL_GATHER, Collective.REDUCE_SCATTER),
    Look("#3f7fbf", "$C$"),
    solve,
    package="scipy",
    takes_sketch=True,
)
