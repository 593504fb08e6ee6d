"""Hosts, switches and links of a topology as namespaces, veth pairs and processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import networkx as nx

EMBEDDED = "embedded"
BMV2 = "bmv2"
SCALE = 1000
MTU_BYTES = 9000  # of the interfaces: what an IP packet may have


@dataclass(frozen=True, slots=True)
class Settings:
    """How switches and links behave.

    Args:
        switch: `embedded`, or `bmv2`.
        scale: Links have their rate divided by this. Delays are not scaled.
        loss: Probability that a packet is lost on a link; hosts see to their own packets.
        queue_bytes: Of each switch port.
        mtu_bytes: Of all interfaces, as IP counts: without the Ethernet header.
        seed: Of the switches' losses and random numbers.
        run_dir: Where logs are kept; None for a temporary folder that goes when all went well.
    """

    switch: str = EMBEDDED
    scale: int = SCALE
    loss: float = 0.0
    queue_bytes: int = 4 << 20
    mtu_bytes: int = MTU_BYTES
    seed: int = 1
    run_dir: Path | None = None


class Fabric:
    """A live network without agents: `with Fabric(graph, Settings(), program=...) as fabric:`.

    While it is open there is a namespace per host, with the addresses of `topologies.addresses`
    and permanent neighbours, and P4 switches that run `program`. Nothing of gRPC is ever used in
    this process, so that it may fork: a child of its own programs the switches.

    Args:
        graph: A topology.
        settings: How it is to be.
        program: BMv2 JSON.
        p4info: P4Info as text; by default beside it.
        entities: Switch -> what is written to it, as `forwarding_entities` returns it.

    Raises:
        ConfigError: If something that is needed is missing, naming all of it.
        BackendError: If a switch doesn't start, or refuses its program or entities.
    """

    def __init__(
        self,
        graph: nx.Graph[str],
        settings: Settings,
        *,
        program: Path,
        p4info: Path | None = None,
        entities: Mapping[str, Sequence[Any]],
    ) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        raise NotImplementedError

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        raise NotImplementedError

    @property
    def name(self) -> str:
        """What this network's interfaces and its state file begin with; unique on the machine."""
        raise NotImplementedError

    @property
    def run_dir(self) -> Path:
        """Where the switches' logs are."""
        raise NotImplementedError

    def namespace_pid(self, host: str) -> int:
        """A process in a host's network namespace: it is /proc/PID/ns/net."""
        raise NotImplementedError

    def interface(self, host: str) -> str:
        """The name that a host's only interface has in its namespace."""
        raise NotImplementedError

    def rate_bps(self, a: str, b: str) -> int:
        """The rate of the link that joins two nodes, scaled."""
        raise NotImplementedError

    def program(
        self,
        program: Path,
        p4info: Path | None = None,
        *,
        entities: Mapping[str, Sequence[Any]],
    ) -> None:
        """Give all switches a program and entities; tables are empty and registers zero before.

        The same program again resets them, too. Packets on their way may be lost.

        Raises:
            BackendError: If a switch refuses it, by name.
        """
        raise NotImplementedError

    def counters(self) -> dict[str, list[dict[str, int]]]:
        """Per switch, per port (from 1, in order): packets and bytes since the network started.

        `tx_packets`, `tx_bytes`, `rx_packets`, `rx_bytes` and `dropped` for all switches; embedded
        ones add `lost`, `queue_drops`, `peak_queue_bytes`, `cut` and `refused`.
        """
        raise NotImplementedError

    def cpu_s(self) -> float:
        """Seconds of the processor that the switches' processes have used so far."""
        raise NotImplementedError

    def check(self) -> None:
        """Notice switches that have ended.

        Raises:
            BackendError: Naming one, and its log.
        """
        raise NotImplementedError

    def watched(self) -> dict[int, str]:
        """Descriptors that become readable when a switch's process ends -> its name."""
        raise NotImplementedError
