"""Workers and switches agree on the packets: wire.py against the compiled programs."""

import json
from pathlib import Path
from typing import Any

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from start import start_tensor

from ringleaf.core.arena import Store
from ringleaf.core.packets import make_pool, read_packet
from ringleaf.hosts.agent import make_ring
from ringleaf.ina.switchml import wire, worker
from ringleaf.ina.switchml.state import make_worker
from ringleaf.ina.switchml.worker import transmit
from ringleaf.ina.tensors import FLOAT32

BUILD = Path(__file__).resolve().parents[2] / "p4" / "build"
OFFSETS = {
    "message": wire.MESSAGE_AT,
    "job": wire.JOB_AT,
    "block": wire.BLOCK_AT,
    "version": wire.POOL_INDEX_AT,
    "exponent": wire.EXPONENT_AT,
}


def fields(lanes: int, header: str) -> dict[str, tuple[int, int]]:
    """Field -> (first bit, bits) of a header of the program for so many lanes."""
    program: dict[str, Any] = json.loads((BUILD / f"switchml-{lanes}.json").read_text())
    (found,) = (each for each in program["header_types"] if each["name"] == header)
    start = 0
    layout = {}
    for name, bits, _ in found["fields"]:
        layout[name] = (start, bits)
        start += bits
    return layout


@pytest.mark.parametrize("lanes", wire.SIZES)
def test_header_is_the_programs(lanes: int) -> None:
    layout = fields(lanes, "switchml_h")

    for name, offset in OFFSETS.items():
        assert layout[name][0] == 8 * (offset - wire.MESSAGE_AT)
    assert layout["size"] == (5, 3)
    assert layout["slot"] == (8 * (wire.POOL_INDEX_AT - wire.MESSAGE_AT) + 1, 15)
    assert sum(bits for _, bits in layout.values()) == 8 * wire.HEADER_BYTES
    assert [bits for _, bits in fields(lanes, "lanes_h").values()] == [32] * lanes


@pytest.mark.parametrize("lanes", wire.SIZES)
def test_parser_takes_the_ports_and_size_of_the_workers(lanes: int) -> None:
    program = json.loads((BUILD / f"switchml-{lanes}.json").read_text())
    (parser,) = program["parsers"]
    states = {state["name"]: state["transitions"][0] for state in parser["parse_states"]}

    assert int(states["udp_ports"]["value"], 16) == wire.FIRST_UDP_PORT
    assert int(states["udp_ports"]["mask"], 16) == 0xFFFF & -wire.UDP_PORTS
    assert int(states["switchml"]["value"], 16) == wire.SIZES[lanes]


def sent_by_worker(job: int, lanes: int) -> list[bytes]:
    """The first two packets of a worker without a network: exponent, then nothing more."""
    store = Store(4096)
    make_pool(store, size=8, head_bytes=1536, field_count=8, lane_count=8)
    ring = make_ring(store, 4)
    at = make_worker(
        store,
        host=0,
        ring=ring,
        job=job,
        workers=2,
        slots=1,
        lanes=lanes,
        mac=0x020000000001,
        address=0x0A000001,
        min_timeout_ps=1000,
    )
    store.register_memory(4096)
    store.arena.memory[:] = 0
    start_tensor(worker, store.arena, at, 0, 1000, FLOAT32, 7, 0)
    return [read_packet(store.arena, transmit(store.arena, at, 0, 0))]


def test_scapy_reads_a_workers_packet() -> None:
    (raw,) = sent_by_worker(job=17, lanes=64)
    packet = Ether(raw)

    assert packet[Ether].dst == "01:00:5e:3e:e0:11"
    assert (packet[IP].src, packet[IP].dst) == ("10.0.0.1", "239.190.224.17")
    assert (packet[UDP].sport, packet[UDP].dport) == (0xBEE1, 0xBEE1)
    assert packet[UDP].len == 8 + wire.HEADER_BYTES
    checksum = packet[IP].chksum
    del packet[IP].chksum
    assert Ether(bytes(packet))[IP].chksum == checksum
    # update, no lanes; job 17; block 0; version 0, slot 0; exponent 0 of zeros
    assert bytes(packet[UDP].payload).hex() == "17" + "11" + "00000000" + "0000" + "00" + "00"
