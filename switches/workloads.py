"""What `bench.py` sends through our own programs: IPv4 packets to route, updates to add up."""

from __future__ import annotations

import random
import struct
from pathlib import Path
from typing import Any

import finsy as fy
import numpy as np

from ringleaf.headers import UDP_PAYLOAD_AT, write_udp
from switches.bench import Workload, make_switch
from switches.program import Program

PORTS = 8
SLOTS = 64  # per version, of the job that is measured
FLOWS = 256
BLOCK_AT = UDP_PAYLOAD_AT + 2  # in a SwitchML packet
UPDATE = 1
SIZES = {64: 1, 256: 3}  # how the SwitchML header says how many lanes follow


def udp_packet(source: int, destination: int, port: int, payload: bytes) -> bytes:
    """Return a UDP packet between two addresses, from port 50000."""
    head = np.zeros(UDP_PAYLOAD_AT, np.uint8)
    write_udp(head, (1, 2), (source, destination), (50000, port), len(payload))
    return head.tobytes() + payload


def forwarding(build: Path) -> Workload:
    """`forward.p4`: flows to eight networks, half of them over two equally good ports.

    Args:
        build: The folder with the compiled programs.
    """
    switch = make_switch(Program.load(build / "forward.json"), PORTS)
    switch.write(_routes())
    packets = [
        (1, udp_packet(0x0A010000 + i, 0x0A000009 + 256 * (i % PORTS), 4791, bytes(64)))
        for i in range(FLOWS)
    ]
    return Workload(switch, packets)


def _routes() -> list[Any]:
    def forward(port: int) -> Any:
        return fy.Action("forward", port=port, dmac=0x020000000000 + port)

    entities = []
    for i in range(PORTS):
        action = fy.Action("ecmp", base=0, count=2, salt=0x9E3779B1) if i % 2 else forward(i + 1)
        match = fy.Match(dst=(0x0A000000 + 256 * i, 24))
        entities.append(+fy.P4TableEntry("ipv4_lpm", match=match, action=action))
    for i in range(2):
        match = fy.Match(nexthop=i)
        entities.append(+fy.P4TableEntry("ecmp_nexthop", match=match, action=forward(3 + i)))
    return entities


def aggregation(build: Path, lanes: int, children: int = PORTS) -> Workload:
    """`switchml.p4` at the root: every child's update of every slot, results multicast.

    Args:
        build: The folder with the compiled programs.
        lanes: 64 or 256.
        children: Workers, each on a port of its own.
    """
    switch = make_switch(Program.load(build / f"switchml-{lanes}.json"), children)
    switch.write(_members(children))
    rng = random.Random(1)
    packets = []
    for block in range(2 * SLOTS):
        version, slot = divmod(block, SLOTS)
        header = struct.pack(
            ">BBIHBB", UPDATE << 4 | SIZES[lanes], 1, block, version << 15 | slot, 0, 0
        )
        for child in range(children):
            payload = header + rng.randbytes(4 * lanes)
            packets.append((child + 1, udp_packet(0x0A000001, 0x0A000002, 0xBEE0, payload)))
    return Workload(switch, packets, BLOCK_AT, 2 * SLOTS)


def _members(children: int) -> list[Any]:
    entities: list[Any] = [
        +fy.P4TableEntry(
            "members",
            match=fy.Match(job=1, ingress_port=child + 1),
            action=fy.Action(
                "from_child",
                child=1 << child,
                children=(1 << children) - 1,
                parent_port=0,
                group=1,
                base=0,
                slots=SLOTS,
            ),
        )
        for child in range(children)
    ]
    entities.append(+fy.P4MulticastGroupEntry(1, replicas=list(range(1, children + 1))))
    return entities
