"""All-to-all: every rank has different data for each of the others."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ringleaf.collectives.algorithm import Algorithm, Look
from ringleaf.collectives.cost import AlphaBeta, Cost
from ringleaf.collectives.schedule import Collective, Columns, Op, Schedule, check_ranks
from ringleaf.collectives.symmetric_rows import SymmetricRows
from ringleaf.collectives.symmetry import Exchange


def pairwise_all_to_all(ranks: int) -> Schedule:
    """Return a schedule that sends, in step d, from every rank to the one d + 1 further on.

    No port gets two messages in a step. Chunks are in rotated order (see `Collective`): chunk d
    goes d ranks further, to the place from which that rank sends its own chunk d in the same
    step. So arriving messages have to land in a buffer of their own first.

    Raises:
        ScheduleError: If `ranks` < 1.
    """
    check_ranks("pairwise_all_to_all", ranks)
    exchange = Exchange(ranks, lambda rank: _rows_of(rank, ranks))
    rows = SymmetricRows(exchange, lambda: _rows(ranks), rows=exchange.messages, steps=ranks - 1)
    return Schedule(Collective.ALL_TO_ALL, "pairwise", ranks, ranks, rows)


def _rows(ranks: int) -> Columns:
    distance, src = np.ogrid[1:ranks, :ranks]
    return _sent(distance, src, ranks)


def _rows_of(rank: int, ranks: int) -> Columns:
    """Return what a rank sends and receives: in each step, the one of less number sends first."""
    distance = np.arange(1, ranks)[:, None]
    src = np.sort(np.concatenate((0 * distance + rank, (rank - distance) % ranks), axis=1), axis=1)
    return _sent(distance, src, ranks)


def _sent(distance: npt.NDArray[np.int64], src: npt.NDArray[np.int64], ranks: int) -> Columns:
    """Return the chunks that ranks send to those so far away, a step for each distance."""
    return Columns.transfers(distance - 1, src, (src + distance) % ranks, distance, Op.COPY)


def pairwise_cost(ranks: int, size_bytes: int, fabric: AlphaBeta) -> Cost:
    """Return the cost of n - 1 messages of S / n bytes; none waits for another, so one alpha."""
    if ranks < 2:
        return Cost(0, 0, 0)
    rounds, payload_bytes = ranks - 1, size_bytes / ranks
    time_ps = fabric.worst_latency_ps(ranks) + rounds * fabric.port_ps(payload_bytes)
    return Cost(time_ps, round(rounds * payload_bytes), 1)


ALGORITHM = Algorithm(
    "alltoall",
    Collective.ALL_TO_ALL,
    "pairwise all-to-all",
    lambda r: pairwise_all_to_all(r.ranks),
    lambda r: pairwise_cost(r.ranks, r.size_bytes, r.fabric),
    look=Look("#9467bd", "o"),
    symmetric=True,
)
