"""What is added to a registry, or to options, comes with its floor, bound, estimate and steps."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from ringleaf.collectives.algorithm import Algorithm
from ringleaf.collectives.critical_path import sent_bytes
from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.collectives.schedule import Collective
from ringleaf.experiments.bounds.floor import Floor, MovedData, NonZeroBytes
from ringleaf.experiments.estimates import estimate
from ringleaf.experiments.runs.registry import WORKLOADS
from ringleaf.experiments.runs.request import kind_of
from ringleaf.experiments.setup.ranks import count_nodes
from ringleaf.experiments.workloads.collective.experiment import CollectiveExperiment
from ringleaf.experiments.workloads.collective.kind import OPTIONS, resolve
from ringleaf.ina.registry import SYSTEMS
from ringleaf.topologies.registry import build
from ringleaf.topologies.ways import TopologyRoutes

MIB = 1 << 20
STAR = "leafspine,leaves=1,spines=1,hosts=8"
BY_HOSTS = [each for each in ALGORITHMS.values() if not each.in_network and each.method is None]
NESTED = ("blueconnect", "hierring")
"""Their messages are counted for groups of ranks; without groups they have as many as a ring."""

PARTS = {
    "the network's graph, of which bound and floor are": (
        *("topo", "rate", "delay", "inject", "switch_delay", "host_delay", "detours", "routes"),
        *("adds", "hosts"),
    ),
    "the schedule, or the size of its tensors": (
        *("algo", "size", "min", "max", "factor", "servers", "rank_order", "dtype", "trees"),
        "queue_pairs",
    ),
    "the elements that floors, bounds and estimates count": (
        *("density", "cluster", "overlap", "compress", "data", "seed"),
    ),
    "packets, of which bounds are": ("mtu", "lanes", "slots", "cc", "message_overhead"),
    "time that is added to a run, never taken off": (
        *("loss", "duplicate", "reorder", "window", "ina_cc", "ecn", "queue", "trim", "pfc"),
        *("discipline", "cross_traffic", "control", "faults", "reroute", "repath", "circuits"),
        "shrink",
    ),
    "the process's own time and memory, which estimates count": ("skip", "explain", "threads"),
    "another network or program, or files only": (
        *("program", "net", "switch", "scale", "stall", "pcap", "record", "figures", "column"),
        *("wide", "out", "check_packets"),
    ),
}
"""Options by what they change. A new one is put where it belongs when its parts are there."""


def test_every_option_is_known_to_floors_bounds_and_estimates() -> None:
    assert sorted(name for names in PARTS.values() for name in names) == sorted(OPTIONS)


@pytest.mark.parametrize("collective", list(Collective))
def test_every_collective_has_a_floor(collective: Collective) -> None:
    """At least a block of an eighth comes into some rank, at 80 ps a byte."""
    floor = Floor(TopologyRoutes(build(STAR, rate_bps=10**11, delay_ps=0)), 8)
    task = MovedData(collective, MIB // 4, 4, NonZeroBytes.dense(8, MIB), hosts_add=False)

    assert MIB // 8 * 80 <= floor.least_ps(task) <= 2 * MIB * 80


@pytest.mark.parametrize("name", sorted(ALGORITHMS))
def test_every_algorithm_has_a_bound(name: str) -> None:
    if (method := ALGORITHMS[name].method) is not None:
        pytest.skip(f"each step of {method} has a bound of its own")
    compress = SYSTEMS[name].compress if name in SYSTEMS else ""
    given = {"topo": STAR, "algo": name, "size": "64K", "compress": compress}
    experiment = CollectiveExperiment(resolve({k: v for k, v in given.items() if v}))
    ((size_bytes, algorithm, inputs),) = experiment.tasks()
    schedule = experiment.schedule(algorithm, size_bytes)

    assert experiment.limits.bound_ps(schedule, inputs, None) > 0
    floor_ps = experiment.limits.floor_ps(algorithm, schedule, inputs)
    assert (floor_ps > 0) == (not compress), "an element of some systems takes less than a bit"


@pytest.mark.parametrize("ranks", [8, 96])
@pytest.mark.parametrize("algorithm", BY_HOSTS, ids=lambda each: each.name)
def test_every_algorithm_has_an_estimate_of_its_schedule(algorithm: Algorithm, ranks: int) -> None:
    """Of 96 ranks no schedule is made for an estimate, unless a closed form knows it."""
    schedule = algorithm.build(ranks, size_bytes=MIB, hierarchy=(ranks,))
    rows = estimate.rows(algorithm, ranks, MIB) / len(schedule.rows)
    messages = estimate.messages(algorithm, ranks, MIB) / len(schedule.columns)
    sent = estimate.sent_bytes(algorithm, ranks, MIB) / sum(sent_bytes(schedule, MIB))

    assert 0.45 < rows < 2.25
    assert 0.45 < sent < 2.25
    assert 0.45 < messages < 2.25 or algorithm.name in NESTED


WALK = """
from ringleaf.experiments.stepper.request import step_request
from ringleaf.experiments.stepper.story_maker import tell
from ringleaf.ina.registry import SYSTEMS

for name in SYSTEMS:
    print(name, len(tell(step_request(name, ranks=2, elements=8)).frames))
"""


def test_every_system_can_be_stepped_through() -> None:
    """Algorithms of hosts are in `stepper/test_stepper_story.py`, all of them.

    A process that has not loaded Numba steps without compiling anything, which takes seconds.
    """
    done = subprocess.run(
        [sys.executable, "-c", WALK], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    frames = {name: int(count) for name, count in map(str.split, done.stdout.splitlines())}
    assert set(frames) == set(SYSTEMS)
    assert all(count >= 4 for count in frames.values()), "both ranks send, and get the sum"


@pytest.mark.parametrize("name", WORKLOADS.shipped())
def test_every_kind_of_run_has_an_estimate(name: str) -> None:
    """An idle network is the least, and more hosts take more."""
    kind = WORKLOADS[name]
    [given] = [each for each in ASKED if kind_of(each) is kind]
    small, large = (
        kind.need(spec, count_nodes(spec)).memory_bytes
        for spec in (kind.fitted(kind.resolve(given | {"topo": f"fattree,k={k}"})) for k in (4, 8))
    )
    assert 100 << 20 < small < large


ASKED: tuple[dict[str, Any], ...] = (
    {"algo": "ring", "size": "64K"},
    {"jobs": [{"model": "resnet50"}]},
    {"workload": "incast", "ranks": "8"},
    {"workload": "gpt13b", "tp": "1", "recovery": "oobleck", "faults": "h3 down at 1s"},
    {"offload": "guo"},
    {"script": ["train.py"]},
    {"converge": "all"},
)
"""Options of a run of each kind."""
