"""Jobs of ATP, values for them, and what their packets say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from random import Random

import networkx as nx
import numpy as np
from lossy_network import DELAY_PS, Fate, Network
from scapy.layers.inet import IP
from scapy.layers.l2 import Ether
from test_switchml_network import floats

from ringleaf.core.headers import ECN_MARKED
from ringleaf.ina.atp.control import AtpJob
from ringleaf.ina.atp.wire import GRADIENT, MESSAGE_AT, RESEND, SEQUENCE_AT
from ringleaf.topologies.graph import hosts

ONE_RACK, TWO_RACKS, THREE_TIERS = (5,), (2, 3), (2, 2, 2)
SHAPES = [(2,), ONE_RACK, TWO_RACKS, (3, 2), THREE_TIERS]


def job_on(
    graph: nx.Graph[str],
    servers: int = 1,
    *,
    number: int = 1,
    aggregators: int = 64,
    window: int = 8,
    lanes: int = 64,
) -> AtpJob:
    """All hosts; the last ones are servers, or each has one if there are to be none."""
    names = hosts(graph)
    workers = names[: len(names) - servers]
    return AtpJob(
        number,
        tuple(workers),
        tuple(names[len(workers) :] or names),
        aggregators=aggregators,
        window=window,
        lanes=lanes,
    )


def wide(rng: Random, ranks: int, count: int) -> np.ndarray:
    """Some values that do not fit, and sums that saturate on the way."""
    return floats(rng, ranks, count) * np.float32(10.0 ** rng.randint(-2, 3))


def small(rng: Random, ranks: int, count: int) -> np.ndarray:
    """Values whose sums fit."""
    values = np.random.default_rng(rng.getrandbits(32)).uniform(-1, 1, (ranks, count))
    return values.astype(np.float32)


def message(packet: bytes) -> int:
    return packet[MESSAGE_AT] >> 4


def sequence(packet: bytes) -> int:
    return int.from_bytes(packet[SEQUENCE_AT : SEQUENCE_AT + 4], "big")


def free_aggregators(network: Network) -> bool:
    """Whether no switch keeps anything."""
    return not any(
        switch.read_register("Atp.aggregators.arrived", aggregator)
        for switch in network.switches.values()
        for aggregator in range(64)
    )


def lose(network_hops: list[tuple[int, str, str]]) -> Fate:
    """Lose what is listed (message, from, to), once per time that it is there."""
    left = Counter(network_hops)

    def fate(src: str, dst: str, packet: bytes) -> list[int]:
        key = (message(packet), src, dst)
        if left[key]:
            left[key] -= 1
            return []
        return [DELAY_PS]

    return fate


def slow(hops: Mapping[tuple[str, str], int]) -> Fate:
    """These links take so many times as long as others; they lose nothing, nor reorder."""

    def fate(src: str, dst: str, _packet: bytes) -> list[int]:
        return [DELAY_PS * hops.get((src, dst), 1)]

    return fate


def again_from(network: Network, host: str) -> list[bytes]:
    """Probes and resends of a host, as they left it."""
    return [
        packet
        for src, _, packet in network.hops
        if src == host and message(packet) == GRADIENT and packet[MESSAGE_AT] & RESEND
    ]


def with_mark(packet: bytes) -> bytes:
    """A packet that has met a long queue."""
    frame = Ether(packet)
    frame[IP].tos |= ECN_MARKED
    del frame[IP].chksum
    return bytes(frame)
