"""Packets that come round: exactly the clones, resubmissions and recirculations asked for."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from program_cases import PROGRAMS, Case, make_switch

from ringleaf.core.packets import POOL_FREE, POOL_SIZE
from ringleaf.switches.engine.layout import MOST_PASSES
from ringleaf.switches.engine.updates import DELETE, INSERT, CloneUpdate, GroupUpdate
from ringleaf.switches.switch import Switch

CASE = Case(PROGRAMS / "rounds.json", packet=lambda _: (1, b""))
RESUBMIT, CLONE, CLONE_EGRESS, RECIRCULATE, TRUNCATE, MULTICAST, DROP = 1, 2, 4, 8, 16, 32, 64
NORMAL, INGRESS_CLONE, EGRESS_CLONE, RECIRCULATED, REPLICA = 0, 1, 2, 4, 5
DROPPED_IN_EGRESS = 0xFFFF


class Trail(NamedTuple):
    """What egress last wrote of a packet's way, and the port that it left by."""

    out: int
    instance: int = NORMAL
    kept: int = 0  # field list 1
    lost: int = 1  # in no field list
    rid: int = 0
    size: int = 14
    port: int = 3  # ingress_port
    rounds: int = 0  # field list 2


@pytest.fixture(scope="module")
def switch() -> Switch:
    switch = make_switch(CASE)
    switch.apply(
        [
            CloneUpdate(INSERT, 5, ((6, 0),)),
            CloneUpdate(INSERT, 7, ((1, 11), (4, 12), (4, 13))),
            CloneUpdate(INSERT, 8, ((8, 0),), length_bytes=10),
            CloneUpdate(INSERT, 0, ((7, 0),)),
            GroupUpdate(INSERT, 5, ((1, 21), (3, 22))),
        ]
    )
    return switch


def op(op: int, rounds: int = 0, session: int = 0, length: int = 0) -> bytes:
    return (
        bytes([op, rounds]) + session.to_bytes(2, "big") + length.to_bytes(2, "big") + b"payload!"
    )


def send(switch: Switch, data: bytes) -> list[Trail]:
    """Return what a packet that comes in by port 3 leads to."""
    free = int(switch.store.arena.own[POOL_FREE] - switch.store.arena.words[POOL_SIZE])
    out = []
    for port, sent in switch.process(3, data):
        assert sent[8:] == data[: len(sent) - 8]  # whatever its way, the packet has not changed
        fields = *sent[:4], int.from_bytes(sent[4:6], "big"), *sent[6:8]
        out.append(Trail(port, fields[0] & 0x7F, *fields[1:]))
    assert free == switch.store.arena.own[POOL_FREE] - switch.store.arena.words[POOL_SIZE]
    return out


def test_packet_that_asks_for_nothing(switch: Switch) -> None:
    assert send(switch, op(0)) == [Trail(2)]


@given(rounds=st.integers(0, 200))
@settings(max_examples=10)
def test_resubmitted_packet_is_as_it_came_and_keeps_its_field_list(
    switch: Switch, rounds: int
) -> None:
    # BMv2 sets `ingress_port` only when a packet is received, and `instance_type` to normal
    # before egress.
    port = 0 if rounds else 3
    assert send(switch, op(RESUBMIT, rounds)) == [Trail(2, kept=rounds, port=port)]


@given(rounds=st.integers(0, 60))
@settings(max_examples=10)
def test_recirculated_packet_is_what_egress_made(switch: Switch, rounds: int) -> None:
    (trail,) = send(switch, op(RECIRCULATE, rounds))
    # The trail is parsed, and overwritten, the next time: it is as long from the second on.
    size = 14 if rounds == 0 else 22
    assert trail == Trail(2, rounds=rounds, port=3 if rounds == 0 else 0, size=size)


@pytest.mark.parametrize("ask", [RESUBMIT, RECIRCULATE])
def test_packet_that_always_comes_round_is_dropped_and_counted(switch: Switch, ask: int) -> None:
    before = switch.looped
    assert send(switch, op(ask, rounds=255)) == []
    assert switch.looped == before + 1


def test_each_round_may_clone_until_the_last(switch: Switch) -> None:
    out = send(switch, op(RESUBMIT | CLONE, rounds=255, session=5))
    assert len(out) == MOST_PASSES + 1
    assert all(trail.instance == INGRESS_CLONE for trail in out)


def test_ingress_clone_is_of_the_packet_as_it_came(switch: Switch) -> None:
    clone = Trail(6, INGRESS_CLONE, lost=0, port=0)
    assert send(switch, op(CLONE, session=5)) == [clone, Trail(2)]
    assert send(switch, op(CLONE | DROP, session=5)) == [clone]
    assert send(switch, op(CLONE, session=9)) == [Trail(2)]
    assert send(switch, op(CLONE, session=0)) == [clone._replace(out=7), Trail(2)]


