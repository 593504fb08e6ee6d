"""Algorithms: the messages of a rank and the closed form, worked out by hand.

All are of four ranks with 1000 bytes each, on ports of a byte per nanosecond with 1 us of latency:
a quarter of the tensor takes 1 us. Schedules that are pipelined have two segments.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import pytest

from ringleaf.collectives.algorithm import Request
from ringleaf.collectives.cost import AlphaBeta, Cost
from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.collectives.schedule import Schedule
from ringleaf.collectives.verify import verify
from ringleaf.core.units import PS_PER_US

FABRIC = AlphaBeta(8_000_000_000, PS_PER_US)


@dataclass(frozen=True)
class Case:
    """What is known of an algorithm.

    Attributes:
        us: The time of its closed form.
        sent: The bytes of the busiest rank.
        alphas: The latencies one after the other.
        sends: What a rank sends: `step>to:chunks`.
        why: How time and bytes come about; quarters are of the tensor.
        rank: That rank.
        hierarchy: The levels, innermost first.
        ranks: The number of ranks.
        size: The bytes of the tensor; 0: 1000 for each rank.
    """

    us: float
    sent: int
    alphas: int
    sends: str
    why: str
    rank: int = 0
    hierarchy: tuple[int, ...] = ()
    ranks: int = 4
    size: int = 0


SPLIT = "0>1:1 1>2:2 2>3:3 3>3:0 4>2:0,1"
HALVES = "0>1:2,3 1>2:1 2>2:0 3>1:0,1"
PAIRS = "0>1:1 1>2:2 2>3:3 3>1:0 4>2:0 5>3:0"
BOTH_WAYS = "0>1:3 0>3:7 1>1:2 1>3:6 2>1:1 2>3:5 3>1:0 3>3:4 4>1:3 4>3:7 5>1:2 5>3:6"
GRID = "0>1:2,3,10,11 0>2:6,7,14,15 1>1:5,13 1>2:1,9 2>1:4,12 2>2:0,8 3>1:0,1,8,9 3>2:4,5,12,13"

UNEVEN = (
    "0>1:3,4,5,15,16,17 0>2:10,11 0>4:22,23 1>2:2,8,9 1>4:14,20,21 2>1:7,19 2>2:1 2>4:13 "
    "3>1:6,18 3>2:0 3>4:12 4>2:2,6,7 4>4:14,18,19 5>1:0,1,2,12,13,14 5>2:10,11 5>4:22,23"
)

CASES = {
    "allgather": Case(6, 3000, 3, "0>1:0 1>1:3 2>1:2", "3 x (1 + 1)"),
    "allgather-auto": Case(5, 3000, 2, "0>3:0 1>2:0,1", "Bruck's, the first of those with 5 us"),
    "allgather-bruck": Case(5, 3000, 2, "0>3:0 1>2:0,1", "1 + 1, 1 + 2"),
    "allgather-pat": Case(5, 3000, 2, "0>2:0 1>1:0,2", "1 + 1, 1 + 2; the farthest first"),
    "allgather-rings": Case(
        5,
        3000,
        3,
        "0>1:0,2 0>3:1,3 1>1:12,14 1>3:5,7 2>1:8,10 2>3:9,11",
        "3 x (1 + 1/2), and the last segment's 1/2",
    ),
    "allpairs": Case(8, 6000, 2, PAIRS, "2 x (1 + 3)"),
    "alltoall": Case(4, 3000, 1, "0>1:1 1>2:2 2>3:3", "1 + 3"),
    "alltoall-2d": Case(
        42,
        40_000,
        2,
        "0>1:2,3,6 0>2:4,5,7 1>1:7 1>2:2",
        "2 x 1, and half of 40 us twice; each half of the data begins with another dimension",
        hierarchy=(2, 2),
        size=40_000,
    ),
    "alltoall-auto": Case(4, 3000, 1, "0>1:1 1>2:2 2>3:3", "pairwise: nobody sends data twice"),
    "alltoall-bruck": Case(6, 4000, 2, "0>1:1,3 1>2:2,3", "2 x (1 + 2)"),
    "alltoall-hier": Case(
        6, 4000, 2, "0>1:1,3 0>2:2 1>2:1", "2 x 1, and half of 4 us twice", hierarchy=(2, 2)
    ),
    "auto": Case(8, 6000, 2, PAIRS, "all pairs, the first of those with 8 us"),
    "binomial": Case(20, 8000, 4, "2>2:0 3>1:0", "4 x (1 + 4); the root sends 4000 bytes twice"),
    "biring": Case(12, 6000, 6, BOTH_WAYS, "a ring's 6 x (1 + 1), as both halves share a port"),
    "blueconnect": Case(10, 6000, 4, HALVES, "2 x (1 + 2), 2 x (1 + 1)", hierarchy=(2, 2)),
    "bml": Case(
        16,
        12_000,
        4,
        "0>1:3,4,5 0>2:8,9 0>4:10,11 1>1:7 1>2:1 1>4:2 2>1:6 2>2:0 2>4:0 3>1:0,1,2 3>2:6,7 3>4:6,7",
        "4 x 1, and 2 x 5/6 of 7.2 us",
        hierarchy=(2, 3),
        ranks=6,
        size=7200,
    ),
    "broadcast": Case(11, 4000, 3, "0>1:0 1>1:1", "3 x 1, and 3 + 1 turns of 2 us"),
    "broadcast-auto": Case(
        17,
        12_000,
        5,
        "0>2:2,3 1>1:1 2>1:0 3>1:3 4>1:2",
        "1 + 4, 1 + 2, 3 x (1 + 2): less than a chain's 3 x 1, and 4 turns of 4 us",
        size=8000,
    ),
    "broadcast-rings": Case(
        11, 4000, 3, "0>1:0 0>3:1 1>1:2 1>3:3", "a chain's, as both ways share a port"
    ),
    "broadcast-scatter": Case(
        11, 6000, 5, "0>2:2,3 1>1:1 2>1:0 3>1:3 4>1:2", "1 + 2, 1 + 1, then 3 x (1 + 1)"
    ),
    "bucket": Case(
        16,
        10_000,
        6,
        UNEVEN,
        "2 x (1 + 3), 4 x (1 + 1); all parts share a port",
        hierarchy=(2, 3),
        ranks=6,
    ),
    "bucket-2d": Case(10, 6000, 4, GRID, "as bucket's, on the topology's grid", hierarchy=(2, 2)),
    "chain": Case(
        22,
        8000,
        6,
        "1>2:0 2>2:1 5>0:0 6>0:1",
        "6 x 1; max(6 + 1, 2 x 2 + 2 x 6 / 3) = 8 turns of 2 us",
        rank=1,
    ),
    "doubletree": Case(
        11,
        6000,
        4,
        "0>0:2 1>0:3 2>0:0 2>3:0 3>0:1 3>3:1",
        "4 x 1; up and down in 2 x 2 turns, and 3 for the second segment, of 1 us",
        rank=1,
    ),
    "dsar-split": Case(9, 6000, 3, SPLIT, "1 + 3, then 1 + 1, 1 + 2"),
    "halvingdoubling": Case(10, 6000, 4, HALVES, "2 x (1 + 2), 2 x (1 + 1)"),
    "hierring": Case(
        22,
        14_000,
        8,
        "0>1:4,5,6,7 1>2:3 2>2:2 3>2:1 4>2:0 5>2:3 6>2:2 7>1:0,1,2,3",
        "2 x (1 + 4) in groups, 6 x (1 + 1) in a ring across all four groups",
        hierarchy=(2, 2, 2),
        ranks=8,
    ),
    "ps": Case(8, 6000, 2, "0>1:1 0>2:2 0>3:3 1>1:0 1>2:0 1>3:0", "2 x 1, 2 x 3 quarters"),
    "recursivedoubling": Case(10, 8000, 2, "0>1:0 1>2:0", "2 x (1 + 4)"),
    "reduce": Case(11, 4000, 3, "0>2:0 1>2:1", "3 x 1, and 3 + 1 turns of 2 us", rank=1),
    "reduce-auto": Case(10, 5000, 4, "0>3:1,3 1>2:2", "the only one with 10 us"),
    "reduce-gather": Case(
        10, 5000, 4, "0>3:1,3 1>2:2", "1 + 2, 1 + 1, and back; rank 2 sends 3 and 2 quarters"
    ),
    "reduce-rings": Case(
        11, 4000, 3, "0>2:0 1>2:2 2>0:1 3>0:3", "a chain's, as both ways share a port", rank=1
    ),
    "reducescatter": Case(6, 3000, 3, "0>1:3 1>1:2 2>1:1", "3 x (1 + 1)"),
    "reducescatter-auto": Case(5, 3000, 2, "0>3:1,3 1>2:2", "PAT, the first of those with 5 us"),
    "reducescatter-pat": Case(5, 3000, 2, "0>3:1,3 1>2:2", "1 + 2, 1 + 1; the nearest first"),
    "reducescatter-rings": Case(
        5,
        3000,
        3,
        "0>1:12,14 0>3:5,7 1>1:8,10 1>3:9,11 2>1:4,6 2>3:13,15",
        "3 x (1 + 1/2), and the last segment's 1/2",
    ),
    "ring": Case(12, 6000, 6, "0>1:0 1>1:3 2>1:2 3>1:1 4>1:0 5>1:3", "6 x (1 + 1)"),
    "rings": Case(
        9.5,
        6000,
        6,
        "0>1:0,2 0>3:1,3 1>1:12,14 1>3:5,7 2>1:8,10 2>3:9,11 "
        "3>1:4,6 3>3:13,15 4>1:0,2 4>3:1,3 5>1:12,14 5>3:5,7",
        "6 x (1 + 1/2), and the last segment's 1/2",
    ),
    "ssar-double": Case(10, 8000, 2, "0>1:0 1>2:0", "2 x (1 + 4), if nothing is zero"),
    "ssar-split": Case(9, 6000, 3, SPLIT, "1 + 3, then 1 + 1, 1 + 2, if nothing is zero"),
    "strides": Case(
        9.5,
        6000,
        6,
        "0>1:0,1 1>1:6,7 2>1:4,5 3>1:2,3 4>1:0,1 5>1:6,7",
        "6 x (1 + 1/2), and the last segment's 1/2",
    ),
    "swing": Case(
        10, 6000, 4, "0>1:1,2 1>3:3 2>3:0 3>1:0,3", "2 x (1 + 2), 2 x (1 + 1); 1 on, then 1 back"
    ),
    "tree": Case(
        16,
        8000,
        4,
        "2>0:0 2>3:0 3>0:1 3>3:1",
        "4 x 1; up and down in 2 x 2 turns, and 2 for the second segment, of 2 us",
        rank=1,
    ),
}


def sends(schedule: Schedule, rank: int) -> str:
    """Return what a rank sends to others; places in scratch memory are its, too."""
    found = defaultdict(list)
    for row in schedule.rows:
        src, dst = row.src % schedule.ranks, row.dst % schedule.ranks  # type: ignore[union-attr]
        if src == rank != dst:
            found[row.step, dst].append(row.chunk)
    return " ".join(
        f"{step}>{dst}:{','.join(map(str, sorted(chunks)))}"
        for (step, dst), chunks in sorted(found.items())
    )


@pytest.mark.parametrize("name", CASES)
def test_golden(name: str) -> None:
    case = CASES[name]
    request = Request(
        case.ranks,
        case.size or 1000 * case.ranks,
        hierarchy=case.hierarchy,
        segments=2,
        fabric=FABRIC,
    )
    schedule = ALGORITHMS[name].schedule_for(request)
    verify(schedule)
    assert sends(schedule, case.rank) == case.sends
    wanted = Cost(round(case.us * PS_PER_US), case.sent, case.alphas)
    assert ALGORITHMS[name].cost_of(request) == wanted, case.why
