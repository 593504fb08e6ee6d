"""Congestion controllers, told of acknowledgements, losses, notices and time."""

from __future__ import annotations

import pytest
from cc_sender import LINE_BPS, MOST, RTT_PS, Sender
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.core.arena import Store
from ringleaf.core.marking import Marking
from ringleaf.core.units import FOREVER_PS, PS_PER_US
from ringleaf.errors import ConfigError
from ringleaf.hosts.congestion.control import (
    CONTROL_WORDS,
    GAIN,
    IN_FLIGHT,
    MARKED,
    MARKS,
    ONE_GAIN,
    OWN,
    PACKET_BYTES,
    PRIORITY,
    RATE_BPS,
    SEEN_MARKS,
    TIMER_AT_PS,
    WINDOW,
    Controller,
    begin_anew,
    make_control,
)
from ringleaf.hosts.congestion.registry import CONTROLLERS, find_controller
from ringleaf.hosts.controllers import dcqcn, dctcp

CLOSED = [each for each in CONTROLLERS.values() if not each.is_open]

DELAYS = st.integers(0, 3000 * PS_PER_US)
ACK = st.tuples(st.just("ack"), st.integers(1, MOST), st.integers(0, MOST), DELAYS)
OTHERS = st.tuples(
    st.sampled_from(["nak", "timeout", "cnp", "wait", "post"]),
    st.integers(1, 500),
    st.just(0),
    st.just(0),
)
EVERYTHING = tuple[str, int, int, int]
PAUSE_PS = 2000 * PS_PER_US
"""More than the time between the steps of any controller's timer."""
EVENTS = st.lists(st.one_of(ACK, ACK, OTHERS), max_size=60)


@pytest.mark.parametrize("controller", CLOSED, ids=lambda each: each.name)
@given(events=EVENTS)
def test_window_and_rate_stay_within_what_the_line_carries(
    controller: Controller, events: list[EVERYTHING]
) -> None:
    sender = Sender(controller)
    assert sender.is_open(), "RDMA starts at the line's rate"
    for event in events:
        sender.happen(*event)
        assert 1 <= sender.word(WINDOW) <= MOST
        assert 0 <= sender.word(RATE_BPS) <= LINE_BPS


@pytest.mark.parametrize("controller", CLOSED, ids=lambda each: each.name)
def test_a_flow_on_a_queue_pair_that_another_has_had_begins_as_on_a_new_one(
    controller: Controller,
) -> None:
    store = Store()
    at = make_control(store, controller, window=MOST, line_bps=LINE_BPS, rtt_ps=RTT_PS)
    block = store.arena.words[at : at + CONTROL_WORDS]
    new = block.tolist()
    decided, own = slice(WINDOW, PRIORITY + 1), slice(OWN, CONTROL_WORDS)
    block[decided] = block[own] = 3
    block[SEEN_MARKS] = block[MARKS] = 5  # which the peer has counted, too

    begin_anew(block, controller)

    assert block[decided].tolist() == new[decided]
    assert block[own].tolist() == new[own]
    assert block[[SEEN_MARKS, MARKS]].tolist() == [5, 5]


@pytest.mark.parametrize("controller", CLOSED, ids=lambda each: each.name)
@given(events=EVENTS)
def test_full_speed_comes_back_once_marks_cease_and_no_timer_is_left(
    controller: Controller, events: list[EVERYTHING]
) -> None:
    sender = Sender(controller)
    for event in events:
        sender.happen(*event)
    for _ in range(4000):
        if sender.is_open():
            break
        sender.happen("ack", sender.word(WINDOW), 0)
        sender.wait(PAUSE_PS)
    assert sender.is_open()
    sender.wait(100 * PAUSE_PS)
    assert sender.word(TIMER_AT_PS) == FOREVER_PS


@given(events=EVENTS)
def test_dctcps_alpha_is_a_fraction(events: list[EVERYTHING]) -> None:
    sender = Sender(dctcp.CONTROLLER)
    for event in events:
        sender.happen(*event)
        assert 0 <= sender.word(dctcp.ALPHA) <= dctcp.ONE


