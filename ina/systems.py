"""The interface of an in-network aggregation system to a network.

A network knows no system: it asks one for a P4 program, for the switches' entities, and for agents
on hosts, and hands each rank's tensors to its agent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import networkx as nx

from ringleaf.arena import Arena, Store
from ringleaf.hosts.agent import HostAgent

if TYPE_CHECKING:
    import torch  # the switches' process has none: it takes a second to load


@dataclass(frozen=True, slots=True)
class Share:
    """Part `index`, from 0, of `of` equal parts of the switches' resources.

    All parts together get `entries` at most, if that is not None.
    """

    index: int = 0
    of: int = 1
    entries: int | None = None

    def cut(self, available: int) -> tuple[int, int]:
        """Return the first entry, and the number of entries, of this part of a switch's entries."""
        entries = available if self.entries is None else min(available, self.entries)
        first, end = (entries * i // self.of for i in (self.index, self.index + 1))
        return first, end - first


@dataclass(frozen=True, slots=True)
class JobRequest:
    """A request to a system for a job.

    Args:
        number: The job's number, 1 to 255.
        members: The workers' hosts, in rank order.
        servers: Hosts that help: parameter servers, aggregators; may be members', too.
        share: Its share of the switches' resources, for systems that deal them out beforehand.
        ring: Completion ring that agents report to.
        lanes: Values in a full packet.
        slots: Packets in flight per worker; None: the system's choice, twice a path's capacity.
        rtt_ps: The longest round trip.
        ecmp: Whether flows are hashed to paths; if not, each host is reached by one path.
    """

    number: int
    members: Sequence[str]
    servers: Sequence[str]
    share: Share
    ring: int
    lanes: int
    slots: int | None
    rtt_ps: int
    ecmp: bool


class Aggregator(Protocol):
    """One job of one system on one network."""

    @property
    def entities(self) -> Mapping[str, Sequence[Any]]:
        """The P4Runtime entities of each switch, by the switch's name."""

    @property
    def agents(self) -> Sequence[HostAgent]:
        """Its agents, of workers and servers; a host may have several."""

    @property
    def window_bytes(self) -> int:
        """The most bytes that a worker has in flight; it takes tensors in the order of `start`."""

    def start(
        self,
        arena: Arena,
        rank: int,
        address: int,
        elements: int,
        tag: int,
        dtype: torch.dtype,
        now_ps: int,
        priority: int = 0,
    ) -> int:
        """Aggregate a rank's memory in place; return the agent that reports `tag` (b) when done.

        Its packets carry the priority as DSCP's class selector, 0 to 7, the most urgent.

        Raises:
            ConfigError: If the system can't add up this type.
        """

    def raise_priority(self, arena: Arena, rank: int, priority: int) -> None:
        """Send the rest of a rank's tensors under way with at least this priority."""


class System(Protocol):
    """An in-network aggregation system."""

    name: str
    last_comers: tuple[str, ...]  # fields that a sum takes from whichever packet completed it

    def program(self, lanes: int) -> str:
        """Return the name of its P4 program for packets of so many values.

        Raises:
            ConfigError: If there is none.
        """

    def join(self, graph: nx.Graph[str], store: Store, request: JobRequest) -> Aggregator:
        """Make a job.

        Raises:
            ConfigError: If it does not fit the switches.
        """

    def error_bound(self, tensors: Sequence[torch.Tensor], lanes: int) -> torch.Tensor:
        """Return how far each element of the result may be from the exact sum."""
