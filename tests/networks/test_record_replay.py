"""Whatever a network's switches did, they do again from what was recorded of them."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ringleaf.collectives.oracle import execute
from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.core.marking import NEVER, Marking, from_depth
from ringleaf.ina.registry import SYSTEMS
from ringleaf.networks.outcome import RunResult
from ringleaf.networks.replay.compare import ComparisonRules, PortResult, ReorderWindow, make_check
from ringleaf.networks.replay.replayer import Replayer, load_program
from ringleaf.networks.replay.sinks import Outputs, PortComparison
from ringleaf.networks.traces.checksums import changed_files
from ringleaf.networks.traces.trace import ORDER, TIME_PS, open_trace
from ringleaf.networks.virtual import NetworkOptions, VirtualNetwork
from ringleaf.topologies.delays import with_delays
from ringleaf.topologies.graph import hosts
from ringleaf.topologies.registry import build

TOPOLOGIES = (
    "leafspine,leaves=2,spines=2,hosts=2",
    "torus2d,x=2,y=2",
    "hammingmesh,a=2,b=1,x=2,y=1",
)


def record(
    folder: Path,
    topology: str,
    algorithm: str,
    elements: int,
    *,
    delay_ps: int,
    switch_delay_ps: int = 0,
    **options: object,
) -> RunResult:
    """Run a collective, its result checked, and leave traces in `folder`, if it is one."""
    seed = int(str(options.pop("seed", 1)))
    graph = with_delays(build(topology, delay_ps=delay_ps), switch_delay_ps=switch_delay_ps)
    network = VirtualNetwork(
        graph,
        NetworkOptions(system=SYSTEMS.get(algorithm), lanes=64, **options),  # type: ignore[arg-type]
        seed=seed,
    )
    ranks = len(hosts(graph))
    schedule = ALGORITHMS[algorithm].build(
        ranks, size_bytes=4 * elements, hierarchy=graph.graph["hierarchy"]
    )
    generator = torch.Generator().manual_seed(seed)
    tensors = [torch.randint(99, (elements,), generator=generator).int() for _ in range(ranks)]
    expected = execute(schedule, tensors)
    result = network.run(schedule, tensors)
    network.close()
    assert all(torch.equal(got, want) for got, want in zip(tensors, expected, strict=True))
    return result


def replay(folder: Path, rules: ComparisonRules = ComparisonRules(times=True)) -> list[PortResult]:  # noqa: B008
    trace = open_trace(folder)
    checks = [make_check(port, 0, file, rules) for port, file in enumerate(trace.expected, start=1)]
    replayer = Replayer(trace, load_program(trace.manifest))
    replayer.run([PortComparison(checks, trace.origin_ns)], lambda _: None)
    for check in checks:
        check.finish()
    return [check.result for check in checks]


@settings(max_examples=8, deadline=None)
@given(
    topology=st.sampled_from(TOPOLOGIES),
    algorithm=st.sampled_from(["ring", "tree", "halvingdoubling", "alltoall", "switchml"]),
    elements=st.sampled_from([1, 300, 1000]),
    delay_ps=st.sampled_from([0, 1000, 1_000_000]),
    switch_delay_ps=st.sampled_from([0, 1, 400_000]),
    loss=st.sampled_from([0.0, 0.03]),
    duplicate=st.sampled_from([0.0, 0.05]),
    reorder=st.sampled_from([0.0, 0.05]),
    ecmp=st.booleans(),
    ecn=st.sampled_from([NEVER, from_depth(1), from_depth(2), Marking(0, 8, 0.5)]),
    queue_bytes=st.sampled_from([1200, 4 << 20]),
    seed=st.integers(1, 1 << 30),
)
def test_every_switch_does_the_same_again(
    topology: str, algorithm: str, elements: int, **options: object
) -> None:
    """Bytes, order and times; with short queues and no delay, much happens in one instant."""
    with TemporaryDirectory() as name:
        small: dict[str, Any] = {"record": Path(name), "mtu_bytes": 256, **options}
        record(Path(name), topology, algorithm, elements, **small)
        folders = sorted(path.parent for path in Path(name).glob("*/trace.yaml"))
        assert folders
        for folder in folders:
            results = replay(folder)
            assert [result.first for result in results] == [None] * len(results)
            assert changed_files(folder) == []


def test_recording_changes_nothing(tmp_path: Path) -> None:
    trouble = {"loss": 0.03, "duplicate": 0.05, "reorder": 0.05, "mtu_bytes": 256, "delay_ps": 1000}

    runs = [
        record(tmp_path, TOPOLOGIES[0], "ring", 2000, **trouble, **extra)  # type: ignore[arg-type]
        for extra in ({}, {"record": tmp_path}, {"capture": tmp_path / "pcap"})
    ]

    assert len({(run.time_ps, run.events, run.lost, tuple(run.wire_bytes)) for run in runs}) == 1


def test_a_trace_tells_rates_and_room_of_its_switchs_ports(tmp_path: Path) -> None:
    topology = "leafspine,leaves=1,spines=0,hosts=2,rate=25G"
    record(tmp_path, topology, "ring", 300, delay_ps=1000, record=tmp_path, queue_bytes=123_456)
    (folder,) = (path.parent for path in tmp_path.glob("*/trace.yaml"))
    ports = open_trace(folder).manifest.ports
    assert [(each.rate_bps, each.queue_bytes) for each in ports] == 2 * [(25 * 10**9, 123_456)]


def test_time_never_goes_back(tmp_path: Path) -> None:
    """Not even when a timeout becomes shorter than a packet is under way."""
    record(
        tmp_path, TOPOLOGIES[0], "switchml", 1500,
        delay_ps=1_000_000, record=tmp_path, loss=0.02, duplicate=0.03, reorder=0.03,
    )  # fmt: skip

    for path in tmp_path.glob("*/arrivals.npy"):
        assert (np.diff(np.load(path)[:, TIME_PS]) >= 0).all()


def test_arrivals_among_a_switchs_own_events_keep_their_place(tmp_path: Path) -> None:
    """Packets of one size on links without delay: ports fall idle just when packets come."""
    record(
        tmp_path, "leafspine,leaves=2,spines=1,hosts=4", "alltoall", 2000,
        delay_ps=0, record=tmp_path, mtu_bytes=256, ecn=from_depth(1),
    )  # fmt: skip
    orders = np.concatenate([np.load(p)[:, ORDER] for p in sorted(tmp_path.glob("*/arrivals.npy"))])

    assert orders.max() > 0
    for path in sorted(tmp_path.glob("*/trace.yaml")):
        assert all(result.equal for result in replay(path.parent))


def test_the_same_trace_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    record(tmp_path, TOPOLOGIES[0], "ring", 500, delay_ps=1000, record=tmp_path, loss=0.05)
    trace = open_trace(tmp_path / "s0")
    texts = []
    for name in ("once", "twice"):
        outputs = Outputs(tmp_path / name, trace.origin_ns)
        Replayer(trace, load_program(trace.manifest)).run([outputs], lambda _: None)
        outputs.close()
        files = sorted((tmp_path / name).iterdir())
        texts.append([(file.name, file.read_bytes()) for file in files])

    assert texts[0] == texts[1]
    assert texts[0] == [
        (path.name, path.read_bytes()) for path in sorted((tmp_path / "s0" / "out").iterdir())
    ]


def test_windows_forgive_order_but_not_bytes(tmp_path: Path) -> None:
    record(tmp_path, TOPOLOGIES[0], "ring", 500, delay_ps=1000, record=tmp_path)

    for window in (ReorderWindow(), ReorderWindow(packets=0), ReorderWindow(time_ns=0)):
        assert all(
            result.equal for result in replay(tmp_path / "s0", ComparisonRules(window=window))
        )
