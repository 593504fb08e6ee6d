"""Packets that come round in the event loop: at once, and as `Switch.process` has it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ringleaf.networks.virtual.state as s
from ringleaf.core.arena import Arena, Store
from ringleaf.core.compiled import address_of, handler
from ringleaf.core.packets import (
    OUTBOX_ROWS,
    POOL_FREE,
    make_pool,
    read_packet,
    write_packet,
)
from ringleaf.core.units import FOREVER_PS
from ringleaf.networks.virtual.events import ARRIVAL
from ringleaf.networks.virtual.lines import push_packet
from ringleaf.networks.virtual.loop import EMPTY, run
from ringleaf.networks.virtual.state import make_network, open_network
from ringleaf.switches.engine.queues import make_queues
from ringleaf.switches.engine.updates import INSERT, CloneUpdate, GroupUpdate, Update
from ringleaf.switches.program import Program
from ringleaf.switches.switch import Switch

SWITCHES = Path(__file__).parents[1] / "switches"
ROUNDS, PSA_WAYS = SWITCHES / "programs" / "rounds.json", SWITCHES / "psa" / "ways.json"
PORTS = 8
ROUND_PORT = 0xFFFFFFFA  # PSA_PORT_RECIRCULATE
UPDATES: list[Update] = [
    CloneUpdate(INSERT, 5, ((6, 0),)),
    CloneUpdate(INSERT, 7, ((1, 11), (4, 12), (4, 13))),
    GroupUpdate(INSERT, 5, ((1, 21), (3, 22))),
]
PSA_UPDATES: list[Update] = [*UPDATES, CloneUpdate(INSERT, 8, ((ROUND_PORT, 0), (2, 1)))]


@handler
def keep(arena: Arena, at: int, packet: int, now_ps: int) -> int:
    """Remember a packet that has left the switch: how many first, then their numbers."""
    arena.words[at] += 1
    arena.words[at + arena.words[at]] = packet
    return 0


class World:
    """A switch whose ports lead to as many of a node outside."""

    def __init__(self, path: Path, updates: list[Update]) -> None:
        program = Program.load(path)
        self.store = Store()
        make_pool(
            self.store,
            size=8 * OUTBOX_ROWS,
            head_bytes=program.head_bytes,
            field_count=program.field_count,
            lane_count=program.lane_count,
        )
        self.switch = Switch(program, self.store, ports=PORTS)
        self.switch.apply(updates)
        self.kept = self.store.allocate("words", 4096)
        queues = [make_queues(self.store, 1 << 20) for _ in range(PORTS)]
        self.at = make_network(
            self.store, ports=2 * PORTS, nodes=2, agents=0, ring=0, bins=8, seed=1
        )
        ring = self.store.allocate("words", 16)
        net = open_network(self.store.arena, self.at)
        net.state[s.RING_AT], net.state[s.BIN_PS] = ring, 1 << 40
        net.nodes[0, [s.KIND, s.BLOCK_AT, s.FIRST_PORT]] = s.SWITCH, self.switch.at, 0
        net.nodes[0, [s.INGRESS, s.EGRESS]] = (
            address_of(program.ingress),
            address_of(program.egress),
        )
        net.nodes[1, [s.KIND, s.BLOCK_AT, s.FIRST_PORT]] = s.OUTSIDE, self.kept, PORTS
        net.nodes[1, s.INGRESS] = address_of(keep)
        numbers = np.arange(2 * PORTS)
        net.ports[:, s.PEER] = (numbers + PORTS) % (2 * PORTS)
        net.ports[:, s.NODE] = numbers // PORTS
        net.ports[:, s.LOCAL_PORT] = numbers % PORTS + 1
        net.ports[:, s.RATE_BPS] = 10**12
        net.ports[:PORTS, s.QUEUES_AT] = queues

    def process(self, port: int, data: bytes) -> list[bytes]:
        """Return what leaves."""
        arena = self.store.arena
        free = arena.own[POOL_FREE]
        packet = write_packet(arena, data)
        push_packet(arena.words, self.at, 0, ARRIVAL, port - 1, packet)
        assert run(arena, self.at, FOREVER_PS) == EMPTY
        count = arena.words[self.kept]
        numbers = arena.words[self.kept + 1 : self.kept + 1 + count].tolist()
        assert free - arena.own[POOL_FREE] == count
        return [read_packet(arena, number) for number in numbers]


def op(op: int, rounds: int = 0, session: int = 0) -> bytes:
    return bytes([op, rounds]) + session.to_bytes(2, "big") + bytes(2) + b"payload!"


@pytest.mark.parametrize(
    "data",
    [
        op(0),
        op(1, 5),  # resubmit
        op(8, 5),  # recirculate
        op(2 | 1, 4, 5),  # clone each time
        op(4 | 8, 9, 7),  # clone of egress, three replicas each time
        op(4 | 2, 0, 7),
        op(4, 0, 9),  # no such session
        op(32 | 4, 0, 5),  # each copy is cloned
        op(1, 255),  # for ever
        op(8, 255),
    ],
)
def test_loop_sends_what_process_does(data: bytes) -> None:
    check(ROUNDS, UPDATES, data)


def ask(flags: int, session: int = 0, mirror_session: int = 0, group: int = 0) -> bytes:
    """Return a packet for psa/ways.p4, of which the flags leave, again, ... are the upper bits."""
    sessions = session.to_bytes(2, "big") + mirror_session.to_bytes(2, "big")
    where = group.to_bytes(4, "big") + (4).to_bytes(4, "big")
    return bytes([flags, 0]) + sessions + where + bytes(15) + b"payload!"


@pytest.mark.parametrize(
    "data",
    [
        ask(0x80),  # leave
        ask(0xC0),  # resubmit
        ask(0xA0),  # recirculate
        ask(0xE0),  # both
        ask(0x10, 7),  # clone, and drop
        ask(0x98, 7, 5),  # clone in ingress and in egress
        ask(0xB8, 8, 8, 5),  # clones that are recirculated and clone again, of a group
        ask(0xAC, 0, 7),  # clone of a packet that would be recirculated, but for a drop in egress
    ],
)
def test_loop_sends_what_process_does_for_psa(data: bytes) -> None:
    check(PSA_WAYS, PSA_UPDATES, data)


def check(path: Path, updates: list[Update], data: bytes) -> None:
    world = World(path, updates)
    sent = world.process(3, data)
    alone = Switch(world.switch.program, _pool(world.switch.program), ports=PORTS)
    alone.apply(updates)
    assert sorted(sent) == sorted(frame for _, frame in alone.process(3, data))
    assert world.switch.looped == alone.looped


def _pool(program: Program) -> Store:
    store = Store()
    make_pool(
        store,
        size=2 * OUTBOX_ROWS,
        head_bytes=program.head_bytes,
        field_count=program.field_count,
        lane_count=program.lane_count,
    )
    return store
