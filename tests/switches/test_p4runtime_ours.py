"""Our own controller, by which networks of BMv2 get their entries."""

from __future__ import annotations

import socket
import threading

import pytest
from finsy import P4MeterConfig, P4MeterEntry, P4Schema
from program_cases import PROGRAMS

from ringleaf.errors import BackendError
from ringleaf.switches.engine.updates import MeterRates
from ringleaf.switches.program import Program
from ringleaf.switches.server.client import PrimaryController
from ringleaf.switches.server.device import SharedDevice
from ringleaf.switches.server.server import P4RuntimeServer

PATH = PROGRAMS / "meters.json"


def test_meters_have_no_verb_of_their_own() -> None:
    """They are there from the start, so finsy's objects can't be inserted."""
    device = SharedDevice(1, ports=4)
    device.pipelines.load(Program.load(PATH), PATH.read_bytes())
    config = P4MeterConfig(cir=5, cburst=6, pir=7, pburst=8)
    with P4RuntimeServer([device]) as server, PrimaryController(server.address, 1, "s") as one:
        one.take_control()
        one.write(
            P4MeterEntry("by_bytes", index=2, config=config),
            P4Schema(PROGRAMS / "meters.p4info.txtpb"),
        )
        switch = device.switch
        assert switch is not None
        assert switch.read_meter("I.by_bytes", 2) == MeterRates(5, 6, 7, 8)
        assert switch.read_meter("I.by_bytes", 1) is None


def test_a_server_without_a_program_answers() -> None:
    with (
        P4RuntimeServer([SharedDevice(1, ports=4)]) as server,
        PrimaryController(server.address, 1, "s") as one,
    ):
        one.await_ready()


def test_a_socket_that_says_nothing_is_no_server() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with (
            PrimaryController(address, 1, "s") as one,
            pytest.raises(BackendError, match=r"s: not ready, got 0\.05 s of silence"),
        ):
            one.await_ready(0.05)


def test_no_thread_stays_that_watches_a_closed_channel() -> None:
    with P4RuntimeServer([SharedDevice(1, ports=4)]) as server:
        before = set(threading.enumerate())
        with PrimaryController(server.address, 1, "s") as one:
            one.await_ready()
            left = set(threading.enumerate()) - before
    assert not [thread for thread in left if "_run" in thread.name], left
