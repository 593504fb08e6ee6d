"""All hosts of a network, without what lies between them and without a clock."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import networkx as nx
import torch

from collectives.schedule import Aggregate, Schedule, chunk_ranges
from hosts import rc
from hosts.agent import make_ring
from hosts.plan import Plan, plans
from hosts.rank import RankExecutor
from hosts.staging import staging_bytes
from ina.registry import Aggregator, HostProtocol
from networks.hosts.connections import Connections
from networks.hosts.memory import PAGE_BYTES, Memory, item_bytes
from networks.options import Options
from ringleaf.arena import Store
from ringleaf.errors import ConfigError
from topologies.graph import hosts

RING_ROWS = 1 << 16


class Endpoints:
    """Every host's agents, connections and registered memory, in one store.

    Args:
        graph: The topology.
        store: Where they live.
        options: How they behave.
        rtt_ps: The longest round trip.

    Raises:
        ConfigError: If the aggregation system does not fit the topology.
    """

    def __init__(
        self, graph: nx.Graph[str], store: Store, options: Options, *, rtt_ps: int
    ) -> None:
        self.ranks = len(hosts(graph))
        self.ring = make_ring(store, RING_ROWS)
        self.connections = Connections(graph, store, options, ring=self.ring, rtt_ps=rtt_ps)
        self.aggregator = self._join(graph, store, options, rtt_ps)
        self.memory = Memory(store)
        self._ahead_bytes = options.ahead_bytes or 2 * self.connections.window_bytes
        self._planned: tuple[Schedule, int, list[Plan]] | None = None

    def agents(self, rank: int) -> list[tuple[HostProtocol, int]]:
        """Return a host's agents: the handlers and the block of each."""
        found: list[tuple[HostProtocol, int]] = [(rc, self.connections.agents[rank])]
        if self.aggregator is not None:
            found.append((self.aggregator.protocol, self.aggregator.workers[rank]))
        return found

    def tensors(
        self, elements: int, dtype: torch.dtype = torch.float32, schedule: Schedule | None = None
    ) -> list[torch.Tensor]:
        """Return one uninitialised tensor per rank, in registered memory.

        Tensors that were given out before lose their memory to these. With the schedule that
        will run, there is room for what it needs besides, and nothing will have to be copied.
        """
        spare = 0
        if schedule is not None:
            parts = plans(schedule, elements)
            self._planned = (schedule, elements, parts)
            sizes = self._staging(parts, elements, schedule.chunks, dtype)
            spare = sum(size + PAGE_BYTES for size in sizes)
        return self.memory.tensors(self.ranks, elements, dtype, spare_bytes=spare)

    @contextmanager
    def executors(
        self, schedule: Schedule, tensors: list[torch.Tensor]
    ) -> Iterator[list[RankExecutor]]:
        """Connect the ranks that will talk, and yield each rank's executor.

        Args:
            schedule: For as many ranks as there are hosts.
            tensors: One per rank, of shape (elements,) and one type. Those that `tensors`
                gave are not copied.

        Raises:
            ConfigError: If schedule, tensors and hosts don't fit one another.
        """
        self._check(schedule, tensors)
        elements, dtype = tensors[0].numel(), tensors[0].dtype
        parts = self._take_plans(schedule, elements)
        for rank, plan in enumerate(parts):
            self.connections.connect(rank, [*plan.sends, *plan.receives])
        sizes = self._staging(parts, elements, schedule.chunks, dtype)
        with self.memory.registered(tensors, sizes) as (addresses, staging):
            yield [
                RankExecutor(
                    plan,
                    self.memory.view(addresses[rank], elements, dtype),
                    addresses[rank],
                    schedule.chunks,
                    staging=staging[rank],
                    view=self.memory.view,
                    ahead_bytes=self._ahead_bytes,
                )
                for rank, plan in enumerate(parts)
            ]

    def _join(
        self, graph: nx.Graph[str], store: Store, options: Options, rtt_ps: int
    ) -> Aggregator | None:
        if options.system is None:
            return None
        return options.system.join(
            graph,
            store,
            ring=self.ring,
            lanes=options.lanes,
            slots=options.slots,
            rtt_ps=rtt_ps,
        )

    def _take_plans(self, schedule: Schedule, elements: int) -> list[Plan]:
        """The ranks' plans, from `tensors` if it has just made them; executors use them up."""
        planned, self._planned = self._planned, None
        if planned is not None and planned[0] is schedule and planned[1] == elements:
            return planned[2]
        return plans(schedule, elements)

    def _staging(
        self, parts: list[Plan], elements: int, chunks: int, dtype: torch.dtype
    ) -> list[int]:
        """Bytes that each rank's executor needs for what has arrived too early."""
        item, ahead = item_bytes(dtype), self._ahead_bytes
        ranges = chunk_ranges(elements, chunks)
        return [staging_bytes(plan, ranges, item, ahead_bytes=ahead) for plan in parts]

    def _check(self, schedule: Schedule, tensors: list[torch.Tensor]) -> None:
        if schedule.ranks != self.ranks or len(tensors) != self.ranks:
            raise ConfigError(
                f"run: schedule and tensors must be for {self.ranks} ranks, "
                f"got {schedule.ranks} and {len(tensors)}"
            )
        kinds = sorted({f"{tuple(tensor.shape)} {tensor.dtype}" for tensor in tensors})
        if len(kinds) > 1 or tensors[0].dim() != 1:
            raise ConfigError(f"run: tensors must be alike and of one dimension, got {kinds}")
        if self.aggregator is None and any(isinstance(row, Aggregate) for row in schedule.rows):
            raise ConfigError(
                "run: the schedule aggregates in the network, got options without a system"
            )
