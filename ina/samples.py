"""Packets and entries for one switch, by which a system's P4 programs are shown and measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import networkx as nx
import numpy as np

from ringleaf.topologies.registry import build

Packet = tuple[int, bytes]
"""A packet: the port at which it arrives, and its bytes."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Packets for one switch of a network, and what the switch is told before.

    Args:
        graph: The network.
        switch: The switch's name.
        entities: Its P4Runtime entities, without those that forward, which every program gets.
        packets: The packets, in their order.
    """

    graph: nx.Graph[str]
    switch: str
    entities: list[Any]
    packets: list[Packet]


@dataclass(frozen=True, slots=True)
class Example(Sample):
    """A packet to follow through a program: the last one. The switch has already seen the others.

    Args:
        story: What there is to watch.
    """

    story: str


@dataclass(frozen=True, slots=True)
class SampleRound(Sample):
    """One round of packets to measure a program with: as many leave the switch as arrive.

    Args:
        number_at: Byte of each packet at which a big-endian 32-bit number is; -1: none.
        number_step: The number grows by this from round to round.
    """

    number_at: int = -1
    number_step: int = 0


def star(hosts: int) -> nx.Graph[str]:
    """Return a network of one switch that has hosts."""
    return build(f"leafspine,leaves=1,spines=1,hosts={hosts}")


def told_values(worker: int, lanes: int) -> bytes:
    """Return a worker's values for an example: 1, 2, 3... times 10 to the worker's number."""
    return ((np.arange(lanes) + 1) * 10**worker).astype(">u4").tobytes()


def drawn_values(workers: int, lanes: int) -> list[bytes]:
    """Return random values of each worker, the same ones every time."""
    values = np.random.default_rng(1).integers(-1000, 1000, (workers, lanes))
    return [row.astype(">i4").tobytes() for row in values]
