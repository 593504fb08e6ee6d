"""Schedules with servers: nodes that help, hold zeros at first, and contribute nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from ringleaf.collectives.interchange import from_json, to_json
from ringleaf.collectives.oracle import execute
from ringleaf.collectives.schedule import Collective, Op, Schedule, Transfer
from ringleaf.collectives.verify import verify
from ringleaf.errors import ScheduleError

RANKS = 3


def through_server() -> Schedule:
    """All ranks send to one server, which sends the sum back."""
    up = [Transfer(0, rank, RANKS, 0, Op.REDUCE) for rank in range(RANKS)]
    down = [Transfer(1, RANKS, rank, 0, Op.COPY) for rank in range(RANKS)]
    return Schedule(Collective.ALLREDUCE, "through a server", RANKS, 1, tuple(up + down), servers=1)


def test_sum_through_a_server_is_right() -> None:
    proof = verify(through_server(), strict=True)
    assert proof.identical
    tensors = [torch.full((5,), float(rank + 1)) for rank in range(RANKS)]
    results = execute(through_server(), tensors)
    assert len(results) == RANKS
    assert all(torch.equal(result, torch.full((5,), 6.0)) for result in results)


def test_a_lost_row_is_found() -> None:
    schedule = through_server()
    with pytest.raises(ScheduleError, match="lacks the contribution of rank 0"):
        verify(replace(schedule, rows=schedule.rows[1:]))


def test_a_server_counts_as_a_node_only_if_it_is_there() -> None:
    with pytest.raises(ScheduleError, match="ranks must be below 3, got"):
        verify(replace(through_server(), servers=0))


def test_interchange_keeps_servers() -> None:
    assert from_json(to_json(through_server())) == through_server()
