"""The ways of packets through a PSA switch, against the specification's pseudo code (6.2, 6.5).

`psa/ways.p4` does what a packet asks for, and writes into it what both pipelines see.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from program_cases import PSA

from ringleaf.core.packets import POOL_FREE, POOL_SIZE
from ringleaf.switches.engine.updates import INSERT, CloneUpdate, GroupUpdate
from ringleaf.switches.program import Program
from ringleaf.switches.switch import Switch

RECIRCULATE = 0xFFFFFFFA  # PSA_PORT_RECIRCULATE
PORTS = 8
PAYLOAD = b"payload"
HEADER_BYTES = 29

# What the program writes for PSA_PacketPath_t.
NORMAL, RESUBMITTED, RECIRCULATED = 1, 2, 3
UNICAST, MULTICAST, INGRESS_CLONE, EGRESS_CLONE = 1, 2, 3, 4


class Session(NamedTuple):
    replicas: tuple[tuple[int, int], ...]
    length_bytes: int = 0
    service: int = 0


GROUPS = {7: ((1, 21), (3, 22)), 9: ((RECIRCULATE, 5), (4, 6))}
SESSIONS = {
    0: Session(((2, 0),)),
    5: Session(((6, 1), (7, 2), (6, 3)), service=4),
    6: Session(((8, 4),), length_bytes=HEADER_BYTES + 3, service=9),
    8: Session(((RECIRCULATE, 0),), service=2),
    32767: Session(((5, 0),), service=7),
}


@dataclass(frozen=True)
class Ask:
    """What a packet asks for, as in its first header."""

    leave: bool = True
    again: bool = False
    round: bool = False
    clone: bool = False
    mirror: bool = False
    vanish: bool = False
    gone: bool = False
    service: int = 0
    session: int = 0
    mirror_session: int = 0
    group: int = 0
    port: int = 3

    def packet(self) -> bytes:
        flags = (self.leave, self.again, self.round, self.clone, self.mirror, self.vanish)
        bits = 0
        for flag in (*flags, self.gone, False):
            bits = bits << 1 | flag
        sessions = self.session.to_bytes(2, "big") + self.mirror_session.to_bytes(2, "big")
        where = self.group.to_bytes(4, "big") + self.port.to_bytes(4, "big")
        return bytes([bits, self.service]) + sessions + where + bytes(15) + PAYLOAD


class Seen(NamedTuple):
    """What the pipelines last wrote into a packet, as in its second header."""

    in_port: int = 0
    in_path: int = 0
    passes: int = 0
    out_port: int = 0
    out_path: int = 0
    service: int = 0
    instance: int = 0
    carried: int = 0


class Out(NamedTuple):
    port: int
    seen: Seen
    payload: bytes = PAYLOAD


class Model:
    """What becomes of one packet, by the specification's pseudo code."""

    def __init__(self, ask: Ask) -> None:
        self.ask = ask
        self.out: list[Out] = []
        self._waiting: deque[tuple[int, int, Out]] = deque()  # port, path, packet to ingress

    def run(self, port: int) -> list[Out]:
        self._waiting.append((port, NORMAL, Out(port, Seen())))
        while self._waiting:
            self._ingress(*self._waiting.popleft())
        return sorted(self.out)

    def _ingress(self, port: int, path: int, came: Out) -> None:
        ask, seen = self.ask, came.seen
        passes = seen.passes + 1
        if ask.clone and seen.out_path < INGRESS_CLONE:
            self._clone(ask.session, came, INGRESS_CLONE)
        if not ask.leave or ask.gone:
            return
        if ask.again and path != RESUBMITTED:
            self._waiting.append((port, RESUBMITTED, came))
            return
        packet = came._replace(seen=seen._replace(in_port=port, in_path=path, passes=passes))
        service, carried = _supported(ask.service), 0xA0 + passes
        if ask.group and port != RECIRCULATE:
            for out, instance in GROUPS.get(ask.group, ()):
                self._egress(out, MULTICAST, instance, service, carried, packet)
            return
        out = RECIRCULATE if ask.round and port != RECIRCULATE else ask.port
        self._egress(out, UNICAST, 0, service, carried, packet)

    def _egress(
        self, port: int, path: int, instance: int, service: int, carried: int, came: Out
    ) -> None:
        if port != RECIRCULATE and not 1 <= port <= PORTS:
            return
        seen = came.seen._replace(
            out_port=port, out_path=path, service=service, instance=instance, carried=carried
        )
        packet = Out(port, seen, came.payload)
        is_clone = path in (INGRESS_CLONE, EGRESS_CLONE)
        if self.ask.mirror and not is_clone and seen.in_port != RECIRCULATE:
            self._clone(self.ask.mirror_session, packet, EGRESS_CLONE)
        if self.ask.vanish and not is_clone:
            return
        if port == RECIRCULATE:
            self._waiting.append((RECIRCULATE, RECIRCULATED, packet))
        else:
            self.out.append(packet)

    def _clone(self, number: int, packet: Out, path: int) -> None:
        session = SESSIONS.get(number, Session(()))
        kept = max(session.length_bytes - HEADER_BYTES, 0) or len(PAYLOAD)
        cut = packet._replace(payload=packet.payload[:kept])
        for port, instance in session.replicas:
            self._egress(port, path, instance, _supported(session.service), 0, cut)


