"""TACOS: greedy matching of chunks and links, on the network spread out along time.

Source:
    Won et al., "TACOS: Topology-Aware Collective Algorithm Synthesizer for Distributed Machine
    Learning", MICRO 2024, arXiv 2304.05301; github.com/astra-sim/tacos 1811f1f for the details of
    matching and the published times.

The source fixes: an all-gather by a queue of times, each free link taking a chunk, fast links
first, ties by chance; the best of 20 searches; a slow message gives way to a faster one with the
same chunk; reduce-scatter by reversal, allreduce by both. Chosen here: a link draws some chunks and
takes the rarest; few links stand for switches, as `unwound` says; and the number of chunks, of 1, 2
and 4 for each rank the one with the least expected time.
"""

from __future__ import annotations

from ringleaf.collectives.algorithm import Look
from ringleaf.collectives.collective import Collective
from ringleaf.collectives.schedule import Schedule
from ringleaf.collectives.synthesis.bounds import gather_bound_ps, least_in_pieces_ps
from ringleaf.collectives.synthesis.greedy import best_gather
from ringleaf.collectives.synthesis.problem import MOST_CELLS, Problem, Synthesiser, SynthesisPlan
from ringleaf.collectives.synthesis.timed import (
    Timed,
    backwards,
    end_of,
    one_after_the_other,
    to_rows,
)
from ringleaf.collectives.synthesis.unwound import unwound
from ringleaf.collectives.wires import RankNetwork

TRIES = 20
CHUNKS = (1, 2, 4)
LEAST_CHUNK_BYTES = 4096  # of those that are chosen here


def solve(problem: Problem) -> SynthesisPlan:
    """Return the best plan found, for one number of chunks or several, on one or more networks."""
    ranks = problem.ranks
    counts = [
        count
        for count in CHUNKS
        if problem.size_bytes // (ranks * count) >= LEAST_CHUNK_BYTES
        and ranks * ranks * count <= MOST_CELLS
    ] or [1]
    if problem.chunks is not None:
        counts = [problem.chunks]
    networks = unwound(problem.wires, problem.seed)
    limit_s = problem.limit_s / (len(counts) * len(networks))
    plans = []
    for wires in networks:
        for count in counts:
            plans.append(_solve(problem, wires, count, limit_s))
            problem.offer(plans[-1])
    return min(plans, key=lambda plan: plan.expected_ps)


def _solve(problem: Problem, wires: RankNetwork, chunks: int, limit_s: float) -> SynthesisPlan:
    collective, ranks = problem.collective, problem.ranks
    chunk_bytes = -(-problem.size_bytes // (ranks * chunks))

    def gather(part: RankNetwork, whole: RankNetwork) -> tuple[list[Timed], int]:
        """Return an all-gather, and the least time of any on the whole network."""
        moves = best_gather(
            part,
            chunks,
            chunk_bytes,
            tries=TRIES,
            seed=problem.seed,
            limit_s=limit_s / 2,
            bound=gather_bound_ps(part, chunks, chunk_bytes),
        )
        return moves, gather_bound_ps(whole, chunks, chunk_bytes)

    expected_ps = bound_ps = 0
    collecting, spreading = [], []
    if collective is not Collective.ALL_GATHER:
        moves, bound_ps = gather(wires.mirrored, problem.wires.mirrored)
        expected_ps = end_of(moves)
        collecting = to_rows(backwards(moves))
    if collective is not Collective.REDUCE_SCATTER:
        moves, least_ps = gather(wires, problem.wires)
        expected_ps += end_of(moves)
        bound_ps += least_ps
        spreading = to_rows(moves)
    if collective is Collective.ALLREDUCE:  # which need not have these halves
        bound_ps = least_in_pieces_ps(problem.wires, problem.size_bytes, collective)
    rows = one_after_the_other(collecting, spreading)
    schedule = Schedule(collective, "tacos", ranks, ranks * chunks, rows)
    return SynthesisPlan(schedule, expected_ps, bound_ps, (("chunks for each rank", str(chunks)),))


SYNTHESISER = Synthesiser(
    "tacos",
    "TACOS",
    (Collective.ALLREDUCE, Collective.ALL_GATHER, Collective.REDUCE_SCATTER),
    Look("#c2553c", "$T$"),
    solve,
)
