"""What every system's worker does where there is nothing to do, as `hosts/agent.py` demands."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from start import start_tensor

from ringleaf.core.arena import Store
from ringleaf.core.packets import FREE_AT, POOL_FREE, make_pool, read_packet
from ringleaf.core.units import FOREVER_PS
from ringleaf.hosts.agent import READY, TIMER_AT_PS, make_ring, take_completions
from ringleaf.ina.atp import worker as atp
from ringleaf.ina.netreduce import worker as netreduce
from ringleaf.ina.omnireduce import worker as omnireduce
from ringleaf.ina.omnireduce_switch import worker as omnireduce_switch
from ringleaf.ina.panama import worker as panama
from ringleaf.ina.registry import SYSTEMS
from ringleaf.ina.switchml import worker as switchml
from ringleaf.ina.systems import JobRequest, ResourceShare
from ringleaf.ina.tensors import FLOAT32, INT32
from ringleaf.ina.tern import worker as tern
from ringleaf.topologies.registry import build

WORKERS = {
    "atp": atp,
    "netreduce": netreduce,
    "omnireduce": omnireduce,
    "omnireduce-switch": omnireduce_switch,
    "panama": panama,
    "switchml": switchml,
    "tern": tern,
}


PORTS = {
    "atp": 0xA701,
    "netreduce": 0xBED1,
    "omnireduce": 0xB701,
    "omnireduce-switch": 0xBEF1,
    "panama": 0xBEE1,
    "switchml": 0xBEE1,
    "tern": 0xBF11,
}
"""The UDP ports that a worker of job 1 sends to."""


@pytest.mark.parametrize("name", WORKERS)
def test_a_worker_sends_each_of_its_packets_once_to_its_systems_port(name: str) -> None:
    """Of a tensor of ones that fills all four slots; a packet may have number 0."""
    store = Store(1 << 16)
    make_pool(store, size=8, head_bytes=2048, field_count=0, lane_count=0)
    ring = make_ring(store, 8)
    graph = build("leafspine,leaves=1,spines=0,hosts=3")
    asked = JobRequest(
        1, ["h0", "h1", "h2"], (), ResourceShare(), ring, 64, 4, 1_000_000, ecmp=False
    )
    job = SYSTEMS[name].join(graph, store, asked)
    place = store.register_memory(4 * 4 * 768)
    arena, at = store.arena, job.agents[1].block
    protocol: Any = job.agents[1].protocol
    free = arena.words[arena.own[FREE_AT] :][:8]
    free[:] = free[::-1].copy() if free[-1] != 0 else free
    arena.memory[place : place + 4 * 4 * 768].view(np.float32)[:] = 1
    assert start_tensor(protocol, arena, at, place, 4 * 768, FLOAT32, 17, now_ps=5)
    packets = []
    while arena.words[at + READY]:
        packets.append(protocol.transmit(arena, at, 0, 5))
    assert packets[0] == 0
    assert sorted(packets) == sorted(set(packets))
    if name != "netreduce":  # whose queue pairs wait for credit
        assert len(packets) == (2 if name == "atp" else 4)  # its window begins half open
    ports = {read_packet(arena, packet)[36:38].hex() for packet in packets}
    assert ports == {f"{PORTS[name]:x}"}
    assert protocol.transmit(arena, at, 0, 5) == -1


@pytest.mark.parametrize("dtype", [INT32, FLOAT32])
@pytest.mark.parametrize("name", WORKERS)
def test_an_empty_tensor_is_done_at_once_and_nothing_is_sent(name: str, dtype: int) -> None:
    store = Store(1 << 12)
    make_pool(store, size=8, head_bytes=512, field_count=0, lane_count=0)
    ring = make_ring(store, 8)
    graph = build("leafspine,leaves=1,spines=0,hosts=3")
    asked = JobRequest(
        1, ["h0", "h1", "h2"], (), ResourceShare(), ring, 64, 4, 1_000_000, ecmp=False
    )
    job = SYSTEMS[name].join(graph, store, asked)
    worker = job.agents[1]
    protocol: Any = worker.protocol
    assert protocol is WORKERS[name]
    arena, at = store.arena, worker.block

    free = arena.words[POOL_FREE]
    assert start_tensor(protocol, arena, at, 0, 0, dtype, 17, now_ps=5)

    (report,) = take_completions(arena, ring)
    assert (report.agent, report.a, report.b, report.time_ps) == (at, 0, 17, 5)
    assert not arena.words[at + READY]
    assert protocol.transmit(arena, at, 0, 5) == -1
    assert arena.words[POOL_FREE] == free
    assert arena.words[at + TIMER_AT_PS] == FOREVER_PS