def _supported(service: int) -> int:
    return service if service < 8 else 0


@pytest.fixture(scope="module")
def switch() -> Switch:
    switch = Switch.alone(Program.load(PSA / "ways.json"), PORTS)
    switch.apply([GroupUpdate(INSERT, number, members) for number, members in GROUPS.items()])
    switch.apply([CloneUpdate(INSERT, number, *session) for number, session in SESSIONS.items()])
    return switch


def send(switch: Switch, ask: Ask, port: int = 2) -> list[Out]:
    """Return what a packet leads to; and check that none is lost in the switch."""
    free = int(switch.store.arena.own[POOL_FREE] - switch.store.arena.words[POOL_SIZE])
    found = [_read(out, data) for out, data in switch.process(port, ask.packet())]
    assert int(switch.store.arena.own[POOL_FREE] - switch.store.arena.words[POOL_SIZE]) == free
    return sorted(found)


def _read(port: int, data: bytes) -> Out:
    seen = data[14:HEADER_BYTES]
    sizes = (4, 1, 1, 4, 1, 1, 2, 1)
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    values = [int.from_bytes(seen[at:][:n], "big") for at, n in zip(starts, sizes, strict=True)]
    swapped = Seen(*values)
    return Out(port, swapped, data[HEADER_BYTES:])


def test_ingress_drops_by_default(switch: Switch) -> None:
    assert send(switch, Ask(leave=False)) == []


def test_unicast(switch: Switch) -> None:
    seen = Seen(2, NORMAL, 1, 3, UNICAST, 5, 0, 0xA1)
    assert send(switch, Ask(service=5)) == [Out(3, seen)]


def test_a_resubmitted_packet_comes_as_it_came(switch: Switch) -> None:
    """One pass is counted: the first one's is not in the packet."""
    seen = Seen(2, RESUBMITTED, 1, 3, UNICAST, 0, 0, 0xA1)
    assert send(switch, Ask(again=True)) == [Out(3, seen)]


def test_a_recirculated_packet_comes_as_it_left_from_a_port_of_its_own(switch: Switch) -> None:
    seen = Seen(RECIRCULATE, RECIRCULATED, 2, 3, UNICAST, 0, 0, 0xA2)
    assert send(switch, Ask(round=True)) == [Out(3, seen)]


def test_a_recirculated_packet_keeps_its_port_when_it_is_resubmitted(switch: Switch) -> None:
    """It is resubmitted on both rounds, and would be recirculated for ever by another port."""
    seen = Seen(RECIRCULATE, RESUBMITTED, 2, 3, UNICAST, 0, 0, 0xA2)
    assert send(switch, Ask(round=True, again=True)) == [Out(3, seen)]


