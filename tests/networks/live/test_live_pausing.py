"""Pause frames on real interfaces: a switch sends them, and hosts and switches obey."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from namespaces import ip, name_of
from test_live_switch import star, step

import ringleaf.networks.virtual.state as s
from ringleaf.core.arena import Store
from ringleaf.core.packets import make_pool
from ringleaf.core.pausing import parse_pausing
from ringleaf.core.units import PS_PER_MS, PS_PER_S
from ringleaf.errors import ConfigError
from ringleaf.networks.live.engine import Engine, LinkEnd, LiveNode
from ringleaf.networks.live.lossless import headroom_bytes, lay_out_pausing
from ringleaf.networks.options import NetworkOptions
from ringleaf.networks.virtual.pfc.layout import PAUSED
from ringleaf.networks.virtual.pfc.tables import pause_rows

CLASS_3 = 1 << 3
RATE_BPS = 10**8


def pause_frame(classes: int, quanta: int) -> bytes:
    """802.1Qbb: to 01-80-C2-00-00-01, type 8808, opcode 0101, classes, eight times."""
    head = bytes.fromhex("0180c2000001 020000000009 8808 0101") + classes.to_bytes(2)
    return (head + 8 * quanta.to_bytes(2)).ljust(60, b"\0")


@pytest.fixture
def wire() -> Iterator[tuple[str, socket.socket]]:
    """An interface, and a socket on the one that it leads to."""
    ours, theirs = name_of(0), name_of(1)
    ip("link", "add", ours, "type", "veth", "peer", "name", theirs)
    try:
        for name in (ours, theirs):
            ip("link", "set", name, "up")
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as link:
            link.bind((theirs, 3))
            yield ours, link
    finally:
        ip("link", "delete", "dev", ours)


@pytest.mark.live
def test_a_frame_from_a_wire_pauses_its_class_until_the_next(
    wire: tuple[str, socket.socket],
) -> None:
    ours, link = wire
    store = Store()
    make_pool(store, size=512, head_bytes=2048, field_count=0, lane_count=0)
    engine = Engine(store)
    engine.build([LiveNode("s0", [LinkEnd(ours, RATE_BPS, pfc="64K:48K")])])
    engine.network().nodes[0, s.KIND] = s.SWITCH

    def paused_after(frame: bytes) -> int:
        link.send(frame)
        engine.serve(engine.now_ps + 100 * PS_PER_MS)
        return int(pause_rows(store.arena, engine.at)[0, PAUSED])

    try:
        assert paused_after(pause_frame(CLASS_3, 0xFFFF)) == CLASS_3
        assert paused_after(pause_frame(CLASS_3 | 1, 0xFFFF)) == CLASS_3 | 1
        assert paused_after(pause_frame(CLASS_3, 0)) == 1
    finally:
        engine.close()


@pytest.mark.live
def test_a_switch_asks_hosts_to_pause_and_drops_nothing(tmp_path: Path) -> None:
    """Each packet in a queue is above XOFF, so a switch that did not send frames would count none;
    hosts that did not go on after one would end in silence.
    """
    options = NetworkOptions(pfc=parse_pausing("1K:512", "pfc"))
    with star(tmp_path, pfc="1K:512") as (daemon, places):
        tensors, expected = step(daemon, places, "alltoall", options)
        counted = daemon.counters()["s0"]

    for tensor, right in zip(tensors, expected, strict=True):
        assert torch.equal(tensor, right)
    assert sum(port["pauses"] for port in counted) > 0
    assert [port["queue_drops"] for port in counted] == [0, 0, 0]


def test_headroom_has_room_for_a_process_that_is_late() -> None:
    """At 80 Mbit/s, 10 bytes per us: 50 ms are 500,000 bytes. Without delays, the pause frame (84
    bytes of line time) and a frame before it (1,024) are told, and two frames may be under way.
    """
    ports = np.zeros((2, s.PORT_WORDS), np.int64)
    ports[0, s.RATE_BPS], ports[0, s.PEER], ports[1, s.PEER] = 80_000_000, 1, 0

    first, other = headroom_bytes(ports, 1000)

    assert first == other == 500_000 + (1000 + 24 + 84) + 2 * 1000
    ports[0, s.DELAY_PS] = PS_PER_S // 1000  # a millisecond each way: 10,000 bytes
    assert headroom_bytes(ports, 1000)[0] == pytest.approx(first + 2 * 10_000, abs=1)  # rounded up


def test_lines_of_a_process_have_the_same_thresholds() -> None:
    lines = [LinkEnd("a", RATE_BPS, pfc="64K:48K"), LinkEnd("b", RATE_BPS)]
    with pytest.raises(ConfigError, match="pfc: must be the same on all lines of a process, got"):
        lay_out_pausing(Store(), 0, lines, [1, 2])
