"""Entries and random packets for forward.p4 and switchml.p4."""

from __future__ import annotations

import random
import struct
from typing import Any

import finsy as fy
from draws import PORTS, Packet, cut, edge, ones_sum


def route_entities(drop: str = "drop") -> list[Any]:
    def forward(port: int) -> Any:
        return fy.Action("forward", port=port, dmac=0x020000000000 + port)

    entities = [
        +fy.P4TableEntry("ipv4_lpm", match=fy.Match(dst=(0x0A000000 + i * 256, 24)), action=action)
        for i, action in enumerate(
            [
                forward(2),
                forward(3),
                fy.Action(drop),
                fy.Action("ecmp", base=16, count=4, salt=0x9E3779B1),
                fy.Action("ecmp", base=20, count=3, salt=0x85EBCA6B),
            ]
        )
    ]
    entities.append(
        +fy.P4TableEntry("ipv4_lpm", match=fy.Match(dst=(0x0A000000, 8)), action=forward(4))
    )
    for nexthop in range(16, 22):  # the last of the second group is missing
        match = fy.Match(nexthop=nexthop)
        entities.append(+fy.P4TableEntry("ecmp_nexthop", match=match, action=forward(nexthop - 13)))
    entities.append(
        ~fy.P4TableEntry(
            "ecn_threshold", is_default_action=True, action=fy.Action("mark_from", threshold=20)
        )
    )
    return entities


def routed_packet(rng: random.Random) -> Packet:
    """Return IPv4 over Ethernet to somewhere in 10/8, at times damaged."""
    destination = rng.choice([0x0A000000 + rng.randrange(6) * 256 + 9, rng.getrandbits(32)])
    protocol = rng.choice([17, 17, 6, 1])
    payload = rng.randbytes(8 + rng.randrange(40))
    first = 0x46 if rng.random() < 0.05 else 0x45
    fragment = rng.choice([0, 0, 0, 0x4000, 0x2001, 5])
    ttl = rng.choice([0, 1, 2, 64, 255])
    ip = struct.pack(
        ">BBHHHBBHII",
        *(first, rng.getrandbits(8), 20 + len(payload), rng.getrandbits(16), fragment),
        *(ttl, protocol, 0, 0x0A000001 + rng.randrange(99), destination),
    )
    ip = ip[:10] + struct.pack(">H", 0xFFFF ^ ones_sum(ip)) + ip[12:]
    kind = 0x86DD if rng.random() < 0.05 else 0x0800
    data = bytearray(rng.randbytes(12) + struct.pack(">H", kind) + ip + payload)
    if rng.random() < 0.1:
        data[rng.randrange(14, len(data))] ^= 1 << rng.randrange(8)
    return rng.randrange(1, PORTS + 1), cut(rng, bytes(data), 0.05)


SLOTS = 4
CHILDREN = 4  # on ports 1 to 4


def tree_entities() -> list[Any]:
    """Return entries of two jobs: 1 has its root here, 2 a parent on port 8."""
    entities = route_entities("forwarding.drop")
    common = {"children": (1 << CHILDREN) - 1, "slots": SLOTS, "group": 1}
    for job, parent in ((1, 0), (2, 8)):
        base = 2 * SLOTS * (job - 1)
        for child in range(CHILDREN):
            action = fy.Action(
                "from_child", child=1 << child, parent_port=parent, base=base, **common
            )
            match = fy.Match(job=job, ingress_port=child + 1)
            entities.append(+fy.P4TableEntry("members", match=match, action=action))
    match = fy.Match(job=2, ingress_port=8)
    action = fy.Action("from_parent", base=2 * SLOTS, **common)
    entities.append(+fy.P4TableEntry("members", match=match, action=action))
    entities.append(+fy.P4MulticastGroupEntry(1, replicas=list(range(1, CHILDREN + 1))))
    return entities


def aggregation_packet(rng: random.Random, lanes: int = 64) -> Packet:
    """Return an update or a result of a few blocks, in any order, or something else."""
    if rng.random() < 0.1:
        return routed_packet(rng)
    job = rng.choice([1, 1, 2, 2, 3])
    message = 2 if job == 2 and rng.random() < 0.3 else 1
    port = 8 if message == 2 else rng.randrange(1, CHILDREN + 1)
    block = rng.choice([0, 1, SLOTS, SLOTS + 1, 0xFFFFFFFC]) % (1 << 32)
    version, slot = (block // SLOTS) % 2, block % SLOTS
    full, other = (1, 3) if lanes == 64 else (3, 1)
    size = rng.choice([full, full, full, full, 7, other])
    data = struct.pack(
        ">BBIHBB", message << 4 | size, job, block, version << 15 | slot, rng.getrandbits(7), 0
    )
    if size == full:
        data += b"".join(edge(rng, 32).to_bytes(4, "big") for _ in range(lanes))
    udp = struct.pack(">HHHH", 50000, 0xBEE0 | rng.randrange(16), 8 + len(data), 0)
    ip = struct.pack(
        ">BBHHHBBHII", 0x45, 0, 28 + len(data), 0, 0, 64, 17, 0, 0x0A000001, 0x0A000009
    )
    ip = ip[:10] + struct.pack(">H", 0xFFFF ^ ones_sum(ip)) + ip[12:]
    frame = bytes(12) + b"\x08\x00" + ip + udp + data
    return port, cut(rng, frame, 0.02)
