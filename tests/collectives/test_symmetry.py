"""Symmetric schedules say of each rank what all rows say, and ranks of a kind have one plan."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import numpy as np
import pytest

from ringleaf.collectives.algorithms.alltoall import pairwise_all_to_all
from ringleaf.collectives.algorithms.blueconnect import blueconnect_allreduce
from ringleaf.collectives.algorithms.halvingdoubling import halving_doubling_allreduce
from ringleaf.collectives.algorithms.hierring import hierarchical_ring_allreduce
from ringleaf.collectives.algorithms.ring import (
    ring_all_gather,
    ring_allreduce,
    ring_reduce_scatter,
)
from ringleaf.collectives.algorithms.tree import tree_allreduce
from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.collectives.schedule import Schedule
from ringleaf.collectives.symmetric_rows import symmetry_of
from ringleaf.collectives.symmetry import Exchange, Symmetry
from ringleaf.hosts.plan import Plans
from ringleaf.hosts.shared_plans import plan_of_rank

SCHEDULES: dict[str, Callable[[], Schedule]] = {
    "ring-2": lambda: ring_allreduce(2),
    "ring-3": lambda: ring_allreduce(3),
    "ring-8": lambda: ring_allreduce(8),
    "allgather-7": lambda: ring_all_gather(7),
    "reducescatter-5": lambda: ring_reduce_scatter(5),
    "halvingdoubling-2": lambda: halving_doubling_allreduce(2),
    "halvingdoubling-16": lambda: halving_doubling_allreduce(16),
    "blueconnect-12": lambda: blueconnect_allreduce(12, (3, 1, 4)),
    "blueconnect-8": lambda: blueconnect_allreduce(8, (2, 2, 2)),
    "hierring-24": lambda: hierarchical_ring_allreduce(24, (4, 2, 3)),
    "tree-1": lambda: tree_allreduce(1, 2),
    "tree-2": lambda: tree_allreduce(2, 3),
    "tree-13": lambda: tree_allreduce(13, 4),
    "tree-16": lambda: tree_allreduce(16, 1),
}

each_schedule = pytest.mark.parametrize("name", SCHEDULES)


def made(name: str) -> tuple[Schedule, Symmetry]:
    schedule = SCHEDULES[name]()
    symmetry = symmetry_of(schedule.as_rows)
    assert isinstance(symmetry, Symmetry)
    return schedule, symmetry


@each_schedule
def test_rows_of_a_rank_are_those_of_the_schedule(name: str) -> None:
    schedule, symmetry = made(name)
    rows = schedule.columns

    for rank in range(schedule.ranks):
        expected = rows.take((rows.src == rank) | (rows.dst == rank))
        own = symmetry.rows_of(rank)
        assert all(map(np.array_equal, own.arrays, expected.arrays))


@each_schedule
def test_counts_are_those_of_the_rows(name: str) -> None:
    schedule, symmetry = made(name)
    rows = schedule.columns

    assert symmetry.messages == schedule.as_rows.messages == len(rows)
    assert len(schedule.rows) == int((rows.stop - rows.start).sum())
    assert schedule.steps == (int(rows.step.max()) + 1 if len(rows) else 0)


@each_schedule
def test_peers_are_those_that_ranks_meet_and_know_their_way_back(name: str) -> None:
    schedule, symmetry = made(name)
    rows = schedule.columns

    for rank in range(schedule.ranks):
        met = {*rows.dst[rows.src == rank].tolist(), *rows.src[rows.dst == rank].tolist()}
        assert {*symmetry.peers[rank].tolist()} - {rank} == met
    own = np.arange(schedule.ranks)[:, None]
    assert (symmetry.peers[symmetry.peers, symmetry.back] == own).all()


def waits(plan: Plans) -> list[tuple[object, ...]]:
    """Each part of a plan, with what it waits for; chunks are told by their sizes only."""
    counts = np.where(plan.reads, 1, 2) * (plan.stop - plan.start)
    return [
        (
            *(column[part].item() for column in (plan.kind, plan.reads, plan.op, plan.staged)),
            plan.stream[part].item(),
            plan.sizes[part].item(),
            sorted(plan.after[at : at + count].tolist()),
        )
        for part, (at, count) in enumerate(
            zip(plan.after_at.tolist(), counts.tolist(), strict=True)
        )
    ]


@each_schedule
def test_ranks_of_a_kind_have_the_same_plan(name: str) -> None:
    """Peers of the same stream are in the same column, so that one plan will do for all."""
    schedule, symmetry = made(name)
    edges = np.arange(schedule.chunks + 1) * 6
    known: dict[int, tuple[object, list[int]]] = {}

    for rank in range(schedule.ranks):
        plan = plan_of_rank(schedule, symmetry.rows_of(rank), rank, edges)
        columns = [symmetry.peers[rank].tolist().index(peer) for peer in plan.streams.peer.tolist()]
        mine = (waits(plan), sorted(columns))
        assert known.setdefault(int(symmetry.kind[rank]), mine) == mine


def test_rows_can_be_sent_to_other_processes() -> None:
    schedule = halving_doubling_allreduce(4)

    assert pickle.loads(pickle.dumps(schedule)).rows == schedule.rows


NAMED = [name for name in ALGORITHMS.shipped() if ALGORITHMS[name].symmetric]


@pytest.mark.parametrize("name", NAMED)
def test_algorithms_keep_their_word(name: str) -> None:
    schedule = ALGORITHMS[name].build(16, size_bytes=1 << 20, hierarchy=(4, 4))

    assert symmetry_of(schedule.as_rows) is not None


def test_other_numbers_of_ranks_have_no_symmetry_of_halving_doubling() -> None:
    assert symmetry_of(halving_doubling_allreduce(12).as_rows) is None


@pytest.mark.parametrize("ranks", [1, 2, 5, 8])
def test_ranks_of_an_exchange_know_their_rows(ranks: int) -> None:
    schedule = pairwise_all_to_all(ranks)
    exchange, rows = symmetry_of(schedule.as_rows), schedule.columns

    assert isinstance(exchange, Exchange)
    assert exchange.messages == schedule.as_rows.messages == len(schedule.as_rows) == len(rows)
    for rank in range(ranks):
        expected = rows.take((rows.src == rank) | (rows.dst == rank))
        assert all(map(np.array_equal, exchange.rows_of(rank).arrays, expected.arrays))
