"""Deadlocks of queues that are filled by hand: which there are, who is in them, and since when."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ringleaf.networks.virtual.pfc.deadlock as deadlock
import ringleaf.networks.virtual.state as s
from ringleaf.core.arena import Arena
from ringleaf.core.packets import IN_PORT, PAYLOAD_LEN, row_of, write_packet
from ringleaf.core.pausing import Pausing
from ringleaf.core.units import PS_PER_US
from ringleaf.errors import DeadlockError
from ringleaf.networks.virtual import NetworkOptions, VirtualNetwork
from ringleaf.networks.virtual.pfc.charges import join_ring
from ringleaf.networks.virtual.pfc.deadlock import Deadlock, Lookout, find_deadlock
from ringleaf.networks.virtual.pfc.layout import ASKED, PAUSED, SINCE_PS, UNTOLD
from ringleaf.networks.virtual.pfc.tables import pause_rows
from ringleaf.switches.engine.queues import push
from ringleaf.topologies.registry import build

XON = 1000
LEVEL = 2
PERIOD_PS = 50 * PS_PER_US


class Ring:
    """Three switches in a ring, each with a host; queues are empty, and nobody is paused."""

    def __init__(self, delay: str = "1us") -> None:
        options = NetworkOptions(pfc=Pausing(4 * XON, XON))
        network = VirtualNetwork(build(f"torus2d,x=3,y=1,delay={delay}"), options)
        self.arena, self.at, self.places = network.store.arena, network._network, network._places
        self.ports = {(each.node, each.peer): n for n, each in enumerate(self.places)}
        self.rows = pause_rows(self.arena, self.at)

    def pause(self, node: str, peer: str, since_ps: int = 0, level: int = LEVEL) -> None:
        """Have `peer` ask `node` for a pause, which knows it since then."""
        mine, beyond = self.ports[node, peer], self.ports[peer, node]
        self.rows[mine, [PAUSED, SINCE_PS]] = 1 << level, since_ps
        self.rows[beyond, ASKED] = 1 << level

    def queue(
        self, node: str, peer: str, came_by: str, size: int, copy: int = -1, level: int = LEVEL
    ) -> int:
        """Put a packet of this size that came from a neighbour in a queue; return its number."""
        words, port = self.arena.words, self.ports[node, peer]
        head = min(size, 64)
        packet = write_packet(self.arena, bytes(head))
        words[row_of(words, packet) + PAYLOAD_LEN] = size - head
        place = self.places[self.ports[node, came_by]]
        words[row_of(words, packet) + IN_PORT] = place.port
        queues = int(words[words[self.at + s.PORTS_AT] + port * s.PORT_WORDS + s.QUEUES_AT])
        assert push(words, queues, packet, level)
        join_ring(words, packet, copy)
        return packet

    def close(self, held: Mapping[str, int]) -> dict[str, int]:
        """Pause the ways s0 -> s1 -> s2 -> s0, at 10, 20 and 30 us; return the switches' packets.

        Each switch holds so much of what the one before it has sent for the one behind it.
        """
        packets = {}
        for number, node in enumerate(("s0", "s1", "s2")):
            after, before = f"s{(number + 1) % 3}", f"s{(number - 1) % 3}"
            self.pause(node, after, (number + 1) * 10 * PS_PER_US)
            packets[node] = self.queue(node, after, before, held[node])
        return packets

    def find(self) -> Deadlock | None:
        return find_deadlock(self.arena, self.at, self.places)


def closed(**more: int) -> tuple[Ring, dict[str, int]]:
    ring = Ring()
    return ring, ring.close({"s0": 1100, "s1": 1200, "s2": 1300} | more)


def test_a_deadlock_says_who_waits_for_whom_with_how_much_and_since_when() -> None:
    """The last one of the ring was paused at 30 us; its queues hold a packet each."""
    ring, packets = closed()
    ways = [("s0", "s1"), ("s1", "s2"), ("s2", "s0")]
    in_order = sorted(ways, key=lambda way: ring.ports[way])
    assert ring.find() == Deadlock(
        cycle=("s0", "s1", "s2"),
        level=LEVEL,
        queues=3,
        held_bytes=1100 + 1200 + 1300,
        first=tuple(packets[node] for node, _ in in_order),
        since_ps=30 * PS_PER_US,
    )


@pytest.mark.parametrize(("held", "is_stuck"), [(XON, False), (XON + 1, True)])
@pytest.mark.parametrize("node", ["s0", "s1", "s2"])
def test_a_switch_that_holds_xon_ends_the_pause(node: str, held: int, is_stuck: bool) -> None:
    ring, _ = closed(**{node: held})
    assert (ring.find() is not None) is is_stuck


def test_what_comes_from_elsewhere_or_goes_elsewhere_does_not_count() -> None:
    """s1 holds XON of s0's and much of its host's; what s0 sent to s1's host goes on."""
    ring, _ = closed(s1=XON)
    ring.queue("s1", "s2", "h1", 2000)
    ring.queue("s1", "h1", "s0", 2000)
    assert ring.find() is None
    ring.queue("s1", "s2", "s0", 1)
    found = ring.find()
    assert found is not None
    assert (found.queues, found.held_bytes) == (3, 1100 + XON + 2000 + 1 + 1300)


def test_copies_of_one_packet_count_once() -> None:
    """Of 600 bytes and four copies of 400 that s0 sent to s1, XON remains, and no more."""
    ring = Ring()
    ring.close({"s0": 1100, "s1": 600, "s2": 1300})
    first = ring.queue("s1", "s2", "s0", 400)
    for _ in range(3):
        ring.queue("s1", "s2", "s0", 400, copy=first)
    ring.pause("s1", "s0")
    ring.queue("s1", "s0", "s0", 400, copy=first)  # in another queue, which stands still, too
    ring.queue("s0", "s1", "s1", 1100)
    assert ring.find() is None
    ring.queue("s1", "s2", "s0", 1)
    assert ring.find() is not None


