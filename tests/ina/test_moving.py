"""Jobs that exchange switches' memory between tensors, on links that lose, repeat and delay."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lossy_network import EsaJob, Network, misbehaving, tree_of

from ringleaf.ina.atp import control as atp_control
from ringleaf.ina.atp.control import AtpJob
from ringleaf.ina.atp.moving import AggregatorMover
from ringleaf.ina.esa import control as esa_control
from ringleaf.ina.holdings import Holding, Mover
from ringleaf.ina.switchml import control as switchml_control
from ringleaf.ina.switchml.control import SwitchmlJob
from ringleaf.ina.switchml.moving import SlotMover
from ringleaf.topologies.graph import hosts
from ringleaf.topologies.trees import aggregation_tree

MOST = 6  # slots that workers are made with


def mover_of(network: Network, number: int) -> Mover:
    job: Any = network.jobs[number]
    graph = network.graph
    blocks = [agent.block for agent in network.parties[number].agents]
    if isinstance(job, AtpJob):
        entities = esa_control.entities if isinstance(job, EsaJob) else atp_control.entities
        count = len(job.workers)
        workers, servers = blocks[:count], blocks[count:]
        whole = Holding(0, job.aggregators)
        return AggregatorMover(
            job, workers, servers, lambda each: entities(graph, each), whole, 8, 16, 1
        )
    tree = aggregation_tree(graph, hosts(graph), index=job.number)
    return SlotMover(
        job,
        blocks,
        lambda each: switchml_control.entities(graph, tree, each),
        Holding(job.first_slot, job.slots),
        MOST,
        64,
        1,
    )


def move(network: Network, mover: Mover, holding: Holding) -> None:
    for name, entities in mover.move(network.store.arena, holding).items():
        network.switches[name].write(entities)


def tensors(generator: np.random.Generator, ranks: int, jobs: int) -> list[np.ndarray]:
    return [
        generator.standard_normal((ranks, int(generator.integers(0, 900)))).astype(np.float32)
        for _ in range(jobs)
    ]


@settings(max_examples=12)
@given(
    seed=st.integers(0, 2**32 - 1),
    levels=st.sampled_from([(3,), (2, 2)]),
    strange=st.sampled_from([0.0, 0.2]),
    parts=st.lists(st.tuples(st.integers(0, MOST), st.integers(1, MOST)), min_size=1, max_size=3),
)
def test_sums_are_right_after_slots_went_to_another_job(
    seed: int, levels: tuple[int, ...], strange: float, parts: list[tuple[int, int]]
) -> None:
    """The second job always lies where the first one was, as far as this has left."""
    generator = np.random.default_rng(seed)
    jobs = [SwitchmlJob(1, MOST), SwitchmlJob(2, MOST, first_slot=MOST)]
    fate = misbehaving(Random(seed), strange / 4, strange, strange)
    network = Network(tree_of(levels), jobs, fate)
    ranks = int(np.prod(levels))
    first, second = (mover_of(network, number) for number in range(2))

    for run in network.reduce(*tensors(generator, ranks, 2)):
        run.check()
    for size, other in parts:
        move(network, second, Holding(2 * MOST, 1))  # out of the way
        move(network, first, Holding(0, size) if size else Holding())
        move(network, second, Holding(size, other))
        if size:
            for run in network.reduce(*tensors(generator, ranks, 2)):
                run.check()


@pytest.mark.parametrize("kind", [AtpJob, EsaJob])
@settings(max_examples=3)
@given(
    seed=st.integers(0, 2**32 - 1),
    strange=st.sampled_from([0.0, 0.2]),
    parts=st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), min_size=1, max_size=3),
)
def test_sums_are_right_after_aggregators_went_to_slots(
    kind: type[AtpJob], seed: int, strange: float, parts: list[tuple[int, int]]
) -> None:
    """An ATP job and one of SwitchML, on one program, whose entries never overlap."""
    generator = np.random.default_rng(seed)
    graph = tree_of((2, 2))
    names = tuple(hosts(graph))
    atp = kind(1, names, names[-1:], aggregators=16, window=8)
    fate = misbehaving(Random(seed), strange / 4, strange, strange)
    network = Network(graph, [atp, SwitchmlJob(2, MOST, first_slot=16)], fate)
    first, second = (mover_of(network, number) for number in range(2))

    for aggregators, slots in parts:
        move(network, first, Holding(slots, aggregators))
        move(network, second, Holding(0, max(slots, 1)))
        for run in network.reduce(*tensors(generator, 4, 2)):
            run.check()


def test_blocks_of_a_job_without_slots_are_strangers() -> None:
    """Its packets change nothing in switches until it has slots again."""
    network = Network(tree_of((2,)), [SwitchmlJob(1, 2)])
    mover = mover_of(network, 0)
    part = np.ones((2, 100), np.float32)
    network.reduce(part)[0].check()
    repeated = [hop for hop in network.hops if hop[1].startswith("s")]

    move(network, mover, Holding())
    before = len(network.hops)
    for src, dst, packet in repeated:
        network.arrive(src, dst, packet)
    assert len(network.hops) == before

    move(network, mover, Holding(4, 1))
    network.reduce(part)[0].check()
