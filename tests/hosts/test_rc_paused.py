"""An rc agent leaves queue pairs alone whose class is paused, and serves all others."""

from __future__ import annotations

from rc_wire import Wire, end_of

from ringleaf.core.packets import free_packet, read_packet
from ringleaf.hosts import rc
from ringleaf.hosts.agent import PAUSED, READY

TOS = 15


def test_paused_queue_pairs_wait_and_others_go() -> None:
    wire = Wire(window=3)
    at = wire.ends[0]
    for end, agent in enumerate(wire.ends):
        assert rc.add_qps(wire.store, agent) == 1
        rc.connect_qps(wire.store, [end_of(agent, end, 1)])
    arena = wire.store.arena
    rc.set_priority(arena, at, 1, 5)
    for number in (0, 1):
        assert rc.post_send(arena, at, number, 0, 8, number, 0)

    def classes() -> list[int]:
        found = []
        while (packet := rc.transmit(arena, at, 0, 0)) >= 0:
            found.append(read_packet(arena, packet)[TOS] >> 5)
            free_packet(arena, packet)
        return found

    arena.words[at + PAUSED] = 1 << 5
    assert classes() == [0]
    assert not arena.words[at + READY]
    arena.words[at + PAUSED] = 0
    assert classes() == [5]
