"""a2tp.p4, packet by packet: the job that holds an aggregator learns that another one wants it."""

from __future__ import annotations

import pytest
from scapy.layers.l2 import Ether
from switch_packets import atp
from test_atp_program import ALL, SERVER_PORT, gradient, outcomes, rack

from ringleaf.ina.atp.layers import ATP
from ringleaf.ina.atp.wire import COLLISION, MESSAGE_AT, PARAMETER, RACK_AT, RESEND, WANTED
from ringleaf.switches.switch import Switch

OTHER = 4  # another job


def a2tp() -> Switch:
    return rack(name="a2tp-64")


def wanted(out: list[tuple[int, bytes]]) -> list[bool]:
    return [bool(data[RACK_AT] & WANTED) for _, data in out]


def late(data: bytes) -> bytes:
    """The gradient of a worker that has had late results."""
    frame = Ether(data)
    frame[ATP].proposal = 1
    return bytes(frame)


def plain(data: bytes) -> bytes:
    """The gradient of a worker that has not."""
    frame = Ether(data)
    frame[ATP].proposal = 0
    return bytes(frame)


def test_the_occupier_is_told_and_the_other_one_marked() -> None:
    switch = a2tp()
    switch.process(1, gradient(0, 1))
    (collided,) = switch.process(2, gradient(1, 5, job=OTHER))

    assert collided[1][MESSAGE_AT] & COLLISION
    assert not collided[1][RACK_AT] & WANTED
    switch.process(2, gradient(1, 2))
    assert wanted(switch.process(3, gradient(2, 3))) == [True]
    assert outcomes(switch)["COLLIDED"] == 1


def test_nobody_is_told_without_a_collision() -> None:
    switch = a2tp()
    for worker in range(3):
        out = switch.process(worker + 1, gradient(worker, 1))
    assert wanted(out) == [False]


@pytest.mark.parametrize("flags", [0, RESEND])
def test_a_packet_that_is_sent_again_is_no_collision(flags: int) -> None:
    switch = a2tp()
    switch.process(1, gradient(0, 1))
    switch.process(2, gradient(1, 5, job=OTHER, flags=flags))
    switch.process(2, gradient(1, 2))
    assert wanted(switch.process(3, gradient(2, 3))) == [not flags]


def test_the_next_block_of_the_aggregator_starts_without_a_mark() -> None:
    switch = a2tp()
    switch.process(1, gradient(0, 1))
    switch.process(2, gradient(1, 5, job=OTHER))
    for worker in (1, 2):
        switch.process(worker + 1, gradient(worker, 1))
    switch.process(SERVER_PORT, atp(PARAMETER, values=(3,), dst="239.167.3.0"))

    for worker in range(3):
        out = switch.process(worker + 1, gradient(worker, 1, sequence=8))
    assert wanted(out) == [False]


@pytest.mark.parametrize("which", range(3))
def test_marks_of_any_packet_are_in_the_sum(which: int) -> None:
    """They come from a switch before, and from a worker."""
    switch = a2tp()
    for worker in range(3):
        data = gradient(worker, 1)
        marked = bytearray(late(data) if worker == which else plain(data))
        if worker == which:
            marked[RACK_AT] |= WANTED
        out = switch.process(worker + 1, bytes(marked))
    ((port, data),) = out
    packet = Ether(data)[ATP]
    assert (port, packet.workers, packet.wanted, packet.proposal) == (SERVER_PORT, ALL, 1, 1)


def test_what_a_resend_takes_along_has_its_marks() -> None:
    switch = a2tp()
    switch.process(1, plain(gradient(0, 1)))
    switch.process(2, gradient(1, 5, job=OTHER))
    ((_, data),) = switch.process(2, plain(gradient(1, 2, flags=RESEND)))
    packet = Ether(data)[ATP]
    assert (packet.workers, packet.wanted, packet.proposal) == (0b11, 1, 0)
