"""PLink: groups of near hosts, found by timing messages on a network that tells nothing else.

Source:
    Luo et al., "PLink: Discovering and Exploiting Datacenter Network Locality for Efficient
    Cloud-based Distributed Training", MLSys 2020.

The source fixes: latency and bandwidth are probed, near hosts are clustered, and data is reduced
in two levels, in shards. No code of it is public, so these were chosen here: messages of 64 bytes
and 1 MiB; groups by gaps in the latencies, not k-means; the plan is a ring in rank order, a flat
exchange, or two levels for some grouping, whichever the probed times say is quickest; nothing is
tuned while it runs. In two levels each member of a group is sent its chunks by all others of it,
chunks go around the groups in rings, and members are sent the sums.
"""

from __future__ import annotations

from collections.abc import Sequence

from ringleaf.collectives.algorithm import Look
from ringleaf.collectives.algorithms.allpairs import all_pairs_allreduce
from ringleaf.collectives.algorithms.ring import ring_allreduce
from ringleaf.collectives.collective import Collective
from ringleaf.collectives.schedule import Op, Schedule, Transfer
from ringleaf.collectives.synthesis.bounds import least_in_pieces_ps
from ringleaf.collectives.synthesis.probing import (
    FittedTimes,
    Probe,
    groupings,
    latencies,
    probe_of,
)
from ringleaf.collectives.synthesis.problem import Problem, Synthesiser, SynthesisPlan
from ringleaf.collectives.wires import Pair
from ringleaf.core.units import format_count

Groups = Sequence[Sequence[int]]


def solve(problem: Problem) -> SynthesisPlan:
    """Return the plan that the probed times say is quickest."""
    ranks, size = problem.ranks, problem.size_bytes
    if ranks == 1:
        return SynthesisPlan(Schedule(problem.collective, "plink", 1, 1, ()), 0, 0)
    probe = probe_of(problem.wires)
    ring = FittedTimes.measured(probe, [(rank, (rank + 1) % ranks) for rank in range(ranks)])
    flat = FittedTimes.measured(probe, _within([range(ranks)]))
    choices = [
        (2 * (ranks - 1) * ring.time_ps(size / ranks), "ring", ring_allreduce(ranks)),
        (2 * flat.time_ps(size / ranks), "flat", all_pairs_allreduce(ranks)),
    ]
    for groups in groupings(latencies(probe, ranks), ranks):
        time_ps = _two_levels_ps(probe, groups, size)
        name = f"{format_count(len(groups), 'group')}: " + " ".join(
            _show(group) for group in groups
        )
        choices.append((time_ps, name, two_levels(ranks, groups)))
    time_ps, name, schedule = min(choices, key=lambda choice: choice[0])
    renamed = Schedule(problem.collective, "plink", ranks, schedule.chunks, schedule.rows)
    bound_ps = least_in_pieces_ps(problem.wires, size, problem.collective)
    return SynthesisPlan(renamed, round(time_ps), bound_ps, (("choice", name),))


def _show(group: Sequence[int]) -> str:
    return "{" + ",".join(map(str, group)) + "}"


def _within(groups: Groups) -> list[Pair]:
    return [(a, b) for group in groups for a in group for b in group if a != b]


def _owner(group: Sequence[int], chunk: int) -> int:
    return group[chunk % len(group)]


def _two_levels_ps(probe: Probe, groups: Groups, size: int) -> float:
    """Return the time of two levels: shards within, around the groups, and within again."""
    least, most = min(map(len, groups)), max(map(len, groups))
    hops = [
        (_owner(group, place), _owner(after, place))
        for group, after in zip(groups, [*groups[1:], groups[0]], strict=True)
        for place in range(most)
    ]
    across = FittedTimes.measured(probe, list(dict.fromkeys(hops)))
    inside = _within(groups)
    inner_ps = FittedTimes.measured(probe, inside).time_ps(size / least) if inside else 0.0
    return 2 * inner_ps + 2 * (len(groups) - 1) * across.time_ps(size / (least * len(groups)))


def two_levels(ranks: int, groups: Groups) -> Schedule:
    """Return an allreduce in two levels: reduce-scatter in groups, rings across, all-gather.

    Args:
        ranks: The number of ranks.
        groups: The ranks of each group.
    """
    count = len(groups)
    chunks = ranks * count  # each member has some that begin at each group
    rows = []
    for chunk in range(chunks):
        start = chunk // ranks
        owners = [_owner(groups[(start + turn) % count], chunk) for turn in range(count)]
        for group in groups:
            owner = _owner(group, chunk)
            others = [rank for rank in group if rank != owner]
            rows += [Transfer(0, rank, owner, chunk, Op.REDUCE) for rank in others]
            rows += [Transfer(2 * count - 1, owner, rank, chunk, Op.COPY) for rank in others]
        for hop in range(count - 1):
            rows.append(Transfer(1 + hop, owners[hop], owners[hop + 1], chunk, Op.REDUCE))
            step, src = count + hop, owners[hop - 1]  # the last one has the sum
            rows.append(Transfer(step, src, owners[hop], chunk, Op.COPY))
    rows.sort(key=lambda row: (row.step, row.src, row.dst, row.chunk))
    return Schedule(Collective.ALLREDUCE, "two levels", ranks, chunks, rows)


SYNTHESISER = Synthesiser(
    "plink",
    "PLink",
    (Collective.ALLREDUCE,),
    Look("#4f8f4f", "$P$"),
    solve,
    takes_chunks=False,
)
