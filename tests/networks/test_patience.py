"""A job that waits in vain is noticed, whatever others do meanwhile."""

from __future__ import annotations

import torch

from ringleaf.arena import Store
from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.hosts.agent import PROGRESS, make_agent, make_ring
from ringleaf.hosts.executor.build import Executors
from ringleaf.hosts.plan import plans
from ringleaf.hosts.staging import lay_out
from ringleaf.networks.endpoints.memory import Memory
from ringleaf.networks.endpoints.operation import Operation
from ringleaf.networks.virtual.patience import ROUND_TRIPS, Patience, limit_ps
from ringleaf.units import PS_PER_S, PS_PER_US

LIMIT_PS = PS_PER_S


def operation_of(group: int) -> Operation:
    store, parts = Store(), plans(ALGORITHMS["ring"].build(2), 2)
    executors = Executors(store, parts, lay_out(parts, 4, ahead_bytes=0), torch.float32)
    return Operation(store, Memory(store), executors, (), group=group, channel=0, ranks=2)


def make(groups: int) -> tuple[Patience, Store, list[int]]:
    store = Store()
    ring = make_ring(store, 4)
    blocks = [make_agent(store, 0, host=i, ring=ring, udp_ports=(1, 1)) for i in range(groups)]
    patience = Patience(store, [[block] for block in blocks], rtt_ps=0, now_ps=0)
    return patience, store, blocks


def test_a_job_that_goes_on_does_not_hide_one_that_waits() -> None:
    patience, store, blocks = make(2)
    waiting, going_on = operation_of(0), operation_of(1)
    for round_ in (1, 2):
        store.arena.words[blocks[1] + PROGRESS] += 1
        stalled = patience.stalled([waiting, going_on], round_ * LIMIT_PS)

    assert stalled == [waiting]


def test_an_operation_that_has_just_begun_has_time() -> None:
    patience, _, _ = make(1)
    first, second = operation_of(0), operation_of(0)

    assert patience.stalled([first], LIMIT_PS) == []  # it may have begun a moment ago
    assert patience.stalled([second], 2 * LIMIT_PS) == []
    assert patience.stalled([second], 3 * LIMIT_PS - 1) == []
    assert patience.stalled([second], 3 * LIMIT_PS) == [second]


def test_slow_paths_have_more_time() -> None:
    assert limit_ps(1) == LIMIT_PS
    assert limit_ps(10 * PS_PER_US) == ROUND_TRIPS * 10 * PS_PER_US
