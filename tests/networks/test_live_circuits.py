"""Circuits of live networks: in what order ports wait and routes move, and whole runs as root."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.core.arena import Store
from ringleaf.core.units import PS_PER_MS
from ringleaf.errors import ConfigError
from ringleaf.experiments.runs.python import run
from ringleaf.hosts import rc
from ringleaf.hosts.rc.state import add_qps
from ringleaf.networks.circuit_plan import CircuitPlan
from ringleaf.networks.endpoints.rack_demand import PairTraffic, QueuePairTraffic, RackDemand
from ringleaf.networks.live.members import listen, say
from ringleaf.networks.live.shared_traffic import SharedTraffic
from ringleaf.networks.mininet.circuits import LiveCircuits
from ringleaf.networks.options import NetworkOptions
from ringleaf.networks.outcome import CircuitChange
from ringleaf.topologies.registry import build
from ringleaf.topologies.switching.plan import CircuitDemand, Circuits, from_links, ring
from ringleaf.topologies.switching.settings import (
    CONTROLLERS,
    CircuitController,
    parse_circuits,
)

TOPOLOGY = "circuits,racks=4,hosts=2,optical=1"


@pytest.fixture(autouse=True)
def _own_controllers() -> Iterator[None]:
    yield
    CONTROLLERS.added.clear()


class Switches:
    """Switches that note what is asked of them; circuits hold packets for so many looks."""

    def __init__(self, looks: int = 0) -> None:
        self.heard: list[tuple[str, Any]] = []
        self._looks = looks

    def door(self, updates: dict[str, Sequence[Any]]) -> None:
        if any(updates.values()):
            self.heard.append(("routes", sorted(name for name, each in updates.items() if each)))

    def ask(self, command: str, **arguments: Any) -> int:
        [(_, given_)] = arguments.items()
        self.heard.append((command, sorted(tuple(each) for each in given_)))
        self._looks -= command == "queued"
        return max(self._looks, 0)


def carry(
    decide: Callable[[CircuitDemand, int], Circuits],
    switches: Switches,
    until: Callable[[], bool],
    *,
    settings: str = "period=2ms,dead=1ms",
    **more: Any,
) -> list[CircuitChange]:
    """Have a controller switch circuits in a thread until something holds; return the changes."""
    CONTROLLERS.added["mine"] = CircuitController("", decide, **more)
    options = NetworkOptions(circuits=parse_circuits(f"mine,{settings}", ""))
    plan = CircuitPlan.of(build(TOPOLOGY), options)
    assert plan is not None
    nothing = np.zeros((0, 2), np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64)
    circuits = LiveCircuits(plan, options, lambda: PairTraffic(*nothing), switches.door, switches)  # type: ignore[arg-type]
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        thread = threading.Thread(target=circuits.be, args=[theirs])
        thread.start()
        assert listen(ours) == {"ready": True}
        say(ours, {"start": time.monotonic_ns()})
        while not until():
            time.sleep(0.001)
        say(ours, {"settle": True})
        assert listen(ours) == {"settled": True}
        thread.join()
    return circuits.changes()


def once_a_ring(demand: CircuitDemand, now_ps: int) -> Circuits:
    """Join each rack to the next, then no other."""
    return from_links(ring(demand.racks))


def test_routes_leave_circuits_before_they_go_and_lead_over_new_ones_before_they_are_up() -> None:
    switches = Switches(looks=3)

    def turn(demand: CircuitDemand, now_ps: int) -> Circuits:
        step = 1 + min(demand.cycle, 1)
        return from_links((rack, (rack + step) % demand.racks) for rack in range(demand.racks))

    changes = carry(turn, switches, lambda: len(kinds(switches, "release")) == 3, needs_core=True)

    # All dark, none up; then a ring; then, away from the ring, another one; and as it was.
    assert [kind for kind, _ in switches.heard if kind != "queued"] == [
        *("hold", "release"),
        *("hold", "routes", "release"),
        *("routes", "hold", "routes", "release"),
        "routes",
    ]
    held = kinds(switches, "hold")
    assert len(held[0]) == 4 * 3
    assert held[1] == []
    assert len(held[2]) == 4
    assert held[2] == sorted(each[:2] for each in kinds(switches, "release")[1])
    assert len(kinds(switches, "queued")) >= 4  # it looks again until they are empty
    assert [len(each.pairs) for each in changes] == [4, 4]
    for each in changes:
        assert each.dark_ps is not None
        assert each.up_ps is not None
        assert each.at_ps <= each.dark_ps <= each.up_ps - PS_PER_MS


def kinds(switches: Switches, kind: str) -> list[Any]:
    return [what for each, what in list(switches.heard) if each == kind]


def test_circuits_with_packets_go_dark_after_the_most_time_that_draining_may_take() -> None:
    switches = Switches(looks=10**9)

    [change] = carry(
        once_a_ring,
        switches,
        lambda: len(kinds(switches, "release")) == 2,
        settings="period=2ms,dead=1ms,drain=3ms",
        needs_core=True,
    )

    assert change.dark_ps is not None
    assert change.dark_ps >= change.at_ps + 3 * PS_PER_MS


def test_a_controller_that_decides_once_sets_circuits_up_before_the_run() -> None:
    switches = Switches()

    changes = carry(once_a_ring, switches, lambda: True, once=True)

    assert changes == []
    [held], [up] = kinds(switches, "hold"), kinds(switches, "release")
    assert len(held) == 4 * 2
    assert len(up) == 4
    rate = build(TOPOLOGY).edges["s0", "s1"]["link"].rate_bps
    assert {bps for *_, bps in up} == {rate}


@pytest.mark.parametrize(
    ("text", "switch", "captured", "what"),
    [
        ("osa,senders=pause", "embedded", False, "live hosts don't pause"),
        ("helios", "bmv2", False, "BMv2's lines stay"),
        ("helios", "embedded", True, "live captures"),
    ],
)
def test_what_live_circuits_lack_is_refused(
    text: str, switch: str, captured: bool, what: str
) -> None:
    circuits = parse_circuits(text, "")
    assert circuits is not None

    with pytest.raises(ConfigError, match=what):
        circuits.check_live(switch, captured=captured)


def test_all_times_of_circuits_are_longer_in_a_slower_network() -> None:
    circuits = parse_circuits("helios,period=300us,dead=25us,drain=50us", "")
    assert circuits is not None

    assert str(circuits.at_scale(1000)) == "helios,period=300ms,dead=25ms,drain=50ms,senders=run"


# Traffic of hosts.


class Pairs:
    """Two hosts whose queue pairs come one after the other."""

    def __init__(self) -> None:
        self.store = Store()
        self.agents = [
            rc.make_rc(
                self.store,
                host=host,
                ring=16,
                mtu=1000,
                window=8,
                min_timeout_ps=1,
                rnr_wait_ps=1,
                has_data=False,
            )
            for host in range(2)
        ]
        self._peers: list[list[int]] = [[], []]

    def peers(self, host: int) -> list[int]:
        return self._peers[host]

    def add(self, host: int) -> None:
        """Add a queue pair to the other host."""
        self._peers[host].append(1 - host)
        add_qps(self.store, self.agents[host])

    def send(self, host: int, number: int, packets: int) -> None:
        words = self.store.arena.words
        row = int(words[self.agents[host] + rc.QPS_AT]) + number * rc.QP_WORDS
        words[row + rc.POSTED_PSN] += packets
        words[row + rc.ACKED_PSN] += packets


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 9)), max_size=12))
def test_what_is_acknowledged_counts_once_however_many_queue_pairs_come(
    sent: list[tuple[int, int]],
) -> None:
    pairs = Pairs()
    demand = RackDemand(QueuePairTraffic(pairs.store, pairs, range(2)), [0, 1], 2)  # type: ignore[arg-type]
    demand.restart()
    counted, wanted = np.zeros((2, 2), np.int64), np.zeros((2, 2), np.int64)
    for host, packets in sent:
        pairs.add(host)
        pairs.send(host, len(pairs.peers(host)) - 1, packets)
        pairs.send(host, 0, packets)
        wanted[host, 1 - host] += 2 * 1000 * packets
        counted += demand.take()[0]

    assert (counted == wanted).all()


def test_hosts_see_each_other_s_traffic_by_pair() -> None:
    shared = SharedTraffic(3)
    ends = np.array([[1, 0], [1, 2], [1, 0]])

    shared.note(1, PairTraffic(ends, np.array([5, 7, 1]), np.array([9, 7, 2])))

    traffic = shared()
    columns = traffic.ends.tolist(), traffic.acked_bytes.tolist(), traffic.posted_bytes.tolist()
    known = {(src, dst): each for (src, dst), *each in zip(*columns, strict=True) if any(each)}
    assert known == {(1, 0): [6, 11], (1, 2): [7, 7]}
    shared.clear()
    assert not shared().posted_bytes.any()


# Whole runs.


@pytest.mark.live
def test_helios_changes_circuits_of_a_live_network_and_the_next_run_begins_anew(
    tmp_path: Path,
) -> None:
    rows = run(
        topo=TOPOLOGY,
        net="mininet",
        algo="hierring",
        size="1M,2M",  # so long that circuits come up within each, however busy the machine is
        circuits="helios,period=20us,dead=5us",
        figures="no",
        out=str(tmp_path),
    ).rows

    for row in rows:
        assert row.wrong == 0
        assert row.changes > 0
        assert row.circuit_bytes > 0
        assert row.duty is not None
        assert 0 < row.duty < 1


@pytest.mark.live
def test_live_racks_forward_over_topoopt_s_rings(tmp_path: Path) -> None:
    (row,) = run(
        topo="circuits,racks=4,hosts=1,optical=2,core=0",
        net="mininet",
        algo="strides",
        size="64K",
        circuits="topoopt",
        figures="no",
        out=str(tmp_path),
    ).rows

    assert (row.wrong, row.changes, row.duty) == (0, 0, 1.0)
    assert row.circuit_bytes > 0


@pytest.mark.live
def test_live_jobs_share_circuits(tmp_path: Path) -> None:
    job = {"model": "resnet50", "ranks": 4, "iterations": 2, "size": "0.001", "compute": "0.01"}
    options: dict[str, Any] = {"jobs": [job, job], "algo": "ring", "servers": "0"}

    rows = run(
        **options,
        topo=TOPOLOGY,
        net="mininet",
        circuits="helios,period=20us,dead=5us",
        figures="no",
        out=str(tmp_path),
    ).rows

    assert [row.wrong for row in rows] == [0, 0]
    assert rows[0].changes > 0


@pytest.mark.live
def test_live_circuits_are_those_that_jobs_are_planned_to_use(tmp_path: Path) -> None:
    """Each of two jobs lies in two racks with a rack between; each rack has one circuit.

    Not a byte goes by the core, as in virtual time, so these pairs have circuits both ways. Were
    the jobs' traffic not known, racks 0 and 1 would be joined, which send each other nothing.
    """
    job = {"model": "resnet50", "ranks": 2, "iterations": 2, "size": "0.001", "compute": "0.01"}
    options: dict[str, Any] = {"jobs": [job, job], "algo": "ring", "servers": "0"}
    for net in ("virtual", "mininet"):
        rows = run(
            **options,
            topo="circuits,racks=4,hosts=1,optical=1",
            net=net,
            circuits="sipocs",
            figures="no",
            out=str(tmp_path / net),
        ).rows
        assert [row.wrong for row in rows] == [0, 0]
        assert rows[0].circuit_bytes > 0
        assert rows[0].packet_bytes == 0
