"""DCQCN with cards' numbers: steps computed by hand from the HPCC paper's simulator."""

from __future__ import annotations

import pytest
from cc_sender import LINE_BPS, Sender

from ringleaf.core.units import PS_PER_US
from ringleaf.hosts.congestion.control import RATE_BPS
from ringleaf.hosts.congestion.dcqcn_nic import ALPHA, ONE
from ringleaf.hosts.controllers import dcqcn_hpcc, dcqcn_mellanox


def rate(sender: Sender) -> float:
    return (sender.word(RATE_BPS) or LINE_BPS) / LINE_BPS


def test_starts_at_the_lines_rate_and_is_halved_once_per_gap_of_4_us() -> None:
    sender = Sender(dcqcn_mellanox.CONTROLLER)
    for _ in range(3):
        sender.happen("ack", 1, 1)
        assert rate(sender) == 1
    sender.wait(4 * PS_PER_US)
    assert rate(sender) == 0.5
    sender.wait(4 * PS_PER_US)
    assert rate(sender) == 0.5, "no notice has come since"
    sender.happen("ack", 1, 1)
    sender.wait(4 * PS_PER_US)
    assert rate(sender) == 0.25


def test_mellanox_recovers_in_1500_us_steps_towards_the_rate_before_the_first_cut() -> None:
    """Two cuts leave a quarter; the clamp is off, so the target is still the line's rate."""
    sender = Sender(dcqcn_mellanox.CONTROLLER)
    for _ in range(2):
        sender.happen("ack", 1, 1)
        sender.wait(4 * PS_PER_US)
    rates = []
    for _ in range(5):
        sender.wait(1500 * PS_PER_US)
        rates.append(rate(sender))
    assert rates == pytest.approx([1 - 0.75 / 2**step for step in range(1, 6)], rel=1e-6)


def test_mellanox_alpha_has_a_gain_of_a_sixteenth_per_55_us() -> None:
    sender = Sender(dcqcn_mellanox.CONTROLLER)
    sender.happen("ack", 1, 1)
    sender.wait(3 * 55 * PS_PER_US)
    sender.happen("ack", 1, 1)
    assert sender.word(ALPHA) / ONE == pytest.approx((15 / 16) ** 3, rel=1e-4)
    sender.wait(55 * PS_PER_US)
    sender.happen("ack", 1, 1)
    expected = (15 / 16) ** 4 + 1 / 16
    assert sender.word(ALPHA) / ONE == pytest.approx(expected, rel=1e-4)


def test_hpccs_numbers_add_50_and_then_100_mbit_after_one_step() -> None:
    """Two notices a long time apart: the second cut makes its rate the target."""
    sender = Sender(dcqcn_hpcc.CONTROLLER)
    sender.happen("ack", 1, 1)
    sender.wait(4 * PS_PER_US)
    assert rate(sender) == pytest.approx(0.5, rel=0.02), "alpha shrinks each microsecond"
    before = sender.word(RATE_BPS) / 1e9
    rates = []
    for _ in range(4):
        sender.wait(900 * PS_PER_US)
        rates.append(sender.word(RATE_BPS) / 1e9)
    half = (before + 100) / 2
    assert rates == pytest.approx(
        [half, (half + 100) / 2, (half + 300) / 4, (half + 700) / 8], rel=1e-6
    )
