"""A job whose workers are agents that take one tensor after the other (`ina.tensors`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from hosts.agent import AGENT_WORDS, HostAgent
from ina.tensors import FLOAT32, INT32, MOST_TENSORS, raise_priority
from ringleaf.arena import Arena
from ringleaf.errors import ConfigError, ProtocolError

DTYPES = {torch.float32: FLOAT32, torch.int32: INT32}


class StartTensor(Protocol):
    """A worker module's way in; False, and nothing is done, while too many are under way."""

    def __call__(
        self,
        arena: Arena,
        at: int,
        source_at: int,
        target_at: int,
        count: int,
        dtype: int,
        tag: int,
        priority: int,
        now_ps: int,
        /,
    ) -> bool: ...


@dataclass(frozen=True, slots=True)
class WorkersJob:
    """One job of a system on one network: an `ina.systems.Aggregator`.

    Args:
        system: Its name, for errors.
        entities: What to tell each switch.
        agents: Workers in rank order, then the servers, if there are any.
        start_tensor: The workers'.
        window_bytes: The most that a worker has in flight.
        tensors_at: Where its tensors' words are among its own.
    """

    system: str
    entities: Mapping[str, Sequence[Any]]
    agents: Sequence[HostAgent]
    start_tensor: StartTensor
    window_bytes: int
    tensors_at: int

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
        """Aggregate a rank's memory in place; return the worker that reports `tag` (b) when done.

        Raises:
            ConfigError: If the system can't add up this type.
            ProtocolError: If too many tensors are under way.
        """
        if dtype not in DTYPES:
            names = " and ".join(str(each) for each in DTYPES)
            raise ConfigError(f"{self.system}: adds up {names}, got {dtype}")
        at = self.agents[rank].block
        accepted = self.start_tensor(
            arena, at, address, address, elements, DTYPES[dtype], tag, priority, now_ps
        )
        if not accepted:
            raise ProtocolError(
                f"{self.system} rank {rank}: at most {MOST_TENSORS} tensors may be under way, "
                "got one more"
            )
        return at

    def raise_priority(self, arena: Arena, rank: int, priority: int) -> None:
        """Send the rest of what a rank has under way with at least this priority."""
        raise_priority(arena, self.agents[rank].block + AGENT_WORDS + self.tensors_at, priority)
