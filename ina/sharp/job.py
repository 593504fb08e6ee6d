"""A job of SHARP: workers whose requests go up a tree, and others for hosts that add up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import networkx as nx

import ringleaf.ina.switchml.worker as worker
from ringleaf.core.arena import Arena, Store
from ringleaf.core.tensors import ElementType
from ringleaf.errors import ConfigError
from ringleaf.hosts.agent import HostAgent
from ringleaf.ina.atp.scaling import FRACTION_BITS
from ringleaf.ina.jobs import WorkersJob
from ringleaf.ina.netreduce.values import check_range
from ringleaf.ina.omnireduce import job as by_hosts
from ringleaf.ina.rebuilding import Rebuilder
from ringleaf.ina.sharp.trees import streaming
from ringleaf.ina.switchml.job import SwitchMLVariant, join_as
from ringleaf.ina.systems import JobRequest

MOST_BYTES = 1_073_741_792
"""The largest message of a streaming tree."""

LEAST_TRANSACTIONS = 2
"""Outstanding transactions of a group that does not stream."""


@dataclass(frozen=True, slots=True)
class Generation:
    """The limits of a generation of switches.

    Args:
        name: The system's name.
        streams: Streaming trees of the whole network.
        per_port: Whether a switch may be in a streaming tree per port, and not in one.
    """

    name: str
    streams: int
    per_port: bool


QUANTUM = Generation("sharp", 63, per_port=False)
QUANTUM_2 = Generation("sharp-quantum2", 511, per_port=True)


@dataclass(frozen=True, slots=True)
class SharpJob:
    """One job: `tree` takes what fits a transaction, or all if it may stream; `hosts` the rest.

    Args:
        tree: The job in the network.
        hosts: The job among the hosts; None: it may stream.
        lanes: Values of a transaction.
    """

    tree: WorkersJob
    hosts: WorkersJob | None
    lanes: int

    @property
    def entities(self) -> Mapping[str, Sequence[Any]]:
        """The P4Runtime entities of each switch, by the switch's name."""
        return self.tree.entities

    @property
    def agents(self) -> Sequence[HostAgent]:
        """All agents, those of the tree first."""
        return [*self.tree.agents, *(self.hosts.agents if self.hosts is not None else ())]

    @property
    def window_bytes(self) -> int:
        """The most bytes that a worker has in flight."""
        ours = self.hosts.window_bytes if self.hosts is not None else 0
        return max(self.tree.window_bytes, ours)

    @property
    def mover(self) -> None:
        """Its trees keep their part of the switches' memory."""

    @property
    def rebuilder(self) -> Rebuilder | None:
        """Builds its tree again."""
        return self.tree.rebuilder

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
        job = self.tree
        if self.hosts is not None and elements > self.lanes:
            job = self.hosts
        elif 4 * elements > MOST_BYTES:
            raise ConfigError(
                f"{job.system}: a message must have at most {MOST_BYTES} bytes, got {4 * elements}"
            )
        return job.start(arena, rank, address, elements, tag, dtype, now_ps, priority)

    def raise_priority(self, arena: Arena, rank: int, priority: int) -> None:
        """Send the rest of a rank's tensors under way with at least this priority."""
        self.tree.raise_priority(arena, rank, priority)
        if self.hosts is not None:
            self.hosts.raise_priority(arena, rank, priority)


def join(
    graph: nx.Graph[str], store: Store, request: JobRequest, generation: Generation = QUANTUM
) -> SharpJob:
    """Make a job, which may stream if no earlier one needs the same switches, or ports.

    Raises:
        ConfigError: If it does not fit the switches.
    """
    jobs = [*request.earlier, (request.number, request.members)]
    *_, may = streaming(graph, jobs, per_port=generation.per_port, most=generation.streams)
    kind = SwitchMLVariant(
        generation.name, worker, worker.begin_tensor, fraction_bits=FRACTION_BITS
    )
    few = replace(request, slots=min(request.slots or LEAST_TRANSACTIONS, LEAST_TRANSACTIONS))
    tree = join_as(kind, graph, store, request if may else few)
    tree = replace(
        tree, check=partial(check_range, workers=len(request.members), system=generation.name)
    )
    return SharpJob(tree, None if may else by_hosts.join(graph, store, request), request.lanes)