def test_a_replica_of_a_group_may_be_recirculated(switch: Switch) -> None:
    copy = Seen(2, NORMAL, 1, 4, MULTICAST, 0, 6, 0xA1)
    again = Seen(RECIRCULATE, RECIRCULATED, 2, 3, UNICAST, 0, 0, 0xA2)
    assert send(switch, Ask(group=9)) == [Out(3, again), Out(4, copy)]


@pytest.mark.parametrize("ask", [Ask(gone=True), Ask(gone=True, again=True, group=7)])
def test_drop_goes_before_resubmission_and_multicast(switch: Switch, ask: Ask) -> None:
    assert send(switch, ask) == []


def test_multicast_goes_before_the_port(switch: Switch) -> None:
    copies = [(1, 21), (3, 22)]
    assert send(switch, Ask(group=7, port=5, service=6)) == [
        Out(port, Seen(2, NORMAL, 1, port, MULTICAST, 6, instance, 0xA1))
        for port, instance in copies
    ]


@pytest.mark.parametrize("ask", [Ask(group=8), Ask(group=1 << 31), Ask(port=0), Ask(port=77)])
def test_groups_and_ports_that_there_are_not_drop(switch: Switch, ask: Ask) -> None:
    assert send(switch, ask) == []


def test_an_ingress_clone_is_the_packet_as_it_came_even_if_that_is_dropped(switch: Switch) -> None:
    found = send(switch, Ask(leave=False, clone=True, session=5))
    assert found == [
        Out(port, Seen(0, 0, 0, port, INGRESS_CLONE, 4, instance, 0))
        for port, instance in ((6, 1), (6, 3), (7, 2))
    ]


def test_a_clone_is_cut_and_an_unknown_class_is_class_0(switch: Switch) -> None:
    [clone] = send(switch, Ask(leave=False, clone=True, session=6))
    assert clone == Out(8, Seen(0, 0, 0, 8, INGRESS_CLONE, 0, 4, 0), b"pay")


def test_an_egress_clone_is_the_packet_as_it_leaves_even_if_that_is_dropped(
    switch: Switch,
) -> None:
    found = send(switch, Ask(vanish=True, mirror=True, mirror_session=32767))
    assert found == [Out(5, Seen(2, NORMAL, 1, 5, EGRESS_CLONE, 7, 0, 0))]


@pytest.mark.parametrize("session", [1, 32768, 65535])
def test_a_session_that_is_not_configured_makes_no_clone(switch: Switch, session: int) -> None:
    assert len(send(switch, Ask(clone=True, session=session))) == 1


def test_a_clone_may_be_recirculated(switch: Switch) -> None:
    found = send(switch, Ask(clone=True, session=8, port=1))
    again = Seen(RECIRCULATE, RECIRCULATED, 1, 1, UNICAST, 0, 0, 0xA1)
    assert found == sorted([Out(1, Seen(2, NORMAL, 1, 1, UNICAST, 0, 0, 0xA1)), Out(1, again)])


FLAGS = ("leave", "again", "round", "clone", "mirror", "vanish", "gone")
SOME = st.sampled_from([*SESSIONS, 3, 32768, 65535])


@settings(max_examples=150, deadline=None)
@given(
    ask=st.builds(
        Ask,
        **dict.fromkeys(FLAGS, st.booleans()),
        service=st.integers(0, 255),
        session=SOME,
        mirror_session=SOME,
        group=st.sampled_from([0, 0, 7, 8, 9]),
        port=st.sampled_from([1, 2, 8, 9, 511]),
    ),
    port=st.integers(1, PORTS),
)
def test_all_ways_are_those_of_the_specification(switch: Switch, ask: Ask, port: int) -> None:
    assert send(switch, ask, port) == Model(ask).run(port)
