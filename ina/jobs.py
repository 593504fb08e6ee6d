"""A job whose workers are agents that take one tensor after the other (`ina.tensors`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from hosts.agent import HostAgent
from ina.tensors import FLOAT32, INT32, MOST_WAITING
from ringleaf.arena import Arena
from ringleaf.errors import ConfigError, ProtocolError

DTYPES = {torch.float32: FLOAT32, torch.int32: INT32}


class StartTensor(Protocol):
    """A worker module's way in; False, and nothing is done, while too many tensors wait."""

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
    """

    system: str
    entities: Mapping[str, Sequence[Any]]
    agents: Sequence[HostAgent]
    start_tensor: StartTensor

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
                f"{self.system} rank {rank}: at most {MOST_WAITING} tensors wait, got one more"
            )
        return at
