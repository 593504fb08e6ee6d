"""The event loop itself, a step at a time: events in order, and room for what they lead to."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loop_net import HOST, HOST_PORT, SWITCH, Address, Handler, Net, agents_that, none, pausing_nic

import ringleaf.networks.endpoints.driver as d
import ringleaf.networks.virtual.pfc.frames as pfc_frames
import ringleaf.networks.virtual.pfc.handling as pfc_handling
import ringleaf.networks.virtual.pfc.layout as pfc
import ringleaf.networks.virtual.state as s
from ringleaf.core.arena import Arena
from ringleaf.core.heap import (
    CAPACITY,
    COUNT,
    LAST_OWN,
    OWN,
    make_heap,
    push_event,
)
from ringleaf.core.packets import (
    OUTBOX_ROWS,
    PHVS_FREE,
    PLACE,
    POOL_FREE,
    fields_of,
    row_of,
)
from ringleaf.core.units import FOREVER_PS
from ringleaf.hosts.agent import PAUSED as AGENT_PAUSED
from ringleaf.hosts.agent import READY
from ringleaf.networks.virtual import loop
from ringleaf.networks.virtual.events import AGAIN, ARRIVAL, CLONED, IDLE, TIMER
from ringleaf.networks.virtual.room import EVENTS_AT_ONCE
from ringleaf.switches.engine import layout
from ringleaf.switches.engine.queues import (
    push,
)

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered")


run: Callable[[Arena, int, int], int] = getattr(loop.run, "function", loop.run)


handle_with_pfc: Handler = getattr(pfc_handling.handle, "function", pfc_handling.handle)


def test_a_switchs_own_events_of_an_instant_are_counted(plain_address: Address) -> None:
    """A replay finds by it the place of packets that arrive in that instant."""
    net = Net()
    net.net.nodes[SWITCH, [s.INGRESS, s.EGRESS]] = plain_address(none), plain_address(none)
    node = s.node_row(net.words, net.at, SWITCH)
    clone = net.packet()
    net.words[row_of(net.words, clone) + PLACE] = 2
    again = net.packet()
    net.words[row_of(net.words, again) + PLACE] = 2
    net.arena.fields[fields_of(net.words, again) + layout.EGRESS_SPEC] = layout.DROP_PORT
    counts = []
    for event in (IDLE | 2 << 3, CLONED | clone << 3, AGAIN | again << 3, IDLE | 3 << 3):
        loop.handle(net.arena, net.at, event, 70)
        counts.append(loop.busied(net.words, node, 70))
    assert counts == [1, 2, 3, 4]
    assert net.net.state[s.HOPS] == 1  # the clone and idle ports have not arrived anywhere
    assert loop.busied(net.words, node, 71) == 0
    loop.handle(net.arena, net.at, IDLE | 2 << 3, 71)
    assert loop.busied(net.words, node, 71) == 1


@pytest.mark.parametrize(
    ("kind", "called"),
    [
        (IDLE, ("drain", 2)),
        (TIMER, ("ring_timer", 2)),
        (ARRIVAL, ("cross_switch", 2, 5, 70)),
        (AGAIN, ("cross_switch", 2, 5, 70)),
        (CLONED, ("forward", 3, 70)),
    ],
)
def test_each_kind_of_event_has_its_part(
    kind: int, called: tuple[str, *tuple[int, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Packet 5 is at port 2, which is the switch's; an agent has number 2."""
    net = Net()
    node = s.node_row(net.words, net.at, SWITCH)
    did = []

    def noting(name: str, kept: int) -> Callable[..., int]:
        def note(arena: Arena, at: int, *rest: int) -> int:
            assert arena is net.arena
            assert at == (net.block if name == "send_twin" else net.at)
            did.append((name, *[int(each) for each in rest if each != node][:kept]))
            return 3

        return note

    parts = ("drain", 1), ("ring_timer", 1), ("cross_switch", 3), ("forward", 2), ("send_twin", 1)
    for name, kept in parts:
        monkeypatch.setattr(loop, name, noting(name, kept))
    net.words[row_of(net.words, 5) + PLACE] = 2
    loop.handle(net.arena, net.at, kind | (5 if kind not in (IDLE, TIMER) else 2) << 3, 70)
    assert did == ([("send_twin", 5), called] if kind == CLONED else [called])


