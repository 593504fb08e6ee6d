"""The controller without control: a golden value of its own; the others' are in their tests."""

from __future__ import annotations

from cc_sender import MOST, Sender

from ringleaf.hosts.congestion.control import WINDOW, make_control
from ringleaf.hosts.controllers import fixed


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
