"""The in-network aggregation systems by name. A new one is a folder and a line here.

A network knows no system: it asks one for a P4 program, for what the switches are to be told, and
for an agent per host, and hands each host's tensors to its agent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, Protocol

import networkx as nx
import torch

from ina import switchml
from ringleaf.arena import Arena, Store
from ringleaf.errors import choose


class HostProtocol(Protocol):
    """A module with an agent's three handlers, see `hosts.agent`."""

    receive: Callable[..., int]
    transmit: Callable[..., int]
    fire_timer: Callable[..., int]


class Aggregator(Protocol):
    """One job of one system on one network."""

    @property
    def entities(self) -> Mapping[str, Sequence[Any]]:
        """What to tell each switch: P4Runtime entities by name."""

    @property
    def workers(self) -> Sequence[int]:
        """The agent of each rank."""

    @property
    def protocol(self) -> HostProtocol:
        """The agents' handlers."""

    def start(
        self,
        arena: Arena,
        rank: int,
        address: int,
        elements: int,
        tag: int,
        dtype: torch.dtype,
        now_ps: int,
    ) -> None:
        """Aggregate a rank's memory in place; its agent reports `tag` (b) when done.

        Raises:
            ConfigError: If the system can't add up this type.
        """


class System(Protocol):
    """An in-network aggregation system."""

    name: str
    layers: str  # the module with its packets' scapy layers; importing it binds them

    def program(self, lanes: int) -> str:
        """Name of its P4 program for packets of so many values.

        Raises:
            ConfigError: If there is none.
        """

    def join(
        self,
        graph: nx.Graph[str],
        store: Store,
        *,
        ring: int,
        lanes: int,
        slots: int | None,
        rtt_ps: int,
    ) -> Aggregator:
        """Make a job of all hosts of `graph`.

        Raises:
            ConfigError: If it does not fit the switches.
        """

    def error_bound(self, tensors: Sequence[torch.Tensor], lanes: int) -> torch.Tensor:
        """Return how far each element of the result may be from the exact sum."""


SYSTEMS: dict[str, System] = {system.name: system for system in (switchml.SYSTEM,)}


def load_layers() -> None:
    """Let scapy dissect what any of the systems sends."""
    for system in SYSTEMS.values():
        import_module(system.layers)


def find_system(name: str) -> System:
    """Return the system of that name.

    Raises:
        ConfigError: Naming the valid ones.
    """
    return SYSTEMS[choose("find_system", "system", name, SYSTEMS)]
