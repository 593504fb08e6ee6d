"""SHARP: which jobs may stream, by hand; what a job does that may not; fixed-point sums."""

from __future__ import annotations

import numpy as np
import pytest
from lossy_network import Network, tree_of

from ringleaf.core.arena import Store
from ringleaf.errors import ConfigError
from ringleaf.ina.registry import SYSTEMS
from ringleaf.ina.sharp.job import MOST_BYTES, QUANTUM, QUANTUM_2, SharpJob, join
from ringleaf.ina.sharp.trees import streaming
from ringleaf.ina.switchml.control import SwitchmlJob
from ringleaf.ina.switchml.wire import SIZE_NONE
from ringleaf.ina.systems import JobRequest, ResourceShare
from ringleaf.topologies.registry import build

RACKS = "leafspine,leaves=4,spines=2,hosts=2"
ACROSS = [(1, ["h0", "h2"]), (2, ["h1", "h3"])]  # both in racks 0 and 1, under spines of their own
APART = [(1, ["h0", "h2"]), (2, ["h4", "h6"])]  # racks 0 and 1, racks 2 and 3
SAME_SPINE = [(1, ["h0", "h2"]), (3, ["h1", "h3"])]


@pytest.mark.parametrize(
    ("jobs", "quantum", "quantum_2"),
    [
        (ACROSS, [True, False], [True, True]),
        (APART, [True, True], [True, True]),
        (SAME_SPINE, [True, False], [True, False]),
        ([*SAME_SPINE, (2, ["h0", "h2"])], [True, False, False], [True, False, False]),
    ],
)
def test_a_switch_has_one_stream_and_with_quantum_2_a_port_has_one(
    jobs: list[tuple[int, list[str]]], quantum: list[bool], quantum_2: list[bool]
) -> None:
    """In the last case h0's port is taken, though the second job's spine is free."""
    graph = build(RACKS)
    assert streaming(graph, jobs, per_port=False, most=63) == quantum
    assert streaming(graph, jobs, per_port=True, most=511) == quantum_2


@pytest.mark.parametrize("most", [QUANTUM.streams, 2])
def test_no_more_jobs_stream_than_the_network_has_trees_though_none_meets_another(
    most: int,
) -> None:
    """A job a rack, so that switches are no limit."""
    graph = build(f"leafspine,leaves={most + 1},spines=1,hosts=2")
    jobs = [(i + 1, [f"h{2 * i}", f"h{2 * i + 1}"]) for i in range(most + 1)]

    assert streaming(graph, jobs, per_port=False, most=most) == [*[True] * most, False]


def test_the_network_has_so_many_streaming_trees() -> None:
    assert streaming(build(RACKS), APART, per_port=False, most=1) == [True, False]
    assert (QUANTUM.streams, QUANTUM_2.streams) == (63, 511)


def joined(jobs: list[tuple[int, list[str]]], **changed: object) -> tuple[Store, SharpJob]:
    """The last of these jobs."""
    number, members = jobs[-1]
    store = Store()
    given: dict[str, object] = {
        "number": number,
        "members": members,
        "servers": (),
        "share": ResourceShare(),
        "ring": 0,
        "lanes": 64,
        "slots": None,
        "rtt_ps": 8_000_000,
        "ecmp": False,
        "earlier": jobs[:-1],
        **changed,
    }
    return store, join(build(RACKS), store, JobRequest(**given))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("jobs", "elements", "place"),
    [(ACROSS[:1], 1000, 0), (ACROSS, 64, 0), (ACROSS, 65, 2), (APART, 65, 0)],
)
def test_a_job_that_may_not_stream_has_its_hosts_add_larger_requests_up(
    jobs: list[tuple[int, list[str]]], elements: int, place: int
) -> None:
    """Agents 0 and 1 are the tree's, 2 and 3 the hosts' workers."""
    store, job = joined(jobs)
    at = store.register_memory(4 * elements)
    store.arena.memory[at : at + 4 * elements] = 0
    took = job.start(store.arena, 0, at, elements, 0, np.dtype(np.float32), 0)
    assert took == job.agents[place].block
    assert (job.hosts is None) == (jobs != ACROSS)


def test_messages_and_values_beyond_the_limits_are_refused() -> None:
    store, job = joined(ACROSS[:1])
    with pytest.raises(ConfigError, match=f"sharp: a message must have at most {MOST_BYTES} bytes"):
        job.start(store.arena, 0, 0, MOST_BYTES // 4 + 1, 0, np.dtype(np.int32), 0)
    at = store.register_memory(4)
    store.arena.memory[at : at + 4].view(np.float32)[0] = 1100
    with pytest.raises(ConfigError, match=r"sharp: magnitudes must be at most 102[34]"):
        job.start(store.arena, 0, at, 1, 0, np.dtype(np.float32), 0)


def test_fixed_point_takes_one_round_and_rounds_to_the_nearest_unit() -> None:
    """2^-21 is half a unit of 2^-20 and goes to even, 0; 3 x 2^-21 goes to 2 units."""
    network = Network(tree_of((2,)), [SwitchmlJob(1, 2)], fraction_bits=20)
    parts = np.array([[1.5, 2.0**-21, 3 * 2.0**-21], [-3, 0, 0]], np.float32)
    (run,) = network.stream(parts)
    assert run.results[1].tolist() == [-1.5, 0, 2.0**-19]
    up = [packet for src, _, packet in network.hops if src == "h0"]
    assert len(up) == 1
    assert up[0][42] & 7 != SIZE_NONE


def test_they_are_systems_with_switchmls_program() -> None:
    for name in ("sharp", "sharp-quantum2"):
        assert SYSTEMS[name].program(64) == "switchml-64"
        with pytest.raises(ConfigError, match=f"{name}: lanes must be one of"):
            SYSTEMS[name].program(512)
