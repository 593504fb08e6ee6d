"""SCCL: all-gathers in the fewest steps and rounds, by a solver (z3).

Source:
    Cai et al., "Synthesizing Optimal Collective Algorithms", PPoPP 2021;
    github.com/microsoft/msccl-tools 030a750 (SYNTHESIS.md, path_encoding.py).

The source fixes: S steps, R rounds and C chunks for each rank; a cost of S a + (R / C) bytes b;
reduce-scatter by reversal, allreduce by both. Chosen here: instances are tried in the order of
their costs until one has an answer, S at most two above the least; each may take a sixth of the
time limit, so the answer is the best of all only where none ran out of it. A rate becomes units by
dividing it by the least rate; few links stand for switches, as `unwound` says.
"""

from __future__ import annotations

import time
from itertools import product

from ringleaf.collectives.algorithm import Look
from ringleaf.collectives.collective import Collective
from ringleaf.collectives.schedule import Schedule
from ringleaf.collectives.synthesis.bounds import least_in_pieces_ps
from ringleaf.collectives.synthesis.problem import Problem, Synthesiser, SynthesisPlan
from ringleaf.collectives.synthesis.steps import Answer, Instance, answer
from ringleaf.collectives.synthesis.timed import (
    Timed,
    backwards,
    end_of,
    one_after_the_other,
    to_rows,
)
from ringleaf.collectives.synthesis.unwound import unwound
from ringleaf.collectives.wires import Pair, RankNetwork
from ringleaf.core.units import PS_PER_S, format_count
from ringleaf.errors import ScheduleError

MOST_CHUNKS = 6
MOST_BITS = 40_000  # of a question to the solver
MORE_STEPS, MORE_ROUNDS = 2, 3


def solve(problem: Problem) -> SynthesisPlan:
    """Return the plan of least cost that was found, on one or more networks."""
    if problem.ranks == 1:
        return SynthesisPlan(Schedule(problem.collective, "sccl", 1, 1, ()), 0, 0)
    networks = unwound(problem.wires, problem.seed)
    plans = []
    for wires in networks:
        plan = _plan(problem, wires, problem.limit_s / len(networks))
        if plan is not None:
            plans.append(plan)
            problem.offer(plan)
    if not plans:
        raise ScheduleError(
            "sccl: must find an answer within its limits, got none for "
            f"{format_count(problem.ranks, 'rank')} in "
            f"{problem.limit_s:g} s; give more time, or take fewer ranks or tacos"
        )
    return min(plans, key=lambda plan: plan.expected_ps)


def _plan(problem: Problem, wires: RankNetwork, limit_s: float) -> SynthesisPlan | None:
    gathers = problem.collective is not Collective.REDUCE_SCATTER
    collects = problem.collective is not Collective.ALL_GATHER
    parts = [(wires.mirrored, True)] * collects + [(wires, False)] * gathers
    chunks, halves, notes = problem.chunks, [], []
    for part, is_mirrored in parts:
        cheapest = _search(part, problem.size_bytes, chunks, limit_s / len(parts))
        if cheapest is None:
            return None
        instance, sends = cheapest
        chunks = instance.chunks  # of the second half, too
        moves = _timed(part, sends, problem.size_bytes, instance)
        halves.append(backwards(moves) if is_mirrored else moves)
        notes.append(f"({instance.steps}, {sum(sends.rounds)}, {instance.chunks})")
    rows = to_rows(halves[0])
    for half in halves[1:]:
        rows = one_after_the_other(rows, to_rows(half))
    assert chunks is not None
    total = problem.ranks * chunks
    bound_ps = least_in_pieces_ps(problem.wires, problem.size_bytes, problem.collective)
    schedule = Schedule(problem.collective, "sccl", problem.ranks, total, rows)
    expected_ps = sum(map(end_of, halves))
    named = (("steps, rounds, chunks", " and ".join(notes)),)
    return SynthesisPlan(schedule, expected_ps, bound_ps, named)


def _search(
    wires: RankNetwork, size_bytes: int, chunks: int | None, limit_s: float
) -> tuple[Instance, Answer] | None:
    """Return the cheapest instance with an answer."""
    until = time.monotonic() + limit_s
    least_bps = min(wires.rates_bps.values())
    units = {pair: rate // least_bps for pair, rate in wires.rates_bps.items()}
    delay_ps, share = max(wires.delays_ps.values()), size_bytes / wires.ranks
    candidates = []
    for instance in instances(units, wires.ranks, chunks):
        data_ps = instance.rounds / instance.chunks * share * 8 * PS_PER_S / least_bps
        candidates.append((instance.steps * delay_ps + data_ps, instance))
    for _, instance in sorted(candidates, key=lambda each: (each[0], each[1].chunks)):
        left_s = until - time.monotonic()
        if left_s <= 0:
            break
        solution = answer(instance, min(left_s, limit_s / 6))
        if solution is not None:
            return instance, solution
    return None


def instances(units: dict[Pair, int], ranks: int, chunks: int | None) -> list[Instance]:
    """Return instances that are not impossible for their number of steps or rounds alone."""
    least = max(max(_distances(units, rank).values()) for rank in range(ranks))
    into = [sum(count for pair, count in units.items() if pair[1] == rank) for rank in range(ranks)]
    feasible = []
    counts = range(1, MOST_CHUNKS + 1) if chunks is None else (chunks,)
    for count, more in product(counts, range(MORE_STEPS + 1)):
        steps = least + more
        fewest = max(steps, *(-(-(ranks - 1) * count // amount) for amount in into))
        if ranks * count * len(units) * steps > MOST_BITS:
            continue
        feasible += [
            Instance(units, ranks, steps, rounds, count)
            for rounds in range(fewest, fewest + MORE_ROUNDS)
        ]
    return feasible


def _distances(units: dict[Pair, int], start: int) -> dict[int, int]:
    distances, frontier = {start: 0}, [start]
    for node in frontier:
        for src, dst in units:
            if src == node and dst not in distances:
                distances[dst] = distances[node] + 1
                frontier.append(dst)
    return distances


def _timed(
    wires: RankNetwork, solution: Answer, size_bytes: int, instance: Instance
) -> list[Timed]:
    """Return the chunks with times: each step as long as its slowest link takes."""
    chunk_bytes = -(-size_bytes // (wires.ranks * instance.chunks))
    moves, now_ps = [], 0
    for goes in solution.sends:
        load: dict[Pair, int] = {}
        for src, dst, _ in goes:
            load[src, dst] = load.get((src, dst), 0) + chunk_bytes
        end_ps = now_ps + max([0, *(wires.time_ps(pair, size) for pair, size in load.items())])
        moves += [Timed(now_ps, end_ps, *go) for go in goes]
        now_ps = end_ps
    return moves


SYNTHESISER = Synthesiser(
    "sccl",
    "SCCL",
    (Collective.ALLREDUCE, Collective.ALL_GATHER, Collective.REDUCE_SCATTER),
    Look("#7a5ca8", "$S$"),
    solve,
    package="z3",
)
