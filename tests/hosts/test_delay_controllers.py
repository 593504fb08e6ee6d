"""Swift and TIMELY: updates computed by hand from their equations."""

from __future__ import annotations

import math

import pytest
from cc_sender import LINE_BPS, MOST, Sender

from ringleaf.core.units import PS_PER_US
from ringleaf.hosts.congestion.control import DELAY_PS, IN_FLIGHT, RATE_BPS, WINDOW
from ringleaf.hosts.congestion.windows import ONE_PACKET
from ringleaf.hosts.controllers import swift, timely


def acknowledge(sender: Sender, delay_us: float, packets: int = 1) -> None:
    """Acknowledge packets with a round trip of so long; nothing is in flight afterwards."""
    sender.set(DELAY_PS, round(delay_us * PS_PER_US))
    sender.set(IN_FLIGHT, 0)
    sender.controller.on_ack(sender.store.arena, sender.at, packets, sender.now_ps)


def packets(sender: Sender) -> float:
    return sender.word(swift.CWND) / ONE_PACKET


def swift_target_us(cwnd: float, hops: int) -> float:
    """Kumar et al., SIGCOMM 2020, section 3.5, with the constants of csg-htsim."""
    base = 20.0
    slope = 5 * base / (1 / math.sqrt(0.1) - 1 / math.sqrt(100))
    scaled = slope / math.sqrt(cwnd) - slope / math.sqrt(100)
    return base + hops * base / 6.55 + min(max(scaled, 0.0), 5 * base)


@pytest.mark.parametrize("cwnd", [0.05, 0.1, 1.0, 16.0, 64.0])
@pytest.mark.parametrize("hops", [1, 5])
def test_swifts_target_grows_with_hops_and_with_smaller_windows(cwnd: float, hops: int) -> None:
    sender = Sender(swift.CONTROLLER, hops=hops)
    sender.set(swift.CWND, round(cwnd * ONE_PACKET))
    target_us = swift.target_ps(sender.store.arena.words, sender.at) / PS_PER_US
    assert target_us == pytest.approx(swift_target_us(cwnd, hops), rel=1e-4)


def test_swift_adds_one_packet_per_round_trip_below_the_target() -> None:
    sender = Sender(swift.CONTROLLER)
    sender.set(swift.CWND, 10 * ONE_PACKET)
    acknowledge(sender, 10)
    assert packets(sender) == pytest.approx(10.1)
    acknowledge(sender, 10, packets=5)
    assert packets(sender) == pytest.approx(10.1 + 5 / 10.1)


def test_swift_cuts_by_the_excess_once_per_round_trip_and_by_half_at_most() -> None:
    sender = Sender(swift.CONTROLLER)
    sender.now_ps = 10_000 * PS_PER_US
    target_us = swift_target_us(MOST, hops=1)
    acknowledge(sender, 1.25 * target_us)
    cut = MOST * (1 - 0.8 * 0.2)
    assert packets(sender) == pytest.approx(cut, rel=1e-4)
    acknowledge(sender, 1.25 * target_us)
    assert packets(sender) == pytest.approx(cut, rel=1e-4), "not twice in a round trip"
    sender.now_ps += 2000 * PS_PER_US
    acknowledge(sender, 1000)
    assert packets(sender) == pytest.approx(cut / 2, rel=1e-4)


def test_swift_paces_below_one_packet() -> None:
    """A window of a quarter of a packet, and a round trip of 100 us: one packet in 400 us."""
    sender = Sender(swift.CONTROLLER)
    sender.set(swift.TRIP_PS, 100 * PS_PER_US)
    swift.change(sender.store.arena.words, sender.at, ONE_PACKET // 4)
    assert sender.word(WINDOW) == 1
    assert sender.word(RATE_BPS) == pytest.approx(8 * 4178 / 400e-6, rel=1e-6)
    acknowledge(sender, 10, packets=1)
    assert packets(sender) == pytest.approx(1.25)
    assert sender.word(RATE_BPS) == 0


def test_swift_halves_after_a_loss_and_has_its_least_window_after_five_timeouts() -> None:
    sender = Sender(swift.CONTROLLER)
    sender.happen("nak", 0, 0)
    assert packets(sender) == MOST / 2
    for _ in range(5):
        sender.happen("timeout", 0, 0)
    assert packets(sender) == pytest.approx(10 / 4096, rel=1e-3)


def rate(sender: Sender) -> float:
    """Return the rate as a share of the line's."""
    return (sender.word(RATE_BPS) or LINE_BPS) / LINE_BPS


def test_timely_raises_below_50_us_and_more_after_five_raises() -> None:
    sender = Sender(timely.CONTROLLER)
    acknowledge(sender, 40)
    sender.set(timely.CURRENT_BPS, LINE_BPS // 2)
    steps = []
    for _ in range(7):
        before = sender.word(timely.CURRENT_BPS)
        acknowledge(sender, 49)
        steps.append((sender.word(timely.CURRENT_BPS) - before) / LINE_BPS)
    assert steps == pytest.approx([0.001] * 5 + [0.01] * 2)


def test_timely_cuts_above_500_us_whatever_the_gradient() -> None:
    sender = Sender(timely.CONTROLLER)
    acknowledge(sender, 2000)
    acknowledge(sender, 1000)
    assert rate(sender) == pytest.approx(1 - 0.8 * (1 - 500 / 1000))


def test_timely_follows_the_gradient_between_50_and_500_us() -> None:
    """Round trips of 60 and 64 us: the average change is 0.875 * 4 us, a gradient of 0.175."""
    sender = Sender(timely.CONTROLLER)
    acknowledge(sender, 60)
    acknowledge(sender, 64)
    assert rate(sender) == pytest.approx(1 - 0.8 * 0.175, rel=1e-6)
    acknowledge(sender, 64)  # the average is 0.125 * 3.5 us now
    assert rate(sender) == pytest.approx((1 - 0.14) * (1 - 0.8 * 0.4375 / 20), rel=1e-6)
    acknowledge(sender, 60)
    assert sender.word(timely.CHANGE_PS) < 0
    assert rate(sender) == pytest.approx((1 - 0.14) * (1 - 0.0175) + 0.001, rel=1e-6)


def test_timelys_times_grow_with_a_round_trip_above_20_us() -> None:
    sender = Sender(timely.CONTROLLER, rtt_ps=40 * PS_PER_US)
    acknowledge(sender, 90)
    acknowledge(sender, 99)  # below 100 us: raised though it grows
    assert rate(sender) == 1
    acknowledge(sender, 2000)  # above 1 ms
    assert rate(sender) == pytest.approx(1 - 0.8 * 0.5)


def test_timely_changes_once_per_window_of_data() -> None:
    sender = Sender(timely.CONTROLLER)
    acknowledge(sender, 600)
    rates = []
    for _ in range(6):
        sender.set(DELAY_PS, 1000 * PS_PER_US)
        sender.set(IN_FLIGHT, 5)
        sender.controller.on_ack(sender.store.arena, sender.at, 1, 0)
        rates.append(rate(sender))
    assert rates == pytest.approx([0.6] * 5 + [0.36])
