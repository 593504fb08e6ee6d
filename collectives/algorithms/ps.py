"""Parameter servers: each adds up its part of the tensor for all ranks, and gives them the sum.

Servers are nodes of their own, or the ranks themselves (co-located), each for its share.
"""

from __future__ import annotations

import numpy as np

from ringleaf.collectives.algorithm import Algorithm, Look, Request
from ringleaf.collectives.cost import AlphaBeta, Cost, best_segments, most_segments
from ringleaf.collectives.schedule import (
    ChunkRows,
    Collective,
    Columns,
    Op,
    Schedule,
    check_ranks,
    check_segments,
)
from ringleaf.errors import ScheduleError


def parameter_server_allreduce(ranks: int, servers: int = 0, segments: int = 1) -> Schedule:
    """Return a schedule in which ranks send each server its chunk of a segment and get the sum.

    Segments follow one another, so that a server's port sends sums while it receives the next
    segment. Co-located servers (0) have one segment: it has as many chunks as there are ranks.
    Ranks begin with different servers, and servers with different ranks, so that ports
    share the load at any time.

    Args:
        ranks: At least 1.
        servers: Nodes after the ranks; 0: each rank is a server.
        segments: Pieces in the pipeline through servers that are not co-located.

    Raises:
        ScheduleError: If a number is out of range.

    Source:
        Li et al., "Scaling distributed machine learning with the parameter server", OSDI 2014;
        co-located as in Jiang et al., "A unified architecture for accelerating distributed DNN
        training" (BytePS), OSDI 2020.
    """
    check_ranks("parameter_server_allreduce", ranks)
    check_segments("parameter_server_allreduce", segments)
    if servers < 0:
        raise ScheduleError(f"parameter_server_allreduce: servers must be >= 0, got {servers}")
    if servers == 0:
        segments = 1
    share = servers or ranks
    both = Columns.joined([_gather(ranks, servers, segments), _scatter(ranks, servers, segments)])
    rows = ChunkRows(both.in_steps())
    return Schedule(Collective.ALLREDUCE, "ps", ranks, share * segments, rows, servers=servers)


def _gather(ranks: int, servers: int, segments: int) -> Columns:
    """Return the transfers by which ranks send each segment, in the step of its number."""
    count, first = servers or ranks, ranks if servers else 0
    segment, turn, rank = np.ogrid[:segments, :count, :ranks]
    server = (rank + turn) % count
    rows = Columns.transfers(segment, rank, first + server, segment * count + server, Op.REDUCE)
    return rows.take(rows.src != rows.dst)


def _scatter(ranks: int, servers: int, segments: int) -> Columns:
    """Return the transfers by which servers send each segment's sums, one step later."""
    count, first = servers or ranks, ranks if servers else 0
    segment, turn, server = np.ogrid[:segments, :ranks, :count]
    rank = (server + turn) % ranks
    rows = Columns.transfers(segment + 1, first + server, rank, segment * count + server, Op.COPY)
    return rows.take(rows.src != rows.dst)


def parameter_server_cost(
    ranks: int, size_bytes: int, fabric: AlphaBeta, servers: int, segments: int
) -> Cost:
    """Return the cost by the busiest ports, of ranks or servers, with one segment of delay.

    A co-located server's port carries (n - 1) chunks each way, twice.
    """
    if ranks < 2 and not servers:
        return Cost(0, 0, 0)
    alpha_ps = fabric.worst_latency_ps(ranks + servers)
    if not servers:
        messages, chunk = 2 * (ranks - 1), size_bytes / ranks
        return Cost(2 * alpha_ps + messages * fabric.port_ps(chunk), round(messages * chunk), 2)
    chunk = size_bytes / (servers * segments)
    turn_ps = max(ranks, servers) * fabric.port_ps(chunk)
    sent = max(ranks / servers, 1) * size_bytes
    return Cost(2 * alpha_ps + (segments + 1) * turn_ps, round(sent), 2)


def parameter_server_segments(ranks: int, size_bytes: int, fabric: AlphaBeta, servers: int) -> int:
    """Return the number of pieces into which the model would cut the tensor."""
    if not servers:
        return 1
    return best_segments(
        lambda pieces: parameter_server_cost(ranks, size_bytes, fabric, servers, pieces).time_ps,
        most_segments(size_bytes // servers, ranks, rows_per_segment=2 * ranks * servers),
    )


def _ps_segments(r: Request) -> int:
    if r.segments is None:
        return parameter_server_segments(r.ranks, r.size_bytes, r.fabric, r.servers)
    return r.segments


ALGORITHM = Algorithm(
    "ps",
    Collective.ALLREDUCE,
    "parameter servers",
    lambda r: parameter_server_allreduce(r.ranks, r.servers, _ps_segments(r)),
    lambda r: parameter_server_cost(r.ranks, r.size_bytes, r.fabric, r.servers, _ps_segments(r)),
    look=Look("#7b8794", "X"),
)
