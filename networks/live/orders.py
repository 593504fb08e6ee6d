"""Orders: what a coordinator tells hosts to do, and what they tell it, as messages of JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ringleaf.hosts.executor.build import Executors
from ringleaf.networks.endpoints.endpoints import Endpoints
from ringleaf.networks.endpoints.operation import CollectiveOperation, Combine


@dataclass(frozen=True, slots=True)
class Begin:
    """To a host: begin your node's part of an operation.

    Args:
        group: The group's place among the network's.
        channel: The channel, which is free.
        at: Address of its executors, which were made before hosts were forked.
        ranks: The number of ranks.
        tensors: By node, address in registered memory, which all processes share.
        staging: By node, address of memory for its buffers.
        priority: Priority of its packets.
        rate_bps: Rate of each host's messages; 0: as fast as possible.
        gain: Factor on the growth of windows.
        marks: Whether packets carry the priority.
        tells: Whether to tell when a message has left.
    """

    group: int
    channel: int
    at: int
    ranks: int
    tensors: list[int]
    staging: list[int]
    priority: int
    rate_bps: int
    gain: float
    marks: bool
    tells: bool

    @classmethod
    def of(cls, operation: CollectiveOperation) -> Begin:
        """Return the order to begin an operation."""
        return cls(
            operation.group,
            operation.channel,
            operation.at,
            operation.ranks,
            operation.addresses,
            [int(address) for address in operation.staging],
            operation.priority,
            operation.rate_bps,
            operation.gain,
            operation.marks,
            operation.is_heard,
        )

    def take_up(
        self, endpoints: Endpoints, known: Mapping[int, tuple[Executors, Combine]]
    ) -> CollectiveOperation:
        """Return the operation, with executors that are known by their address."""
        executors, combine = known[self.at]
        elements, dtype = executors.plans.elements, executors.dtype
        return endpoints.take_up(
            executors,
            [endpoints.memory.view(address, elements, dtype) for address in self.tensors],
            self.staging,
            ranks=self.ranks,
            group=self.group,
            channel=self.channel,
            priority=self.priority,
            rate_bps=self.rate_bps,
            gain=self.gain,
            marks=self.marks,
            combine=combine,
        )

    def message(self) -> dict[str, Any]:
        """Return it as a message."""
        return {"begin": _plain(self)}


@dataclass(frozen=True, slots=True)
class Raise:
    """To a host: send all that a group's agent has under way with at least this priority."""

    group: int
    priority: int

    def message(self) -> dict[str, Any]:
        """Return it as a message."""
        return {"raise": _plain(self)}


@dataclass(frozen=True, slots=True)
class Move:
    """To a host: a group, of which nothing is under way, has these entries from now on."""

    group: int
    first: int
    entries: int

    def message(self) -> dict[str, Any]:
        """Return it as a message."""
        return {"move": _plain(self)}


@dataclass(frozen=True, slots=True)
class PartDone:
    """From a host: its part of an operation is done; times since the common start."""

    group: int
    channel: int
    begin_ps: int  # when it began
    end_ps: int

    def earlier(self, by_ps: int) -> PartDone:
        """Return the same with earlier times."""
        return replace(self, begin_ps=self.begin_ps - by_ps, end_ps=self.end_ps - by_ps)

    def message(self) -> dict[str, Any]:
        """Return it as a message."""
        return {"done": _plain(self)}


@dataclass(frozen=True, slots=True)
class Left:
    """From a host: its message of an operation has left; the time since the common start."""

    group: int
    channel: int
    left_ps: int

    def earlier(self, by_ps: int) -> Left:
        """Return the same with an earlier time."""
        return replace(self, left_ps=self.left_ps - by_ps)

    def message(self) -> dict[str, Any]:
        """Return it as a message."""
        return {"left": _plain(self)}


Order = Begin | Raise | Move


def _plain(order: Order | PartDone | Left) -> dict[str, Any]:
    """Return its fields, which `asdict` would copy item by item."""
    return {name: getattr(order, name) for name in order.__slots__}