def test_session_with_several_replicas(switch: Switch) -> None:
    clones = [
        Trail(out, INGRESS_CLONE, lost=0, port=0, rid=rid)
        for out, rid in ((1, 11), (4, 12), (4, 13))
    ]
    assert send(switch, op(CLONE, session=7)) == [*clones, Trail(2)]


def test_session_cuts_its_clones(switch: Switch) -> None:
    data = op(CLONE | CLONE_EGRESS, session=8)
    sent = switch.process(3, data)
    assert [(port, len(frame)) for port, frame in sent] == [(8, 10), (2, 22), (8, 10), (8, 10)]


def test_each_resubmission_may_clone(switch: Switch) -> None:
    out = send(switch, op(RESUBMIT | CLONE, rounds=3, session=5))
    clones = [Trail(6, INGRESS_CLONE, kept=kept, lost=0, port=0) for kept in (1, 2, 3, 3)]
    assert out == [*clones, Trail(2, kept=3, port=0)]


def test_egress_clone_has_the_headers_of_egress_and_metadata_of_its_list(switch: Switch) -> None:
    clone = Trail(6, EGRESS_CLONE, lost=0, port=0, size=22)
    assert send(switch, op(CLONE_EGRESS, session=5)) == [Trail(2), clone]
    dropped = op(CLONE_EGRESS, session=5, length=DROPPED_IN_EGRESS)
    assert send(switch, dropped) == [clone]
    assert send(switch, op(CLONE_EGRESS, session=9)) == [Trail(2)]
    out = [(trail.out, trail.rid) for trail in send(switch, op(CLONE_EGRESS, session=7))]
    assert out == [(2, 0), (1, 11), (4, 12), (4, 13)]


@given(rounds=st.integers(0, 20), session=st.sampled_from([5, 7, 9]))
@settings(max_examples=20)
def test_one_egress_clone_per_round(switch: Switch, rounds: int, session: int) -> None:
    out = send(switch, op(CLONE_EGRESS | RECIRCULATE, rounds=rounds, session=session))
    replicas = {5: 1, 7: 3, 9: 0}[session]
    # The clone is taken with the field list, after the round has been counted.
    clones = [trail.rounds for trail in out if trail.instance == EGRESS_CLONE]
    assert sorted(clones) == sorted([*range(1, rounds + 1), rounds] * replicas)
    assert [trail.rounds for trail in out if trail.instance != EGRESS_CLONE] == [rounds]


def test_multicast_is_told_apart_by_rid(switch: Switch) -> None:
    copies = [Trail(1, REPLICA, rid=21), Trail(3, REPLICA, rid=22)]
    assert send(switch, op(MULTICAST, session=5)) == copies
    assert send(switch, op(MULTICAST, session=6)) == []
    both = send(switch, op(MULTICAST | CLONE, session=5))
    assert both == [Trail(6, INGRESS_CLONE, lost=0, port=0), *copies]


@pytest.mark.parametrize("length", [1, 9, 22, 23, 1000])
def test_truncation_counts_from_the_start_of_what_leaves(switch: Switch, length: int) -> None:
    ((_, sent),) = switch.process(3, op(TRUNCATE, length=length))
    assert len(sent) == min(length, 22)


@pytest.mark.parametrize(
    ("rounds", "length", "sent"),
    [
        (1, 9, "800001000016000118"),
        (2, 20, "80000100001600021802000000147061796c6f61"),
        (1, 40, "80000100001600011801000000287061796c6f616421"),
    ],
)
def test_a_packet_that_is_cut_comes_round_whole(
    switch: Switch, rounds: int, length: int, sent: str
) -> None:
    """As BMv2 does, of which these bytes are: it cuts what leaves, and takes the rest round."""
    packet = op(TRUNCATE | RECIRCULATE, rounds=rounds, length=length)
    assert switch.process(3, packet) == [(2, bytes.fromhex(sent))]


def test_sessions_and_groups_read_back(switch: Switch) -> None:
    sessions = {session.session: session for session in switch.clone_sessions()}
    assert sessions[8] == CloneUpdate(INSERT, 8, ((8, 0),), 10)
    assert switch.groups() == [GroupUpdate(INSERT, 5, ((1, 21), (3, 22)))]
    twin = make_switch(CASE)
    twin.apply([*switch.clone_sessions(), *switch.groups()])
    assert twin.clone_sessions() == switch.clone_sessions()
    twin.apply([CloneUpdate(DELETE, 8, ())])
    assert 8 not in {session.session for session in twin.clone_sessions()}