@pytest.mark.parametrize(
    ("kind", "node", "busied", "hops", "did"),
    [
        (IDLE, SWITCH, 1, 0, [("drain", 2, 70)]),
        (IDLE, HOST, 0, 0, [("serve", 70)]),
        (TIMER, SWITCH, 0, 0, [("ring_agent", 2, 70), ("serve", 70)]),
        (ARRIVAL, SWITCH, 0, 1, [("cross_switch", 2, 5, 70)]),
        (ARRIVAL, HOST, 0, 1, [("reach_agent", 5, 70), ("serve", 70)]),
        (AGAIN, SWITCH, 1, 1, [("cross_switch", 2, 5, 70)]),
        (CLONED, SWITCH, 1, 0, [("send_twin", 5), ("forward", 3, 70)]),
    ],
)
def test_with_pfc_each_kind_of_event_has_its_part(
    kind: int, node: int, busied: int, hops: int, did: list[tuple[str, *tuple[int, ...]]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Packet 5 is at port 2, which is the node's; an agent has number 2."""
    net = Net()
    net.net.ports[2, [s.NODE, s.DRAINING]] = node, 1
    row = s.node_row(net.words, net.at, node)
    called: list[tuple[str, *tuple[int, ...]]] = []

    def noting(name: str) -> Callable[..., int]:
        def note(arena: Arena, at: int, *rest: int) -> int:
            assert arena is net.arena
            assert at == (net.words[row + s.BLOCK_AT] if name == "send_twin" else net.at)
            called.append((name, *[int(each) for each in rest if each != row]))
            return row if name == "ring_agent" else 3

        return note

    parts = ("drain", "serve", "ring_agent", "cross_switch", "reach_agent", "send_twin", "forward")
    for name in parts:
        monkeypatch.setattr(pfc_handling, name, noting(name))
    packet = next(packet for packet in (net.packet() for _ in range(9)) if packet == 5)
    net.words[row_of(net.words, packet) + PLACE] = 2
    handle_with_pfc(net.arena, net.at, kind | (2 if kind in (IDLE, TIMER) else packet) << 3, 70)
    assert called == did
    assert loop.busied(net.words, row, 70) == busied
    assert net.net.state[s.HOPS] == hops
    assert net.net.ports[2, s.DRAINING] == (kind != IDLE)


def test_with_pfc_a_timer_that_is_not_due_serves_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    net = Net()
    monkeypatch.setattr(pfc_handling, "ring_agent", lambda *_: -1)
    monkeypatch.setattr(pfc_handling, "serve", None)
    handle_with_pfc(net.arena, net.at, TIMER | 1 << 3, 70)


def test_with_pfc_packets_are_captured_and_taken_outside_as_without(
    plain_address: Address,
) -> None:
    """Pause frames, too; the order of a packet is the number of own events of that instant."""
    net = Net()
    rows_at = net.store.allocate("words", 2 * s.CAPTURE_ROW_WORDS)
    bytes_at = net.store.allocate("bytes", 512)
    took = []

    def keep(_arena: Arena, at: int, packet: int, now_ps: int) -> int:
        took.append((at, packet, now_ps))
        return 0

    net.net.state[[s.CAPTURE_AT, s.CAPTURE_BYTES_AT]] = rows_at, bytes_at
    net.net.ports[HOST_PORT, [s.CAPTURE, s.INWARD_PS]] = s.CAPTURE_RECEIVED, 30
    net.net.nodes[HOST, [s.KIND, s.INGRESS, s.BLOCK_AT]] = s.OUTSIDE, plain_address(keep), 77
    loop.note_busied(net.words, s.node_row(net.words, net.at, HOST), 1000)
    packet = net.packet()
    net.words[row_of(net.words, packet) + PLACE] = HOST_PORT
    handle_with_pfc(net.arena, net.at, ARRIVAL | packet << 3, 1000)
    assert took == [(77, packet, 1000)]
    assert net.words[rows_at : rows_at + 5].tolist() == [970, HOST_PORT, bytes_at, 100, 1]
    net.net.ports[HOST_PORT, s.CAPTURE] = s.CAPTURE_SENT
    handle_with_pfc(net.arena, net.at, ARRIVAL | packet << 3, 1000)
    assert net.net.state[s.CAPTURE_COUNT] == 1
    assert len(took) == 2


@pytest.mark.parametrize(
    ("goes_on", "waits", "busy_ps", "draining", "drains", "events"),
    [
        (True, 1, 70, 0, [2], []),
        (True, 1, 70, 1, [], []),  # it falls idle at this instant, in an event of its own
        (True, 1, 71, 0, [], [(71, IDLE, 2)]),
        (True, 0, 71, 0, [], []),
        (True, 0, 70, 0, [], []),
        (False, 1, 71, 0, [], []),
        (False, 1, 70, 0, [], []),
    ],
)
def test_a_switch_sends_on_when_a_pause_ends(
    goes_on: bool, waits: int, busy_ps: int, draining: int, drains: list[int],
    events: list[tuple[int, int, int]], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    net = Net()
    row, _ = pausing_nic(net, 1 if goes_on else 0)
    net.net.ports[2, [s.BUSY_UNTIL_PS, s.DRAINING]] = busy_ps, draining
    for _ in range(waits):
        push(net.words, net.queues[1], net.packet(), 0)
    drained: list[int] = []
    monkeypatch.setattr(pfc_handling, "drain", lambda _, __, port, ___: drained.append(port))
    told = net.words[pfc.pause_row(net.words, net.at, 3) :]
    told[pfc.UNTOLD], told[pfc.ASKED] = 1, 0 if goes_on else 1
    frame = pfc_frames.make_frame(net.arena, pfc.pause_row(net.words, net.at, 3))
    net.words[row_of(net.words, frame) + PLACE] = 2
    free = net.arena.own[POOL_FREE]
    handle_with_pfc(net.arena, net.at, ARRIVAL | frame << 3, 70)
    assert net.words[row + pfc.PAUSED] == (0 if goes_on else 1)
    assert net.arena.own[POOL_FREE] == free + 1
    assert drained == drains
    assert net.events() == events


@pytest.mark.parametrize("goes_on", [False, True])
def test_a_host_tells_its_agents_of_a_pause_and_sends_when_it_ends(
    goes_on: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    net = Net()
    row, _ = pausing_nic(net, 1 if goes_on else 0)
    net.net.ports[2, s.NODE] = HOST
    served: list[int] = []
    monkeypatch.setattr(pfc_handling, "serve", lambda _, __, node, now_ps: served.append(now_ps))
    net.words[row + pfc.UNTOLD], net.words[row + pfc.ASKED] = 1, 0 if goes_on else 1
    frame = pfc_frames.make_frame(net.arena, row)
    net.words[row_of(net.words, frame) + PLACE] = 2
    handle_with_pfc(net.arena, net.at, ARRIVAL | frame << 3, 70)
    assert net.words[net.agents[1] + AGENT_PAUSED] == (0 if goes_on else 1)
    assert served == goes_on * [70]


def test_a_hosts_port_that_falls_idle_serves_its_agents(plain_address: Address) -> None:
    net = Net()
    asked: list[int] = []

    def transmit(_arena: Arena, at: int, _packet: int, now_ps: int) -> int:
        asked.append(now_ps)
        return -1

    agents_that(net, transmit, plain_address)
    net.words[net.agents[1] + READY] = 1
    loop.handle(net.arena, net.at, IDLE | HOST_PORT << 3, 70)
    assert asked == [70]


def test_an_idle_port_is_not_waited_for_any_more() -> None:
    net = Net()
    net.net.ports[[HOST_PORT, 2], s.DRAINING] = 1
    for port in (HOST_PORT, 2):
        loop.handle(net.arena, net.at, IDLE | port << 3, 70)
    assert net.net.ports[:, s.DRAINING].tolist() == 5 * [0]
    assert net.net.nodes[HOST, s.BUSIED] == 0


def test_received_packets_are_captured_as_they_came_off_the_line() -> None:
    """INWARD_PS before the host handles them; the order says how many events came before."""
    net = Net()
    rows_at = net.store.allocate("words", s.CAPTURE_ROW_WORDS)
    bytes_at = net.store.allocate("bytes", 512)
    net.net.state[[s.CAPTURE_AT, s.CAPTURE_BYTES_AT]] = rows_at, bytes_at
    net.net.ports[HOST_PORT, [s.CAPTURE, s.INWARD_PS]] = s.CAPTURE_RECEIVED, 30
    packet = net.packet()
    net.words[row_of(net.words, packet) + PLACE] = HOST_PORT
    loop.handle(net.arena, net.at, ARRIVAL | packet << 3, 1000)
    assert net.net.state[[s.HOPS, s.CAPTURE_COUNT, s.UNCLAIMED]].tolist() == [1, 1, 1]
    assert net.words[rows_at : rows_at + 5].tolist() == [970, HOST_PORT, bytes_at, 100, 0]


def test_places_outside_take_every_packet(plain_address: Address) -> None:
    net = Net()
    took = []

    def keep(_arena: Arena, at: int, packet: int, now_ps: int) -> int:
        took.append((at, packet, now_ps))
        return 0

    net.net.nodes[HOST, [s.KIND, s.INGRESS, s.BLOCK_AT]] = s.OUTSIDE, plain_address(keep), 77
    packet = net.packet()
    net.words[row_of(net.words, packet) + PLACE] = HOST_PORT
    loop.handle(net.arena, net.at, ARRIVAL | packet << 3, 1000)
    assert took == [(77, packet, 1000)]


def test_pausing_handles_all_events_where_it_is_on(plain_address: Address) -> None:
    net = Net()
    took = []

    def handle(_arena: Arena, at: int, event: int, now_ps: int) -> int:
        took.append((at, event, now_ps))
        return 0

    block = net.store.allocate("words", 8)
    net.words[block + s.PFC_HANDLE] = plain_address(handle)
    net.words[net.at + s.PFC_AT] = block
    loop.handle(net.arena, net.at, IDLE | 2 << 3, 9)
    assert took == [(net.at, IDLE | 2 << 3, 9)]


def fill(net: Net, rows: int) -> None:
    net.words[net.heap + COUNT] = rows


def test_there_must_be_room_for_what_one_event_may_lead_to() -> None:
    """Each limit holds to the last packet, event and number."""
    net = Net()
    own, capacity = net.arena.own, int(net.words[net.heap + CAPACITY])
    assert loop.lacks_room(net.arena, net.at) == 0
    for word in (POOL_FREE, PHVS_FREE):
        own[word] = 2 * OUTBOX_ROWS - 1
        assert loop.lacks_room(net.arena, net.at) == loop.NEEDS_ROOM
        own[word] += 1
        assert loop.lacks_room(net.arena, net.at) == 0
    fill(net, capacity - EVENTS_AT_ONCE)
    assert loop.lacks_room(net.arena, net.at) == 0
    fill(net, capacity - EVENTS_AT_ONCE + 1)
    assert loop.lacks_room(net.arena, net.at) == loop.NEEDS_ROOM
    fill(net, 0)
    net.words[net.heap + OWN] = LAST_OWN
    assert loop.lacks_room(net.arena, net.at) == 0
    net.words[net.heap + OWN] += 1
    assert loop.lacks_room(net.arena, net.at) == loop.NEEDS_ROOM


def test_an_agent_is_woken_where_there_is_room_for_what_it_sends() -> None:
    net = Net()
    own, capacity = net.arena.own, int(net.words[net.heap + CAPACITY])
    own[POOL_FREE] = OUTBOX_ROWS
    fill(net, capacity - OUTBOX_ROWS)
    assert loop.lacks_room_to_wake(net.arena, net.at) == 0
    own[POOL_FREE] -= 1
    assert loop.lacks_room_to_wake(net.arena, net.at) == loop.NEEDS_ROOM
    own[POOL_FREE] += 1
    fill(net, capacity - OUTBOX_ROWS + 1)
    assert loop.lacks_room_to_wake(net.arena, net.at) == loop.NEEDS_ROOM


@pytest.mark.parametrize("region", [0, 1])
def test_boxes_of_all_regions_must_have_room(region: int) -> None:
    net = Net()
    boxes = net.store.allocate("words", 4 * s.BOX_WORDS)
    team = net.store.allocate("words", 8)
    net.words[team] = 2  # regions
    net.net.state[[s.TEAM, s.MAIL_AT, s.HALF]] = team, boxes, 1
    box = boxes + (2 * region + 1) * s.BOX_WORDS
    net.words[box] = s.BOX_ROWS - EVENTS_AT_ONCE
    for lacks in (loop.lacks_room, loop.lacks_room_to_wake):
        assert lacks(net.arena, net.at) == 0
    net.words[box] += 1
    for lacks in (loop.lacks_room, loop.lacks_room_to_wake):
        assert lacks(net.arena, net.at) == loop.NEEDS_ROOM


def test_captures_are_emptied_before_an_event_that_might_not_fit() -> None:
    """Room for 10 rows and 1000 bytes, of which an event may take 3 and 300, an agent 2 and 200."""
    net = Net()
    state = net.net.state
    state[[s.CAPTURE_ROWS, s.CAPTURE_ROOM]] = 10, 1000
    state[[s.CAPTURE_RESERVE_ROWS, s.CAPTURE_RESERVE]] = 3, 300
    for lacks, rows, size in ((loop.lacks_room, 3, 300), (loop.lacks_room_to_wake, 2, 200)):
        state[[s.CAPTURE_COUNT, s.CAPTURE_USED]] = 10 - rows, 1000 - size
        assert lacks(net.arena, net.at) == 0
        state[[s.CAPTURE_COUNT, s.CAPTURE_USED]] = 10 - rows + 1, 1000 - size
        assert lacks(net.arena, net.at) == loop.CAPTURED
        state[[s.CAPTURE_COUNT, s.CAPTURE_USED]] = 10 - rows, 1000 - size + 1
        assert lacks(net.arena, net.at) == loop.CAPTURED
        state[[s.CAPTURE_COUNT, s.CAPTURE_USED]] = 0


class Driven(Net):
    """A network with a driver that notes what it is to do, and returns `answers` in turn."""

    def __init__(self, plain_address: Address, *answers: int) -> None:
        super().__init__()
        self.answers, self.did = list(answers), list[int]()
        self.driver = self.store.allocate("words", d.DRIVER_WORDS)
        self.calendar = make_heap(self.store, 8)
        self.words[self.driver + d.DRIVE] = plain_address(self.drive)
        self.words[self.driver + d.RING_AT] = self.words[self.at + s.RING_AT]
        self.words[self.at + s.DRIVER] = self.driver

    def drive(self, _arena: Arena, at: int, what: int, _now_ps: int) -> int:
        assert at == self.driver
        self.did.append(what)
        self.words[self.driver + d.FIRST_CONCERNED] = 0
        self.words[self.calendar + COUNT] = 0
        return self.answers.pop(0)

    def is_due(self, due_ps: int) -> None:
        self.words[self.driver + d.CALENDAR_AT] = self.calendar
        push_event(self.words, self.calendar, due_ps, 0, 0)

    def go_on(self, time_ps: int, until_ps: int = FOREVER_PS) -> int:
        return int(loop.go_on(self.arena, self.at, time_ps, until_ps))


def test_a_driver_does_what_is_pending_and_says_why_it_pauses(
    plain_address: Address,
) -> None:
    net = Driven(plain_address, 0, loop.CAPTURED)
    assert net.go_on(50) == 0
    for answer in (-1, loop.CAPTURED):
        net.words[net.driver + d.FIRST_CONCERNED] = 1
        assert net.go_on(50) == answer
    assert net.did == [d.DISPATCH, d.DISPATCH]


@pytest.mark.parametrize(
    ("due_ps", "time_ps", "until_ps", "reason", "did"),
    [
        (50, 51, 99, -1, [d.ACT]),
        (50, 50, 99, 0, []),  # events of that time come first
        (50, 60, 50, -1, [d.ACT]),
        (50, 60, 49, loop.UNTIL, []),
    ],
)
def test_processors_are_served_before_events_of_a_later_time(
    due_ps: int, time_ps: int, until_ps: int, reason: int, did: list[int],
    plain_address: Address,
) -> None:  # fmt: skip
    net = Driven(plain_address, 0)
    net.is_due(due_ps)
    assert net.go_on(time_ps, until_ps) == reason
    assert net.did == did


@pytest.mark.parametrize("word", [d.FIRST_DONE, d.FAILED, d.OVERLONG, d.WANTED])
def test_python_looks_at_what_the_driver_finds_noteworthy(
    word: int, plain_address: Address
) -> None:
    net = Driven(plain_address, loop.CAPTURED)
    net.words[net.driver + d.FIRST_CONCERNED] = 1
    net.words[net.driver + word] = 1
    assert net.go_on(50) == loop.REPORTED


@given(
    times=st.lists(st.integers(0, 60), max_size=8),
    until_ps=st.one_of(st.integers(0, 60), st.just(FOREVER_PS)),
)
def test_the_loop_handles_events_until_a_time(times: list[int], until_ps: int) -> None:
    """Idle ports of a host without agents: nothing else happens."""
    net = Net(agents=0)
    for number, time_ps in enumerate(times):
        push_event(net.words, net.heap, time_ps, IDLE | HOST_PORT << 3, number + 1)
    reason = run(net.arena, net.at, until_ps)
    left = [time_ps for time_ps in times if time_ps > until_ps]
    assert reason == (loop.UNTIL if left else loop.EMPTY)
    assert net.net.state[s.EVENTS] == len(times) - len(left)
    assert loop.next_time_ps(net.words, net.heap) == min(left, default=FOREVER_PS)


def test_without_a_driver_reports_are_pythons_before_time_goes_on() -> None:
    """All events of the instant in which an agent reports are handled first."""
    net = Net(agents=0)
    for number, time_ps in enumerate((10, 10, 20)):
        push_event(net.words, net.heap, time_ps, IDLE | HOST_PORT << 3, number + 1)
    ring = int(net.words[net.at + s.RING_AT])
    assert run(net.arena, net.at, 9) == loop.UNTIL
    net.words[ring] = 1
    assert run(net.arena, net.at, 30) == loop.REPORTED
    assert net.net.state[s.EVENTS] == 0
    net.words[ring] = 0
    assert run(net.arena, net.at, 10) == loop.UNTIL
    assert net.net.state[s.EVENTS] == 2


def test_the_loop_stops_where_room_is_lacking() -> None:
    net = Net(agents=0)
    push_event(net.words, net.heap, 10, IDLE | HOST_PORT << 3, 1)
    net.arena.own[POOL_FREE] -= 1
    assert run(net.arena, net.at, 30) == loop.NEEDS_ROOM
    assert net.net.state[s.EVENTS] == 0
