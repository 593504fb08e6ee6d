"""NSCC: updates computed by hand from uet-htsim's equations, and its README's figure."""

from __future__ import annotations

import pytest
from cc_sender import Sender

from ringleaf.core.units import PS_PER_US
from ringleaf.hosts.congestion.control import IN_FLIGHT, MARKED, WINDOW
from ringleaf.hosts.congestion.windows import ONE_PACKET
from ringleaf.hosts.controllers import nscc

RTT_PS = 12 * PS_PER_US
BDP = 150_000 / 4178  # packets


def sender_of(cwnd: float = 20.0) -> Sender:
    """Return a sender on the reference network, 100 Gbit/s and 12 us, so that a and b are 1.

    It has adjusted its window just now, and is in the middle of a period of quick adapt.
    """
    sender = Sender(nscc.CONTROLLER, rtt_ps=RTT_PS, now_ps=1000 * PS_PER_US)
    sender.set(nscc.CWND, round(cwnd * ONE_PACKET))
    sender.set(nscc.ADJUSTED_PS, sender.now_ps)
    sender.set(nscc.PERIOD_END_PS, sender.now_ps + RTT_PS)
    return sender


def packets(sender: Sender, place: int = nscc.CWND) -> float:
    return sender.word(place) / ONE_PACKET


def test_starts_with_one_and_a_half_bdp() -> None:
    sender = Sender(nscc.CONTROLLER, rtt_ps=RTT_PS)
    assert packets(sender) == pytest.approx(1.5 * BDP, rel=1e-6)
    assert sender.word(WINDOW) == int(1.5 * BDP)
    assert packets(sender, nscc.SCALE) == 1


def test_increase_is_in_proportion_to_the_delay_that_is_left() -> None:
    """4 MSS * acked * (t - delay) / 12 us; after nine packets it is added over the window."""
    sender = sender_of()
    sender.happen("ack", 1, 0, delay_ps=3 * PS_PER_US)
    assert packets(sender, nscc.INCREASE) == pytest.approx(4 * 9 / 12)
    assert packets(sender) == 20
    sender.happen("ack", 8, 0, delay_ps=3 * PS_PER_US)
    assert packets(sender) == pytest.approx(20 + 9 * 3 / 20, rel=1e-6)
    assert sender.word(nscc.INCREASE) == 0


def test_increase_is_five_packets_per_acked_packet_where_delay_has_no_mark() -> None:
    sender = sender_of()
    sender.happen("ack", 2, 0, delay_ps=RTT_PS)
    assert packets(sender, nscc.INCREASE) == 10


def test_eta_is_added_once_per_round_trip() -> None:
    sender = sender_of()
    sender.now_ps += RTT_PS + 1
    sender.happen("ack", 1, 1)  # a mark without delay changes nothing else
    assert packets(sender) == pytest.approx(20.15, rel=1e-6)


def test_increase_is_fast_once_a_window_had_no_delay() -> None:
    sender = sender_of(cwnd=4.5)
    for _ in range(4):
        sender.happen("ack", 1, 0)
    assert packets(sender) == 4.5
    sender.happen("ack", 1, 0)
    assert packets(sender) == pytest.approx(4.75)
    sender.happen("ack", 1, 0)
    assert packets(sender) == pytest.approx(5)


def test_marks_and_delay_cut_by_the_average_delay_once_per_round_trip() -> None:
    sender = sender_of()
    sender.set(nscc.AVERAGE_PS, 16 * PS_PER_US)
    sender.happen("ack", 1, 1, delay_ps=16 * PS_PER_US)
    assert packets(sender) == pytest.approx(20 * (1 - 0.8 * 4 / 16), rel=1e-6)
    sender.happen("ack", 1, 1, delay_ps=16 * PS_PER_US)
    assert packets(sender) == pytest.approx(16, rel=1e-6)
    sender.now_ps += RTT_PS + 1
    sender.set(nscc.ADJUSTED_PS, sender.now_ps)
    sender.set(nscc.AVERAGE_PS, 1000 * PS_PER_US)
    sender.happen("ack", 1, 1, delay_ps=16 * PS_PER_US)
    assert packets(sender) == pytest.approx(8, rel=1e-6), "by half at most"


def test_average_counts_a_late_sample_without_mark_as_a_quarter_of_a_round_trip() -> None:
    sender = sender_of()
    sender.happen("ack", 1, 1, delay_ps=20 * PS_PER_US)
    assert sender.word(nscc.AVERAGE_PS) == 0.0125 * 20 * PS_PER_US
    before = sender.word(nscc.AVERAGE_PS)
    sender.happen("ack", 1, 0, delay_ps=20 * PS_PER_US)
    after = sender.word(nscc.AVERAGE_PS)
    assert after == pytest.approx(0.9875 * before + 0.0125 * 3 * PS_PER_US, rel=1e-6)


def test_quick_adapt_goes_on_with_what_got_through_and_ignores_packets_in_flight() -> None:
    """Below an eighth of the largest window in a period that had a delay above 4 t."""
    sender = sender_of(cwnd=50)
    sender.happen("ack", 2, 0)
    sender.now_ps += RTT_PS + 1
    sender.set(nscc.ADJUSTED_PS, sender.now_ps)
    sender.set(IN_FLIGHT, 3)
    sender.set(MARKED, 1)
    sender.happen("ack", 3, 1, delay_ps=4 * RTT_PS + 1)
    assert packets(sender) == 5
    sender.set(nscc.AVERAGE_PS, 100 * PS_PER_US)
    sender.happen("ack", 2, 1, delay_ps=90 * PS_PER_US)
    assert packets(sender) == 5, "sent before"
    sender.happen("ack", 1, 1, delay_ps=90 * PS_PER_US)
    assert packets(sender) < 5


def test_a_loss_costs_a_packet_and_asks_for_quick_adapt() -> None:
    sender = sender_of()
    sender.happen("nak", 0, 0)
    assert packets(sender) == 19
    sender.now_ps += RTT_PS + 1
    sender.happen("ack", 1, 0)
    assert packets(sender) == 1