@pytest.mark.parametrize("node", ["s0", "s1", "s2"])
def test_a_pause_that_ends_or_is_of_another_class_holds_nobody(node: str) -> None:
    after = f"s{(int(node[1]) + 1) % 3}"
    for change in ("goes on", "is told", "other class"):
        ring, _ = closed()
        mine, beyond = ring.ports[node, after], ring.ports[after, node]
        if change == "goes on":
            ring.rows[mine, PAUSED] = 0
        elif change == "is told":  # the frame that ends the pause has not left yet
            ring.rows[beyond, UNTOLD] = 1 << LEVEL
        else:
            ring.pause(node, after, level=LEVEL + 1)
        assert ring.find() is None, change


def test_a_queue_that_waits_for_a_deadlock_is_not_in_its_cycle() -> None:
    """s0 has a queue to s2, too, which waits for what s2 holds of it in its queue to s0."""
    ring, _ = closed()
    ring.pause("s0", "s2", 40 * PS_PER_US)
    ring.queue("s0", "s2", "h0", 100)
    ring.queue("s2", "s0", "s0", 1500)
    found = ring.find()
    assert found is not None
    assert set(found.cycle) == {"s0", "s1", "s2"}
    assert len(found.cycle) == 3
    assert (found.queues, found.since_ps) == (4, 30 * PS_PER_US)


def test_a_queue_waits_for_the_one_with_most_of_what_it_sent() -> None:
    """Of what s0 sent to s1, most is in s1's queue back to s0: that is a cycle of two."""
    ring, _ = closed()
    ring.pause("s1", "s0", 25 * PS_PER_US)
    ring.queue("s1", "s0", "s0", 1250)
    ring.queue("s0", "s1", "s1", 1150)
    found = ring.find()
    assert found is not None
    assert (found.cycle, found.queues) == (("s0", "s1"), 4)
    assert found.since_ps == 25 * PS_PER_US


@given(st.lists(st.integers(0, 5), min_size=6, max_size=6))
def test_a_walk_from_the_first_queue_ends_in_a_cycle(after: list[int]) -> None:
    waits = {(port, LEVEL): (to, LEVEL) for port, to in enumerate(after)}
    at, order = 0, [0]
    while after[at] not in order:
        at = after[at]
        order.append(at)
    expected = order[order.index(after[at]) :]
    assert deadlock._cycle(waits) == [(port, LEVEL) for port in expected]


@pytest.mark.parametrize(("delay", "period_ps"), [("1us", PERIOD_PS), ("20us", 80 * PS_PER_US)])
def test_looks_are_four_delays_apart_or_50_us_and_get_rarer(delay: str, period_ps: int) -> None:
    """While nothing is paused each wait is twice as long as the one before, up to 128 times."""
    ring = Ring(delay)
    lookout = Lookout(ring.arena, ring.at, ring.places)
    assert lookout.period_ps == period_ps
    assert lookout.next_ps(ring.arena, 0) == period_ps
    assert lookout.next_ps(ring.arena, period_ps - 1) == period_ps
    assert lookout.next_ps(ring.arena, period_ps) == 3 * period_ps
    now_ps = 3 * period_ps
    for _ in range(8):
        now_ps = lookout.next_ps(ring.arena, now_ps)
    assert lookout.next_ps(ring.arena, now_ps) == now_ps + 128 * period_ps


def test_queues_are_looked_at_where_a_class_has_been_paused_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One period at least; to look costs time, and a pause in between mostly ends by itself."""
    ring = Ring()
    looked = []

    def look(*_: Any) -> None:
        looked.append(now_ps)

    monkeypatch.setattr(deadlock, "find_deadlock", look)
    lookout = Lookout(ring.arena, ring.at, ring.places)
    for now_ps in (0, PERIOD_PS):
        lookout.next_ps(ring.arena, now_ps)
    assert looked == []
    ring.pause("s0", "s1", 2 * PERIOD_PS + 1)
    for now_ps in (3 * PERIOD_PS, 7 * PERIOD_PS):
        lookout.next_ps(ring.arena, now_ps)
    assert looked == [7 * PERIOD_PS]
    ring.rows[ring.ports["s0", "s1"], SINCE_PS] = 7 * PERIOD_PS
    now_ps = 8 * PERIOD_PS
    lookout.next_ps(ring.arena, now_ps)
    assert looked == [7 * PERIOD_PS, 8 * PERIOD_PS]


def test_it_takes_two_looks_with_the_same_deadlock() -> None:
    ring, _ = closed()
    lookout = Lookout(ring.arena, ring.at, ring.places)

    def look(number: int, arena: Arena = ring.arena) -> None:
        lookout.next_ps(arena, number * 2 * PERIOD_PS)

    look(1)
    ring.queue("s0", "s1", "h0", 10)  # another packet: something moves still
    look(2)
    mine = ring.ports["s0", "s1"]
    ring.rows[mine, PAUSED] = 0  # for a while there is none
    look(3)
    ring.rows[mine, PAUSED] = 1 << LEVEL
    look(4)
    with pytest.raises(
        DeadlockError,
        match=r"switches s0 -> s1 -> s2 -> s0 wait for each other since 30.*, "
        r"got 3 queues of class 2 that stand still with 3.*; take",
    ):
        look(5)
