"""All pairs: every rank sends each part of the tensor straight to the rank that adds it up."""

from __future__ import annotations

import numpy as np

from ringleaf.collectives.algorithm import Algorithm, Look
from ringleaf.collectives.cost import AlphaBeta, Cost
from ringleaf.collectives.schedule import ChunkRows, Collective, Columns, Op, Schedule, check_ranks


def all_pairs_allreduce(ranks: int) -> Schedule:
    """Return a schedule of two rounds: to the owner of each chunk, and back from it to all.

    Rank r sends first to r + 1, then to r + 2, and so forth, so that no port is asked for by two.
    Two latencies, and n - 1 messages each time: for small tensors at one switch.

    Raises:
        ScheduleError: If `ranks` < 1.

    Source:
        The all-pairs programs of microsoft/msccl-tools (030a750).
    """
    check_ranks("all_pairs_allreduce", ranks)
    distance, src = np.ogrid[1:ranks, :ranks]
    dst = (src + distance) % ranks
    rows = Columns.joined(
        [
            Columns.transfers(distance - 1, src, dst, dst, Op.REDUCE),
            Columns.transfers(ranks + distance - 2, src, dst, src, Op.COPY),
        ]
    )
    return Schedule(Collective.ALLREDUCE, "allpairs", ranks, ranks, ChunkRows(rows))


def all_pairs_cost(ranks: int, size_bytes: int, fabric: AlphaBeta) -> Cost:
    """Return the cost of 2 (n - 1) messages of S / n bytes, of which only two wait for others."""
    if ranks < 2:
        return Cost(0, 0, 0)
    rounds, payload_bytes = ranks - 1, size_bytes / ranks
    half_ps = fabric.worst_latency_ps(ranks) + rounds * fabric.port_ps(payload_bytes)
    return Cost(2 * half_ps, round(2 * rounds * payload_bytes), 2)


ALGORITHM = Algorithm(
    "allpairs",
    Collective.ALLREDUCE,
    "all pairs",
    lambda r: all_pairs_allreduce(r.ranks),
    lambda r: all_pairs_cost(r.ranks, r.size_bytes, r.fabric),
    look=Look("#6eafc8", "x"),
)
