"""pFabric: classes by what is left of a flow, and packets that stay in order."""

from __future__ import annotations

import pytest
from cc_sender import LINE_BPS, Sender
from rc_wire import MTU, Wire, kinds

from ringleaf.hosts import rc
from ringleaf.hosts.congestion.control import PRIORITY, WINDOW
from ringleaf.hosts.controllers import pfabric
from ringleaf.hosts.rc.state import ALLOWED, open_qp
from ringleaf.hosts.rc.wire import ACKNOWLEDGE

BDP = -(-LINE_BPS * 8 // 10**6 // (8 * 4178))  # 24 packets


def test_window_is_one_bdp() -> None:
    assert Sender(pfabric.CONTROLLER).word(WINDOW) == BDP == 24


@pytest.mark.parametrize(
    ("packets", "level"),
    [(1, 7), (BDP, 7), (BDP + 1, 6), (4 * BDP, 6), (4 * BDP + 1, 5), (16 * BDP, 5), (10**9, 0)],
)
def test_class_is_one_lower_each_time_four_times_as_much_is_left(packets: int, level: int) -> None:
    sender = Sender(pfabric.CONTROLLER)
    sender.happen("post", packets, 0)
    assert sender.word(PRIORITY) == level


def test_window_is_one_packet_after_five_timeouts_until_something_gets_through() -> None:
    sender = Sender(pfabric.CONTROLLER)
    for left in (BDP, BDP, BDP, BDP, 1):
        sender.happen("timeout", 0, 0)
        assert sender.word(WINDOW) == left
    sender.happen("ack", 1, 0)
    assert sender.word(WINDOW) == BDP


def data_classes(wire: Wire) -> list[int]:
    """Return the class selectors of data packets, in the order in which they were sent."""
    return [f[15] >> 5 for f in wire.sent if f[42] < ACKNOWLEDGE]


@pytest.mark.parametrize(("times", "level"), [(1, 7), (4, 6), (16, 5)])
def test_data_has_its_flows_class_and_answers_have_the_highest(times: int, level: int) -> None:
    wire = Wire(window=64, controller="pfabric")
    bdp = int(open_qp(wire.store.arena, wire.ends[0], 0).state[ALLOWED])
    size = MTU * times * bdp
    wire.expect(1, 4096, size, tag=0)
    wire.post(0, bytes(size), 0, tag=0)
    wire.run()
    assert set(data_classes(wire)) == {level}
    assert {f[15] >> 5 for f in wire.sent if f[42] == ACKNOWLEDGE} == {7}
    assert (rc.SENT, 0) in kinds(wire)


def test_class_rises_only_when_nothing_is_on_its_way() -> None:
    """A small message behind a large one goes in the large one's class; so do both together.

    Once all is acknowledged, the next small one has the highest class.
    """
    wire = Wire(window=64, controller="pfabric")
    bdp = int(open_qp(wire.store.arena, wire.ends[0], 0).state[ALLOWED])
    for tag, size in enumerate((MTU * 4 * bdp, MTU)):
        wire.expect(1, 4096, size, tag)
        wire.post(0, bytes(size), 0, tag)
    wire.run()
    assert set(data_classes(wire)) == {5}, "just above four BDP are left"
    wire.expect(1, 4096, MTU, 2)
    wire.post(0, bytes(MTU), 0, 2)
    wire.run()
    assert data_classes(wire)[-1] == 7
