"""Packets by which systems' programs are shown and measured: as long as formats say, and whole."""

from __future__ import annotations

import struct

import pytest

from ringleaf.ina.registry import SYSTEMS
from ringleaf.ina.samples import Packet
from ringleaf.topologies.graph import neighbors

PAYLOADS = {
    "switchml-64": 10 + 256, "switchml-256": 10 + 1024, "panama-64": 10 + 256,
    "panama-256": 10 + 1024, "omnireduce-64": 14 + 256, "omnireduce-256": 14 + 1024,
    "vote": 10 + 96, "tern": 14 + 192, "netreduce-64": 12 + 256 + 4, "netreduce-256": 12 + 1024 + 4,
    "atp-64": 22 + 256, "atp-256": 22 + 1024, "a2tp-64": 22 + 256, "a2tp-256": 22 + 1024,
    "esa-64": 22 + 256, "esa-256": 22 + 1024,
}  # fmt: skip
"""Bytes behind UDP's header: the system's own, and values; NetReduce's are RoCEv2's."""


BEGINS = {
    "switchml-64": 0x11, "switchml-256": 0x13, "panama-64": 0x11, "panama-256": 0x13,
    "omnireduce-64": 0x11, "omnireduce-256": 0x13, "vote": 0x10, "tern": 0x12,
}  # fmt: skip
"""The first byte of SwitchML's header: an update, and the code of its words. Then comes job 1."""


def ones_sum(data: bytes) -> int:
    total: int = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def check(packet: Packet, payload: int, ports: int) -> None:
    in_port, data = packet
    assert 1 <= in_port <= ports
    assert len(data) == 42 + payload
    assert data[12:15] == b"\x08\x00\x45"
    assert int.from_bytes(data[16:18]) == 28 + payload
    assert int.from_bytes(data[38:40]) == 8 + payload
    assert ones_sum(data[14:34]) == 0xFFFF


@pytest.mark.parametrize("kind", ["example", "round"])
@pytest.mark.parametrize("name", sorted(PAYLOADS))
def test_samples_are_whole_frames(name: str, kind: str) -> None:
    makes = {
        program: make
        for system in SYSTEMS.shipped()
        for program, make in getattr(SYSTEMS[system], f"{kind}s")().items()
    }
    sample = makes[name]()
    ports = len(neighbors(sample.graph, sample.switch))
    assert sample.packets
    for packet in {(port, data) for port, data in sample.packets}:
        check(packet, PAYLOADS[name], ports)
        assert name not in BEGINS or packet[1][42:44] == bytes([BEGINS[name], 1])
        assert int.from_bytes(packet[1][18:20]) in (0, 1)  # IP's identification
    if kind == "round":
        own = int(sample.number_at)
        numbers = [int.from_bytes(data[own : own + 4]) for _, data in sample.packets]
        senders = 9 if name.startswith(("atp", "a2tp", "esa")) else 8  # workers, and ATP's server
        assert sorted(numbers) == sorted([*range(2 * 64)] * senders)  # two rounds of 64 slots
        assert sample.number_step == 2 * 64
        if senders == 9:  # a block's gradients are of workers 0 to 7, and its result is of nobody
            heads = [(int.from_bytes(data[54:62]), data[62]) for _, data in sample.packets]
            assert heads == [*((1 << worker, worker) for worker in range(8)), (1, 0)] * (2 * 64)
