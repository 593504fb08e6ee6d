"""A job whose workers are agents that take one tensor after the other (`ringleaf.ina.tensors`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ringleaf.core.arena import Arena
from ringleaf.core.tensors import Array, ElementType
from ringleaf.errors import ConfigError, ProtocolError
from ringleaf.hosts.agent import AGENT_WORDS, HostAgent
from ringleaf.ina.holdings import Mover
from ringleaf.ina.rebuilding import Rebuilder
from ringleaf.ina.systems import AWAITED
from ringleaf.ina.tensors import (
    FLOAT32,
    INT32,
    MOST_TENSORS,
    open_tensors,
    post_tensor,
    raise_priority,
)

DTYPES = {np.dtype(np.float32): FLOAT32, np.dtype(np.int32): INT32}


@dataclass(frozen=True, slots=True)
class WorkersJob:
    """One job of a system on one network, as a `ringleaf.ina.systems.Aggregator`.

    Args:
        system: The system's name, for errors.
        entities: The P4Runtime entities of each switch.
        agents: Workers in rank order, then the servers, if there are any.
        begin_tensor: The workers' handler that is called with the row of a posted tensor.
        window_bytes: The most bytes that a worker has in flight.
        tensors_at: Offset of a worker's tensors' words among its own.
        check: Called with each rank's values; raises a ConfigError if they can't be added up.
        mover: Changes its part of the switches' memory; None: it keeps it.
        rebuilder: Builds its tree again while it runs; None: the tree stays.
        awaited: The reason why a rank waits that is not done, for people.
    """

    system: str
    entities: Mapping[str, Sequence[Any]]
    agents: Sequence[HostAgent]
    begin_tensor: Callable[[Arena, int, int, int], int]
    window_bytes: int
    tensors_at: int
    check: Callable[[Array], None] = lambda values: None
    mover: Mover | None = None
    rebuilder: Rebuilder | None = None
    awaited: str = AWAITED
    _tables: list[int] = field(default_factory=list)

    def start(
        self,
        arena: Arena,
        rank: int,
        address: int,
        elements: int,
        tag: int,
        dtype: ElementType,
        now_ps: int,
        priority: int = 0,
    ) -> int:
        """Aggregate a rank's memory in place; return the worker that reports `tag` (b) when done.

        Raises:
            ConfigError: If the system can't add up this type, or these values.
            ProtocolError: If too many tensors are under way.
        """
        if dtype not in DTYPES:
            names = " and ".join(str(each) for each in DTYPES)
            raise ConfigError(f"{self.system}: adds up {names}, got {dtype}")
        self.check(arena.memory[address : address + dtype.itemsize * elements].view(dtype))
        at = self.agents[rank].block
        row = post_tensor(
            open_tensors(arena, self._tensors_at(rank)),
            source_at=address,
            target_at=address,
            count=elements,
            dtype=DTYPES[dtype],
            tag=tag,
            priority=priority,
            lease=self._tables[rank] if self._tables else 0,
        )
        if row < 0:
            raise ProtocolError(
                f"{self.system} rank {rank}: at most {MOST_TENSORS} tensors may be under way, "
                "got one more"
            )
        self.begin_tensor(arena, at, row, now_ps)
        return at

    def lease(self, tables: Sequence[int]) -> None:
        """Have tensors to come in memory a segment at a time (`ringleaf.ina.leases`).

        Args:
            tables: Each rank's table; none: tensors are in memory as a whole.
        """
        self._tables[:] = tables

    def raise_priority(self, arena: Arena, rank: int, priority: int) -> None:
        """Send the rest of a rank's tensors under way with at least this priority."""
        raise_priority(open_tensors(arena, self._tensors_at(rank)), priority)

    def _tensors_at(self, rank: int) -> int:
        return self.agents[rank].block + AGENT_WORDS + self.tensors_at
