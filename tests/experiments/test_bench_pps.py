"""The search for the most that a switch forwards, and one trial through a real one."""

from __future__ import annotations

import itertools
import os
import socket
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import pps as bench_pps
from bench.loads import build_path, sized_frame
from bench.pps import (
    LEAST_PPS,
    LiveSpeed,
    Trial,
    VethPairs,
    await_forwarding,
    search,
    try_load,
)
from ringleaf.core.headers import (
    ETHERTYPE_IPV4,
    IP_AT,
    IP_SRC_AT,
    PROTOCOL_UDP,
    UDP_PAYLOAD_AT,
    UDP_SRC_AT,
)
from ringleaf.networks.forwarding import forwarding_entities
from ringleaf.topologies.registry import build

IDENTIFICATION = slice(18, 20)


def is_summed(data: bytes) -> bool:
    """Return whether the data's ones' complement sum, with its checksum, is 0 (RFC 1071)."""
    total: int = sum(struct.unpack(f">{len(data) // 2}H", data))
    return total % 0xFFFF == 0


def switch_of(capacity_pps: float, sender_pps: float = 1e12) -> Callable[[float], Trial]:
    """A switch that forwards so many packets per second and drops the others."""

    def attempt(rate_pps: float) -> Trial:
        offered = min(rate_pps, sender_pps)
        arrived = min(offered, capacity_pps)
        return Trial(offered, arrived, 1 - arrived / offered)

    return attempt


@given(st.floats(10, 1e7))
def test_the_search_closes_in_on_what_is_forwarded(capacity_pps: float) -> None:
    speed = search(switch_of(capacity_pps))

    assert speed.peak_pps == pytest.approx(capacity_pps)
    least = 0 if capacity_pps < LEAST_PPS / 8 else 0.9 * capacity_pps
    assert least <= speed.forwarded_pps <= 1.002 * capacity_pps


def test_a_slow_sender_ends_the_search() -> None:
    speed = search(switch_of(1e9, sender_pps=1e5))

    assert speed.forwarded_pps == pytest.approx(1e5)


def test_a_load_that_the_sender_was_kept_from_is_tried_again() -> None:
    """Once in a while another process has the sender's core."""
    senders = iter((1e5, *[1e12] * 99))

    speed = search(lambda rate: switch_of(3e6, next(senders))(rate), least_pps=2e5)

    assert speed.forwarded_pps == pytest.approx(3e6, rel=0.1)


def test_the_best_of_three_trials_of_a_load_counts() -> None:
    """BMv2 loses a burst of packets in most trials, at any load."""
    switch, losses = switch_of(1e5), itertools.cycle((0.05, 0.02, 0.008))

    def attempt(rate_pps: float) -> Trial:
        trial = switch(rate_pps)
        return replace(trial, lost=max(trial.lost, next(losses)))

    assert search(attempt).forwarded_pps == pytest.approx(1e5, rel=0.1)


def test_bmv2_is_told_the_same_entities() -> None:
    graph = build("leafspine,leaves=1,spines=1,hosts=2")

    lines = bench_pps.commands(build_path("forward"), list(forwarding_entities(graph)["s0"]))

    assert all(line.startswith(("table_add ", "table_set_default ")) for line in lines)
    assert len(lines) >= 2


@pytest.mark.live
def test_the_sender_has_frames_cut_that_are_whole_and_differ_in_identification() -> None:
    frame = sized_frame(build("leafspine,leaves=1,spines=1,hosts=2"), "h0", "h1", 300)
    with VethPairs() as wires, socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as switch:
        switch.bind((wires.interfaces[0], ETHERTYPE_IPV4))
        switch.settimeout(5.0)
        sent = wires.ends[0].ask("send", frame=frame.hex(), rate_pps=1e5, duration_s=0.001)[0]
        frames = [switch.recv(1 << 16) for _ in range(int(sent))]

    assert len({each[IDENTIFICATION] for each in frames}) > 1
    for each in frames:
        assert each[: IDENTIFICATION.start] == frame[: IDENTIFICATION.start]
        assert each[UDP_PAYLOAD_AT:] == frame[UDP_PAYLOAD_AT:]
        ip, udp = each[IP_AT:UDP_SRC_AT], each[UDP_SRC_AT:]
        pseudo = each[IP_SRC_AT:UDP_SRC_AT] + bytes([0, PROTOCOL_UDP]) + len(udp).to_bytes(2)
        assert is_summed(ip)
        assert is_summed(pseudo + udp)


@pytest.mark.live
def test_packets_go_from_namespace_to_namespace(tmp_path: Path) -> None:
    graph = build("leafspine,leaves=1,spines=1,hosts=2")
    frame = sized_frame(graph, "h0", "h1", 300)
    entities = list(forwarding_entities(graph)["s0"])
    with (
        VethPairs() as wires,
        bench_pps.embedded(wires, build_path("forward"), entities, tmp_path) as pid,
    ):
        await_forwarding(wires, frame)
        trial = try_load(wires, frame, 500.0, seconds=0.1, pid=pid)

    assert trial.used_ns > 0
    assert 0 < trial.arrived_pps <= trial.offered_pps <= 510
    assert not any(Path("/sys/class/net", name).exists() for name in wires.interfaces)


@pytest.mark.parametrize("there", [True, False])
def test_the_table_says_how_bmv2_was_built(there: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether it checks its arrays makes its speed another one."""
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("shutil.which", lambda name: "/there")
    monkeypatch.setattr(bench_pps, "_has_bmv2", lambda: there)
    monkeypatch.setattr(bench_pps, "build_name", lambda binary: "a Release build")
    monkeypatch.setattr("ringleaf.switches.bmv2.build.build_name", lambda binary: "a Release build")
    speeds = {("embedded", 300): LiveSpeed(100.0, 100.0, 10.0)}
    if there:
        speeds["simple_switch", 300] = LiveSpeed(50.0, 50.0, 40.0)
    monkeypatch.setattr(bench_pps, "measure", lambda known, seconds: speeds)
    lines: list[str] = []

    figures = bench_pps.run(lines.append)

    assert ("# BMv2 is simple_switch, a Release build" in lines) is there
    assert figures.get("simple_switch build") == ("a Release build" if there else None)
    assert lines[-2 if there else -1].split()[-3::2] == (["2.0", "25.0%"] if there else ["-", "-"])


def test_processor_time_is_that_of_all_threads() -> None:
    before_ns = bench_pps.used_ns(os.getpid())
    used_ns: list[int] = []

    def work() -> None:
        start_s = time.thread_time()
        while time.thread_time() - start_s < 0.05:
            pass
        used_ns.append(bench_pps.used_ns(os.getpid()) - before_ns)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()

    assert used_ns[0] >= 0.05e9


def test_the_time_for_a_packet_is_that_of_the_most_that_is_forwarded() -> None:
    """As if packets took longer the more of them come; the last load that is tried is lossy."""
    switch = switch_of(1.1e5)
    trials: list[Trial] = []

    def attempt(rate_pps: float) -> Trial:
        trials.append(replace(switch(rate_pps), used_ns=rate_pps))
        return trials[-1]

    speed = search(attempt)

    assert not trials[-1].is_fine
    assert speed.used_ns == max(each.used_ns for each in trials if each.is_fine)