def test_dctcp_cuts_once_per_window_and_by_half_of_alpha() -> None:
    sender = Sender(dctcp.CONTROLLER)
    sender.happen("ack", MOST, MOST)
    assert sender.word(WINDOW) == MOST // 2, "alpha is 1 at first"
    for _ in range(400):
        sender.happen("ack", MOST, 0)
    alpha = sender.word(dctcp.ALPHA)
    assert alpha < dctcp.ONE // 50
    assert sender.word(WINDOW) == MOST

    for packet in range(MOST):  # one packet at a time, every second marked
        sender.set(IN_FLIGHT, MOST)
        sender.set(MARKED, packet % 2)
        sender.controller.on_ack(sender.store.arena, sender.at, 1, 0)
    learnt = alpha - (alpha >> 4) + (dctcp.ONE >> 5)
    assert sender.word(dctcp.ALPHA) == pytest.approx(learnt, abs=4)
    assert sender.word(WINDOW) == MOST - -(-MOST * learnt // (2 * dctcp.ONE))


def test_dcqcn_cuts_by_half_of_alpha_and_recovers_half_way_per_step() -> None:
    """Zhu et al., SIGCOMM 2015, figure 7: fast recovery leads back to the rate before the cut."""
    sender = Sender(dcqcn.CONTROLLER)
    sender.happen("cnp", 0, 0)
    assert sender.word(RATE_BPS) == LINE_BPS // 2
    for step in range(1, 6):
        sender.wait(55 * PS_PER_US)
        assert sender.word(RATE_BPS) == pytest.approx(LINE_BPS * (1 - 0.5 ** (step + 1)), rel=1e-6)
    sender.happen("cnp", 0, 0)
    alpha = (1 - 1 / 256) ** 5  # 1 at first, and less with each step
    before = LINE_BPS * (1 - 0.5**6)
    assert sender.word(RATE_BPS) == pytest.approx(before * (1 - alpha / 2), rel=0.01)


def test_dcqcns_first_notice_halves_the_rate_whenever_it_comes() -> None:
    """A sender at the line's rate has no limiter yet: alpha is 1 when it gets one."""
    sender = Sender(dcqcn.CONTROLLER)
    sender.wait(100_000 * PS_PER_US)
    sender.happen("cnp", 0, 0)
    assert sender.word(RATE_BPS) == LINE_BPS // 2


def test_dcqcn_recovers_for_five_steps_and_then_adds_40_mbit_per_step() -> None:
    """Zhu et al., SIGCOMM 2015, section 3: F = 5, R_AI = 40 Mbit/s on lines of 40 Gbit/s.

    Two notices at once, while alpha is 1, leave a target of 20 and a rate of 10 Gbit/s. Five steps
    halve the rest; the sixth and the seventh raise the target to 20.04 and 20.08 first.
    """
    sender = Sender(dcqcn.CONTROLLER, line_bps=40_000_000_000)
    sender.happen("cnp", 0, 0)
    sender.happen("cnp", 0, 0)
    rates = []
    for _ in range(7):
        sender.wait(55 * PS_PER_US)
        rates.append(sender.word(RATE_BPS) / 1e9)
    assert rates == pytest.approx([15, 17.5, 18.75, 19.375, 19.6875, 19.86375, 19.971875])


def test_dcqcns_byte_counter_steps_every_10_megabytes() -> None:
    """Zhu et al., section 3: B = 10 MB, which is 2441 packets of 4 KiB; timers do not matter."""
    sender = Sender(dcqcn.CONTROLLER, line_bps=40_000_000_000)
    sender.happen("cnp", 0, 0)
    for count, rate in ((2440, 20e9), (1, 30e9), (2440, 30e9), (1, 35e9)):
        sender.happen("ack", count, 0)
        assert sender.word(RATE_BPS) == pytest.approx(rate)


def test_dcqcns_byte_counter_counts_bytes_of_small_packets() -> None:
    """Packets of 1 KiB have 1106 bytes on the line, so 10 MB are 9222 of them."""
    sender = Sender(dcqcn.CONTROLLER, line_bps=40_000_000_000)
    sender.set(PACKET_BYTES, 1024 + 82)
    sender.happen("cnp", 0, 0)
    for count, rate in ((9221, 20e9), (1, 30e9)):
        sender.happen("ack", count, 0)
        assert sender.word(RATE_BPS) == pytest.approx(rate)


def test_dcqcns_marking_is_the_papers_in_proportion_to_the_line() -> None:
    """Kmin 5 kB, Kmax 200 kB, Pmax 1 % per packet of 1 kB, for 40 Gbit/s (Zhu et al., figure 14).

    At 100 Gbit/s these are 12.5 and 500 kB, or 3 and 122 packets of 4,096 bytes; a packet of four
    times the bytes is marked four times as often.
    """
    assert find_controller("dcqcn").marking == Marking(3, 122, 0.04)


def test_a_controllers_marking_is_for_its_lines_and_packets() -> None:
    """DCQCN's are bytes at a rate; DCTCP's K is 98,304 bytes up to 100 Gbit/s."""
    assert find_controller("dcqcn").marking_at(40e9, 1024) == Marking(5, 195, 0.01)
    for rate_bps, packet_bytes, packets in (
        *((1e11, 4096, 24), (10e9, 4096, 24), (40e9, 1024, 96)),
        *((400e9, 4096, 96), (200e9, 256, 768)),
    ):
        own = find_controller("dctcp").marking_at(rate_bps, packet_bytes)
        assert own == Marking(packets, packets)


def test_an_unknown_controller_is_refused() -> None:
    with pytest.raises(ConfigError, match="cc: unknown congestion controller, got 'cubic'"):
        find_controller("cubic")


def test_dctcps_window_grows_by_its_gain() -> None:
    """From 10 packets, an acknowledged window adds a packet, or 1.5, in steps of 1 / window."""
    growth = []
    for gain in (1.0, 1.5):
        store = Store()
        at = make_control(store, dctcp.CONTROLLER, window=MOST, line_bps=LINE_BPS, rtt_ps=RTT_PS)
        words = store.arena.words
        words[at + dctcp.CWND] = 10 * dctcp.ONE_PACKET
        words[at + GAIN] = round(gain * ONE_GAIN)
        dctcp.on_ack(store.arena, at, 1, 0)
        growth.append(int(words[at + dctcp.CWND]) / dctcp.ONE_PACKET - 10)

    assert growth == pytest.approx([0.1, 0.15], abs=1e-4)
