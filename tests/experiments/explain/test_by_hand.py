"""Explanations of runs whose times follow from rates, sizes and delays by hand.

A full packet has 4096 bytes of data and 82 of headers: Ethernet 14, IPv4 20, UDP 8, BTH 12, ICRC 4,
and preamble, FCS and gap 24. At 100 Gbit/s a byte takes 80 ps, such a packet 334,240 ps.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.experiments.explain.explain import ExplainedOptions, bound_parts, explain, is_uneven
from ringleaf.experiments.explain.findings import (
    IMBALANCE,
    LATENCY,
    OTHER,
    PARTS,
    QUEUEING,
    RESENDS,
    WAITING,
    BoundParts,
    Explained,
)
from ringleaf.experiments.explain.log import LoggedNetwork
from ringleaf.experiments.explain.parts import lost
from ringleaf.experiments.explain.path import Path as Causes
from ringleaf.experiments.setup.network import build_topology, connect
from ringleaf.experiments.workloads.collective.experiment import CollectiveExperiment
from ringleaf.experiments.workloads.collective.kind import resolve
from ringleaf.networks.faults import LinkLoss
from ringleaf.networks.options import NetworkOptions

PACKET_PS = 334_240
ANSWER_PS = 86 * 80  # an acknowledgement has four bytes more, and no data
SLOW_PS = 5 * PACKET_PS  # at 20 Gbit/s
US = 1_000_000
STAR = "leafspine,leaves=1,spines=0,hosts=2"


def explained(**given: str) -> Explained:
    """Return the explanation of one row."""
    spec = resolve({"explain": "yes", "algo": "allgather", "size": "16K", **given})
    (found,) = CollectiveExperiment(spec).run(connect)
    assert found.explained is not None
    assert found.explained.bound.time_ps == found.row.bound_ps
    return found.explained


def some(parts: dict[str, int]) -> dict[str, int]:
    """Leave out parts without time."""
    return {name: time_ps for name, time_ps in parts.items() if time_ps}


def test_hosts_that_exchange_two_packets_take_them_and_two_links() -> None:
    found = explained(topo=STAR)

    # Before its data, each host tells the other that there is room for it.
    assert found.time_ps == ANSWER_PS + 3 * PACKET_PS + 2 * US  # the second is stored once more
    assert found.bound == BoundParts(3 * PACKET_PS, 0, 2 * US)
    assert some(found.lost_ps) == {WAITING: ANSWER_PS}
    assert some(found.spent_ps) == {"line": 3 * PACKET_PS, "links": 2 * US, "answers": ANSWER_PS}
    assert found.headers_ps == 3 * 82 * 80


def test_a_root_that_only_sends_waits_for_its_acknowledgement() -> None:
    found = explained(topo=STAR, algo="broadcast", size="8K")

    assert found.time_ps == 3 * PACKET_PS + 2 * US + 2 * ANSWER_PS + 2 * US
    assert some(found.lost_ps) == {WAITING: 2 * ANSWER_PS + 2 * US}


def test_delays_of_nodes_and_processors_have_places_of_their_own() -> None:
    found = explained(topo=STAR, switch_delay="400ns", host_delay="600ns", message_overhead="500ns")

    assert found.bound.latency_ps == 2 * US + 400_000 + 2 * 600_000
    assert some(found.lost_ps) == {"processors": 2 * 500_000}  # to send, and to receive
    assert some(found.spent_ps) == {
        "line": 3 * PACKET_PS,
        "links": 2 * US,
        "switches": 400_000,
        "hosts": 1_200_000,
        "processors": 1_000_000,
    }


def test_a_lost_packet_is_time_from_its_first_sending_to_its_last() -> None:
    graph = build_topology(STAR, rate_bps=10**11, delay_ps=US, hosts=None)
    network = LoggedNetwork(graph, NetworkOptions())
    schedule = ALGORITHMS["allgather"].build(2, size_bytes=16_384)
    tensors = [np.arange(4096, dtype=np.float32) for _ in range(2)]

    outcome = network.run(
        schedule,
        tensors,
        disturbances=[
            LinkLoss(ANSWER_PS // 2, ("h0", "s0"), 1.0),
            LinkLoss(PACKET_PS // 2, ("h0", "s0"), None),
        ],
    )
    network.close()

    # The second packet is there alone, and the receiver says so by a NAK.
    again_ps = 3 * PACKET_PS + 2 * US + 2 * ANSWER_PS + 2 * US
    bound = BoundParts(3 * PACKET_PS, 0, 2 * US)
    found = explain(
        *(
            graph,
            network.packets(),
            outcome,
            bound,
            ExplainedOptions(256, 0, "fixed", in_network=False),
        ),
        algo="allgather",
        size_bytes=16_384,
    )
    assert found.time_ps == ANSWER_PS + again_ps + 3 * PACKET_PS + 2 * US
    assert some(found.lost_ps) == {WAITING: ANSWER_PS, RESENDS: again_ps}
    lost_one, other = sorted(found.diagram.arrows, key=lambda arrow: arrow.src)
    assert (lost_one.sent_ps[0], lost_one.there_ps[1], lost_one.again) == (
        ANSWER_PS,
        found.time_ps,
        1,
    )
    there_ps = ANSWER_PS + 3 * PACKET_PS + 2 * US
    assert (other.sent_ps[0], other.there_ps[1], other.again) == (ANSWER_PS, there_ps, 0)


def edges(path: Path, text: str) -> str:
    path.write_text(text)
    return str(path)


def test_a_slow_link_that_the_bound_knows_is_a_part_of_the_bound(tmp_path: Path) -> None:
    topo = edges(tmp_path / "star.edges", "h0 s0\nh1 s0 rate=20G\n")

    found = explained(topo=topo)

    assert found.bound == BoundParts(3 * PACKET_PS, 2 * (SLOW_PS - PACKET_PS), 2 * US)
    assert some(found.lost_ps) == {WAITING: 5 * ANSWER_PS}  # on the slow link
    assert found.spent_ps["slow"] == 2 * (SLOW_PS - PACKET_PS)


def test_a_slow_link_that_the_routes_need_not_take_is_imbalance(tmp_path: Path) -> None:
    # The flow's hash takes one of two spines; the bound counts on the better one.
    shape = "h0 s0\nh1 s1\ns0 s2{a}\ns0 s3{b}\ns1 s2\ns1 s3\n"
    slow = " rate=20G"
    topos = [
        edges(tmp_path / "a.edges", shape.format(a=slow, b="")),
        edges(tmp_path / "b.edges", shape.format(a="", b=slow)),
    ]

    both = [explained(topo=topo, routes="ecmp", algo="broadcast", size="4K") for topo in topos]

    assert sorted(found.lost_ps[IMBALANCE] for found in both) == [0, SLOW_PS - PACKET_PS]
    for found in both:
        assert found.bound.line_ps == PACKET_PS  # of one link only is it certain that it is taken
        assert found.lost_ps[QUEUEING] == 3 * PACKET_PS  # the packet is on three more
        assert found.bound.latency_ps == 4 * US


def test_more_data_than_the_bound_has_is_imbalance_as_far_as_one_link_carries_it() -> None:
    path = Causes()
    path.spent_ps["line"] = 130
    path.spent_ps["links"] = 20

    parts = lost(BoundParts(100, 0, 20), path, busiest_ps=112)

    assert some(parts) == {IMBALANCE: 12, QUEUEING: 18}


def test_waits_that_overlap_with_the_bounds_work_are_no_loss() -> None:
    path = Causes()
    path.spent_ps |= {"line": 60, "links": 90, "answers": 5}

    parts = lost(BoundParts(100, 0, 20), path, busiest_ps=100)

    assert some(parts) == {LATENCY: 30, WAITING: 5}  # 70, less 40 that the link works meanwhile
    assert sum(parts.values()) == path.time_ps - 120


def test_a_bound_above_the_time_is_shown_as_a_negative_rest() -> None:
    path = Causes()
    path.spent_ps["line"] = 90

    assert some(lost(BoundParts(100, 0, 0), path, busiest_ps=90)) == {OTHER: -10}


def test_bounds_are_split_without_being_changed() -> None:
    graph = build_topology(STAR, rate_bps=10**11, delay_ps=US, hosts=None)
    asked = []

    parts = bound_parts(graph, 10, lambda other: asked.append(other) or 7)  # type: ignore[func-returns-value]

    assert parts == BoundParts(7, 0, 3)
    assert len(asked) == 1
    assert not is_uneven(graph)
    assert set(parts_names()) == set(PARTS)


def parts_names() -> list[str]:
    return list(lost(BoundParts(0, 0, 0), Causes(), 0))


def test_too_many_packets_are_said_to_be_other(monkeypatch: pytest.MonkeyPatch) -> None:
    from ringleaf.experiments.explain import log

    made = log.PacketLogger.__init__
    monkeypatch.setattr(
        log.PacketLogger, "__init__", lambda self, *rest: made(self, *rest, most=10)
    )

    found = explained(topo=STAR)

    assert found.spent_ps["other"] == found.time_ps
    assert some(found.lost_ps) == {OTHER: ANSWER_PS}
    assert found.diagram.arrows == ()
