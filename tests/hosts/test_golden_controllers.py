"""Golden values of controllers that have no tests of their own."""

from __future__ import annotations

from cc_sender import MOST, Sender

from ringleaf.core.units import PS_PER_US
from ringleaf.hosts.congestion.control import WINDOW, make_control
from ringleaf.hosts.congestion.dcqcn_nic import TARGET_BPS
from ringleaf.hosts.controllers import dcqcn_hpcc, fixed


def test_fixed() -> None:
    """It has no block, as it ignores all events; a block would keep the window as it was."""
    sender = Sender(fixed.CONTROLLER)
    assert fixed.CONTROLLER.is_open
    assert (
        make_control(sender.store, fixed.CONTROLLER, window=8, line_bps=10**9, rtt_ps=10**6, hops=1)
        == sender.at
        == 0
    )
    for handler in ("on_ack", "on_loss", "on_cnp", "on_timer", "on_post"):
        assert getattr(fixed.CONTROLLER, handler).__name__ == "ignore"
    assert (MOST, WINDOW) == (64, 0)


def test_dcqcn_hpcc() -> None:
    """The target is the rate at the second notice. A step of 900 us leaves it, the next one adds
    50 Mbit/s, and each after that 100 Mbit/s (mix/config.txt).
    """
    sender = Sender(dcqcn_hpcc.CONTROLLER)
    sender.happen("ack", 1, 1)
    sender.wait(4 * PS_PER_US + 900 * PS_PER_US)
    sender.happen("ack", 1, 1)
    sender.wait(4 * PS_PER_US)
    target = sender.word(TARGET_BPS)
    added = []
    for _ in range(4):
        sender.wait(900 * PS_PER_US)
        added.append((sender.word(TARGET_BPS) - target) // 10**6)
    assert target < 80 * 10**9
    assert added == [0, 50, 150, 250]
