"""vote.p4, packet by packet: counts of signs, and the majority, against sums of Python integers."""

from __future__ import annotations

from random import Random

import finsy as fy
import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from switch_packets import make_switch

from ringleaf.ina.switchml.layers import SwitchMLHeader
from ringleaf.ina.switchml.wire import RESULT, UPDATE
from ringleaf.ina.vote.control import bias_of
from ringleaf.ina.vote.wire import PLANES, SIGNS, SIGNS_SIZE
from ringleaf.switches.switch import Switch

JOB, SLOTS, PARENT = 3, 4, 9
PLANE_BYTES = SIGNS // 8


def node(children: int, workers: int, parent: int = 0) -> Switch:
    share = {"children": (1 << children) - 1, "group": 9, "base": 0, "slots": SLOTS}
    actions = {
        port: fy.P4TableAction(
            "from_child",
            child=1 << port - 1,
            parent_port=parent,
            bias=bias_of(workers),
            **share,
        )
        for port in range(1, children + 1)
    }
    if parent:
        actions[parent] = fy.P4TableAction("from_parent", **share)
    members = [
        fy.P4TableEntry("members", match=fy.P4TableMatch(job=JOB, ingress_port=port), action=action)
        for port, action in actions.items()
    ]
    group = fy.P4MulticastGroupEntry(9, replicas=list(range(1, children + 1)))
    return make_switch("vote", 64, [group, *members])


def packet(signs: int, message: int = UPDATE) -> bytes:
    """A packet of slot 0's first round with these bits."""
    header = SwitchMLHeader(message=message, size=SIGNS_SIZE, job=JOB)
    ports = UDP(sport=0xBF03, dport=0xBF03, chksum=0)
    body = header / signs.to_bytes(PLANE_BYTES)
    return bytes(Ether() / IP(src="10.0.0.1", dst="10.0.1.1") / ports / body)


def planes(out: list[tuple[int, bytes]]) -> list[tuple[int, list[int]]]:
    """Port and planes of packets, whose lengths must be right."""
    found = []
    for port, data in sorted(out):
        assert Ether(data)[IP].len == len(data) - 14
        assert Ether(data)[UDP].len == len(data) - 34
        body = data[52:]
        assert len(body) in (PLANE_BYTES, PLANES * PLANE_BYTES)
        parts = [body[i : i + PLANE_BYTES] for i in range(0, len(body), PLANE_BYTES)]
        found.append((port, [int.from_bytes(part) for part in parts]))
    return found


def bits(number: int) -> list[int]:
    return [number >> i & 1 for i in range(SIGNS)]


def majority(votes: list[int]) -> list[int]:
    """Ties are +1."""
    return [2 * sum(column) >= len(votes) for column in zip(*map(bits, votes), strict=True)]


@pytest.mark.parametrize("workers", [1, 2, 3, 8, 31, 63])
def test_the_majority_of_each_element_comes_back_and_is_kept(workers: int) -> None:
    random = Random(workers)
    votes = [random.getrandbits(SIGNS) for _ in range(workers)]
    root = node(workers, workers)

    outs = [root.process(port + 1, packet(vote)) for port, vote in enumerate(votes)]

    assert not any(outs[:-1])
    results = planes(outs[-1])
    assert [port for port, _ in results] == list(range(1, workers + 1))
    for _, (signs,) in results:
        assert bits(signs) == majority(votes)
    assert planes(root.process(1, packet(votes[0]))) == [(1, results[0][1])]


def test_a_repeated_vote_counts_once() -> None:
    root = node(3, 3)
    root.process(1, packet(1))
    root.process(1, packet(1))
    root.process(2, packet(0))
    ((_, (signs,)), *_) = planes(root.process(3, packet(0)))
    assert signs == 0


def test_switches_below_send_counts_and_the_root_adds_them_up() -> None:
    random = Random(5)
    votes = [random.getrandbits(SIGNS) for _ in range(10)]
    leaves = [node(5, 10, PARENT) for _ in range(2)]
    root = node(2, 10)
    sums = []
    for place, leaf in enumerate(leaves):
        mine = votes[5 * place : 5 * place + 5]
        out = [leaf.process(port + 1, packet(vote)) for port, vote in enumerate(mine)][-1]
        ((port, counted),) = planes(out)
        assert port == PARENT
        counts = [sum(column) for column in zip(*map(bits, mine), strict=True)]
        assert [
            sum((p >> i & 1) << j for j, p in enumerate(counted)) for i in range(SIGNS)
        ] == counts
        assert leaf.process(1, packet(mine[0])) == out, "asked for again, the count goes up again"
        sums.append(out[0][1])
    assert root.process(1, sums[0]) == []
    ((_, (signs,)), _) = planes(root.process(2, sums[1]))
    assert bits(signs) == majority(votes)

    down = packet(signs, RESULT)
    assert planes(leaves[0].process(PARENT, down)) == [(port, [signs]) for port in range(1, 6)]
    assert planes(leaves[0].process(2, packet(votes[1]))) == [(2, [signs])]
