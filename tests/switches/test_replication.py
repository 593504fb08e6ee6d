"""The end of ingress: what is cloned, copied, sent on and dropped, packet by packet."""

from __future__ import annotations

from typing import NamedTuple

import finsy as fy
import pytest
from program_cases import CASES, make_switch

from ringleaf.core.packets import (
    OUTBOX_AT,
    PHVS_FREE,
    POOL_FREE,
    open_packet,
    take_phv,
    write_packet,
)
from ringleaf.switches.engine import layout
from ringleaf.switches.engine.replication import replicate
from ringleaf.switches.switch import Switch

STATEFUL = next(case for case in CASES if case.name == "stateful")


class Out(NamedTuple):
    port: int
    instance_type: int
    egress_rid: int


@pytest.fixture
def switch() -> Switch:
    return make_switch(STATEFUL)


def send(switch: Switch, **fields: int) -> list[Out]:
    """Return what a packet with these standard fields leads to."""
    arena = switch.store.arena
    free = arena.own[POOL_FREE]
    vectors = arena.own[PHVS_FREE]
    packet = write_packet(arena, b"data")
    take_phv(arena, packet)
    view = open_packet(arena, packet)
    view.fields[:] = 0
    for name, value in fields.items():
        view.fields[getattr(layout, name)] = value
    count = replicate(arena, switch.at, packet, 0)
    assert free - arena.own[POOL_FREE] == count  # what goes nowhere is free again
    assert vectors - arena.own[PHVS_FREE] == count
    at = arena.own[OUTBOX_AT]
    out = []
    for row in range(at, at + 2 * count, 2):
        copy = open_packet(arena, arena.words[row]).fields
        port = int(arena.words[row + 1])
        out.append(Out(port, int(copy[layout.INSTANCE_TYPE]), int(copy[layout.EGRESS_RID])))
    return out


def test_unicast(switch: Switch) -> None:
    assert send(switch, EGRESS_SPEC=3) == [Out(3, 0, 0)]


def test_port_that_does_not_exist_is_for_the_network_to_drop(switch: Switch) -> None:
    assert send(switch, EGRESS_SPEC=77) == [Out(77, 0, 0)]


def test_drop(switch: Switch) -> None:
    assert send(switch, EGRESS_SPEC=layout.DROP_PORT) == []


def test_multicast_overrides_egress_spec_and_drop(switch: Switch) -> None:
    copies = [Out(1, 5, 0), Out(2, 5, 0), Out(3, 5, 5)]
    assert send(switch, EGRESS_SPEC=3, MCAST_GRP=1) == copies
    assert send(switch, EGRESS_SPEC=layout.DROP_PORT, MCAST_GRP=1) == copies


def test_each_copy_has_its_own_replica_number(switch: Switch) -> None:
    switch.write([+fy.P4MulticastGroupEntry(200, replicas=[(1, 4), (1, 9), (2, 7)])])
    assert send(switch, MCAST_GRP=200) == [Out(1, 5, 4), Out(1, 5, 9), Out(2, 5, 7)]


@pytest.mark.parametrize("group", [2, 6, 8, 65535])
def test_group_without_members_is_a_silent_drop(switch: Switch, group: int) -> None:
    assert send(switch, EGRESS_SPEC=3, MCAST_GRP=group) == []


def test_clone_comes_first_and_is_marked(switch: Switch) -> None:
    assert send(switch, EGRESS_SPEC=3, REQUESTS=1 + 9) == [Out(7, 1, 0), Out(3, 0, 0)]
    assert send(switch, EGRESS_SPEC=layout.DROP_PORT, REQUESTS=1 + 1) == [Out(6, 1, 0)]
    assert [out.port for out in send(switch, MCAST_GRP=7, REQUESTS=1 + 1)] == [6, 4, 4, 5]


@pytest.mark.parametrize("session", [0, 2, 8, 10, 32767])
def test_session_that_is_not_set_up_clones_nothing(switch: Switch, session: int) -> None:
    assert send(switch, EGRESS_SPEC=3, REQUESTS=1 + session) == [Out(3, 0, 0)]


def test_groups_and_sessions_change(switch: Switch) -> None:
    switch.write(
        [
            ~fy.P4MulticastGroupEntry(1, replicas=[8]),
            -fy.P4MulticastGroupEntry(7),
            +fy.P4MulticastGroupEntry(200, replicas=[(1, 1), (1, 2)]),
            ~fy.P4CloneSessionEntry(1, replicas=[2]),
            -fy.P4CloneSessionEntry(9),
        ]
    )

    assert send(switch, MCAST_GRP=1) == [Out(8, 5, 0)]
    assert send(switch, MCAST_GRP=7) == []
    assert send(switch, MCAST_GRP=200) == [Out(1, 5, 1), Out(1, 5, 2)]
    assert send(switch, EGRESS_SPEC=3, REQUESTS=1 + 1) == [Out(2, 1, 0), Out(3, 0, 0)]
    assert send(switch, EGRESS_SPEC=3, REQUESTS=1 + 9) == [Out(3, 0, 0)]
