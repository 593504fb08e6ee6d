"""One switch of each program, and packets to put through it, byte by byte."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw

from ringleaf.core.arena import Store
from ringleaf.core.packets import make_pool
from ringleaf.ina.atp import wire as atp_wire
from ringleaf.ina.switchml import wire
from ringleaf.switches.program import Program
from ringleaf.switches.switch import Switch

BUILD = Path(__file__).resolve().parents[2] / "p4" / "build"


@cache
def program(name: str) -> Program:
    return Program.load(BUILD / f"{name}.json")


def make_switch(name: str, ports: int, entities: Sequence[Any], *, seed: int = 0) -> Switch:
    code = program(name)
    store = Store()
    make_pool(
        store,
        size=1100,
        head_bytes=code.head_bytes,
        field_count=code.field_count,
        lane_count=code.lane_count,
    )
    switch = Switch(code, store, ports, seed=seed)
    switch.write(entities)
    return switch


def udp(**fields: Any) -> Packet:
    """A UDP packet from 10.0.0.1 to 10.0.1.1; `fields` are of IP, `sport` and `dport` of UDP."""
    ports = {name: fields.pop(name) for name in ("sport", "dport") if name in fields}
    addresses = {"src": "10.0.0.1", "dst": "10.0.1.1", "ttl": 64, "tos": 2} | fields
    ether = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
    return ether / IP(**addresses) / UDP(**ports, chksum=0)


def switchml(
    message: int,
    *,
    job: int = 3,
    block: int = 0,
    version: int = 0,
    slot: int = 0,
    exponent: int = 0,
    tree: int = 0,
    tos: int = 2,
    values: Sequence[int] | None = (),
    lanes: int = 64,
) -> bytes:
    """A SwitchML packet with zeros behind `values`; None: an exponent without lanes."""
    size = wire.SIZE_NONE if values is None else wire.SIZES[lanes]
    body = b"".join(
        number.to_bytes(width, "big")
        for number, width in (
            (message << 4 | size, 1),
            (job, 1),
            (block % 2**32, 4),
            (version << 15 | slot, 2),
            (exponent, 1),
            (tree, 1),
        )
    )
    if values is not None:
        padded = [*values, *[0] * (lanes - len(values))]
        body += b"".join((value % 2**32).to_bytes(4, "big") for value in padded)
    port = wire.udp_port(job)
    return bytes(udp(dst="239.190.224.3", tos=tos, sport=port, dport=port) / Raw(body))


def atp(
    message: int,
    *,
    values: Sequence[int] = (),
    flags: int = 0,
    job: int = 3,
    server: int = 0,
    sequence: int = 0,
    aggregator: int = 7,
    workers: int = 0,
    sender: int = 0,
    rack: int = 0,
    lanes: int = 64,
    dst: str = "10.0.1.1",
    tos: int = 2,
) -> bytes:
    """An ATP packet with zeros behind `values`."""
    body = b"".join(
        number.to_bytes(width, "big")
        for number, width in (
            (message << 4 | flags, 1),
            (job, 1),
            (server, 1),
            (atp_wire.SIZES[lanes], 1),
            (sequence, 4),
            (aggregator, 2),
            (atp_wire.NO_PROPOSAL, 2),
            (workers, 8),
            (sender, 1),
            (rack, 1),
        )
    )
    padded = [*values, *[0] * (lanes - len(values))]
    body += b"".join((value % 2**32).to_bytes(4, "big") for value in padded)
    is_gradient = message != atp_wire.PARAMETER
    port = (atp_wire.gradient_port if is_gradient else atp_wire.parameter_port)(job)
    return bytes(udp(dst=dst, tos=tos, sport=port, dport=port) / Raw(body))
