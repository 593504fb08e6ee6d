"""ESA from tensor to tensor: jobs of different urgency share too few aggregators."""

from __future__ import annotations

from random import Random

import numpy as np
from atp_network import SHAPES, job_on, small
from hypothesis import given, settings
from hypothesis import strategies as st
from lossy_network import EsaJob, Network, misbehaving, tree_of

from ringleaf.ina.esa.control import entities

PREEMPTED = 10  # row of the counter `outcomes`


def is_home(entry: object) -> bool:
    return getattr(entry, "table_id", "") == "homes"


def esa_on(graph: object, servers: int, number: int, urgency: int, aggregators: int) -> EsaJob:
    plain = job_on(graph, servers, number=number)  # type: ignore[arg-type]
    return EsaJob(*(number, plain.workers, plain.servers, aggregators), window=8, urgency=urgency)


@settings(max_examples=15)
@given(
    shape=st.sampled_from(SHAPES),
    seed=st.integers(0, 2**32 - 1),
    loss=st.sampled_from([0.0, 0.01, 0.2]),
    strange=st.sampled_from([0.0, 0.2]),
    aggregators=st.sampled_from([1, 4, 16]),
    counts=st.lists(st.integers(0, 900), min_size=1, max_size=3),
)
def test_sums_are_right_whatever_links_do_and_whoever_is_evicted(
    shape: tuple[int, ...], seed: int, loss: float, strange: float, aggregators: int,
    counts: list[int],
) -> None:  # fmt: skip
    graph = tree_of(shape)
    jobs = [
        esa_on(graph, servers, number, urgency, aggregators)
        for number, servers, urgency in ((1, 1, 0), (2, 0, 3), (3, 1, 7))
    ]
    rng = Random(seed)
    network = Network(graph, jobs, misbehaving(rng, loss, strange, strange))

    for count in counts:
        for run in network.reduce(*(small(rng, len(job.workers), count) for job in jobs)):
            run.check()


def test_urgent_jobs_take_aggregators_from_others() -> None:
    graph = tree_of((4,))
    jobs = [esa_on(graph, 1, number, urgency, 2) for number, urgency in ((1, 0), (2, 5))]
    network = Network(graph, jobs, misbehaving(Random(1), 0, 0, 0.5))
    for run in network.reduce(*(np.ones((3, 64 * 60), np.float32) for _ in jobs)):
        run.check()

    (switch,) = network.switches.values()
    assert switch.read_counter("Atp.aggregators.outcomes", PREEMPTED).packets > 10


def test_racks_of_a_large_job_are_told_in_homes() -> None:
    """With 4 bits for 8 workers, sums of the first two racks go home as bits of their racks."""
    graph = tree_of((3, 3))
    plain = job_on(graph)
    job = EsaJob(1, plain.workers, plain.servers, 8, 8, bits=4)
    told = entities(graph, job)
    homes = {
        switch: [entry.action.args["rack"] for entry in entries if is_home(entry)]
        for switch, entries in told.items()
    }
    assert homes == {"s0": [], "s1": [1], "s2": [2], "s3": [0]}
