"""A job of votes: SwitchML's, with a bit for each element."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import networkx as nx
import numpy as np

import ringleaf.ina.switchml.worker as worker
from ringleaf.core.arena import Arena, Store
from ringleaf.core.tensors import ElementType
from ringleaf.errors import ConfigError
from ringleaf.ina.jobs import WorkersJob
from ringleaf.ina.switchml.job import SwitchMLVariant, join_as
from ringleaf.ina.systems import JobRequest
from ringleaf.ina.vote.control import entities
from ringleaf.ina.vote.wire import FIRST_UDP_PORT, PLANES, SIGNS, WORDS

KIND = SwitchMLVariant(
    "vote",
    worker,
    worker.begin_tensor,
    first_port=FIRST_UDP_PORT,
    fraction_bits=0,  # no exponents to agree on
    elements=SIGNS,
    sum_lanes=PLANES * WORDS,
    entities=entities,
)


@dataclass(frozen=True, slots=True)
class VoteJob(WorkersJob):
    """One job of votes, which takes signs only."""

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
        """Vote on a rank's memory in place; return the worker that reports `tag` (b) when done.

        Raises:
            ConfigError: If elements are not +1 and -1, as float32.
            ProtocolError: If too many tensors are under way.
        """
        if dtype != np.dtype(np.float32):
            raise ConfigError(f"vote: elements must be float32, got {dtype}; take algo=switchml")
        values = arena.memory[address : address + 4 * elements].view(np.float32)
        strange = values[np.abs(values) != 1]
        if strange.size:
            raise ConfigError(
                f"vote: elements must be +1 and -1, got {float(strange[0])!r}; take "
                "compress=signsgd, or algo=switchml"
            )
        return WorkersJob.start(self, arena, rank, address, elements, tag, dtype, now_ps, priority)


def join(graph: nx.Graph[str], store: Store, request: JobRequest) -> VoteJob:
    """Make a job, over the tree of least depth; it needs no servers.

    Raises:
        ConfigError: If it does not fit the switches.
    """
    job = join_as(KIND, graph, store, replace(request, lanes=WORDS))
    return VoteJob(**{each.name: getattr(job, each.name) for each in fields(job)})
