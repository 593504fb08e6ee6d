"""Least times of an experiment's collectives: an algorithm's on its routes, and any algorithm's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ringleaf.collectives.algorithm import Algorithm
from ringleaf.collectives.cost import AlphaBeta
from ringleaf.collectives.oracle import message_bytes
from ringleaf.collectives.schedule import Collective, Schedule, chunk_ranges
from ringleaf.collectives.sparse.stream import SPARSE_STREAM
from ringleaf.collectives.symmetric_rows import symmetry_of
from ringleaf.experiments.bounds.bounds import Bounds
from ringleaf.experiments.bounds.floor import Floor, MovedData, NonZeroBytes
from ringleaf.experiments.checking.data import RankInputs, whole
from ringleaf.experiments.spec.kinds import DTYPES
from ringleaf.experiments.workloads.collective.spec import CollectiveSpec
from ringleaf.ina.registry import find_system
from ringleaf.ina.systems import FORWARD
from ringleaf.topologies.routing import routes

if TYPE_CHECKING:
    import networkx as nx

    from ringleaf.networks.flow.classes import Classes


class CollectiveLimits:
    """The bounds and floors of one collective on a topology.

    Args:
        spec: The experiment.
        collective: The collective that it measures.
        graph: Its topology.
        ranks: The number of ranks.
    """

    def __init__(
        self, spec: CollectiveSpec, collective: Collective, graph: nx.Graph[str], ranks: int
    ) -> None:
        self._spec = spec
        self._collective = collective
        self._graph = graph
        self._ranks = ranks

    @property
    def fabric(self) -> AlphaBeta:
        """The fabric that schedules of this topology are built for."""
        return self._bounds.fabric

    @cached_property
    def _bounds(self) -> Bounds:
        return self._bounds_on(self._graph)

    def _bounds_on(self, graph: nx.Graph[str]) -> Bounds:
        spec = self._spec
        return Bounds(
            graph,
            ecmp=spec.routes == "ecmp",
            mtu_bytes=spec.mtu_bytes,
            lanes=spec.lanes,
            servers=spec.servers,
            trees=spec.trees,
            cc=spec.cc,
        )

    @cached_property
    def _floor(self) -> Floor:
        return Floor(self._bounds.ways, self._ranks)

    @property
    def _item_bytes(self) -> int:
        return DTYPES[self._spec.dtype]

    def expected_ps(self, schedule: Schedule, size_bytes: int) -> int:
        """Return the time that a schedule of hosts is expected to take, by the cost model."""
        return self._bounds.expected_ps(schedule, size_bytes, self._item_bytes)

    def bound_ps(
        self,
        schedule: Schedule,
        inputs: RankInputs,
        slots: int | None,
        graph: nx.Graph[str] | None = None,
        hosts: Sequence[int] | None = None,
    ) -> int:
        """Return a schedule's least time.

        Args:
            schedule: The schedule that runs.
            inputs: The ranks' inputs.
            slots: Packets in flight of a worker of an aggregation system; None: there is none.
            graph: Another topology; None: the experiment's.
            hosts: The number of each node's host; None: nodes are all hosts, in their order.
        """
        bounds = self._bounds if graph is None else self._bounds_on(graph)
        return bounds.least_ps(
            schedule,
            inputs.elements * self._item_bytes,
            self._item_bytes,
            is_float=self._spec.dtype == "float32",
            moved_bytes=None if schedule.codec is None else message_bytes(schedule, whole(inputs)),
            inputs=whole(inputs) if inputs.is_kept else None,
            slots=slots,
            hosts=hosts,
        )

    def symmetric_ps(self, schedule: Schedule, inputs: RankInputs, classes: Classes) -> int:
        """Return the least time of a symmetric schedule among very many ranks, by classes."""
        from ringleaf.experiments.bounds import symmetric  # loads compiled code

        symmetry = symmetry_of(schedule.as_rows)
        assert symmetry is not None
        classes = replace(classes, symmetry=symmetry)  # they may be those of some steps
        stops = (stop for _, stop in chunk_ranges(inputs.elements, schedule.chunks))
        edges = np.array([0, *stops], np.int64)
        return symmetric.least_ps(
            *(classes, edges, self._item_bytes, self._spec.mtu_bytes, self._bounds.line_bytes)
        )

    def exchange_ps(self, inputs: RankInputs) -> int:
        """Return the least time of an exchange whose messages all have one size, in elements.

        It is that of `bound_ps`.
        """
        from ringleaf.experiments.bounds import exchange  # loads compiled code
        from ringleaf.topologies.pair_links import PairLinks

        mtu_bytes, line_bytes = self._spec.mtu_bytes, self._bounds.line_bytes
        size_bytes = inputs.elements // self._ranks * self._item_bytes
        first_bytes, last_bytes = min(size_bytes, mtu_bytes), (size_bytes - 1) % mtu_bytes + 1
        sizes = line_bytes(first_bytes), line_bytes(size_bytes), line_bytes(last_bytes)
        pairs = PairLinks(self._graph, routes(self._graph))
        return exchange.exchange_ps(pairs, self._ranks, sizes)

    def floor_ps(self, algorithm: Algorithm, schedule: Schedule, inputs: RankInputs) -> int:
        """Return the least time of any algorithm with the same adders: switches, or only hosts."""
        if self._is_coded(algorithm, schedule):
            return self.latency_ps  # an element may take less than a bit
        size_bytes = inputs.elements * self._item_bytes
        return self._floor.least_ps(
            MovedData(
                self._collective,
                inputs.elements,
                self._item_bytes,
                NonZeroBytes.dense(self._ranks, size_bytes)
                if not inputs.is_kept
                else NonZeroBytes.of(whole(inputs)),
                hosts_add=self._hosts_add(algorithm),
                root=schedule.root,
            )
        )

    @property
    def latency_ps(self) -> int:
        """The least time of the collective, if data take none."""
        return self._floor.least_ps(
            MovedData(self._collective, 0, 0, NonZeroBytes.dense(self._ranks, 0), hosts_add=False)
        )

    def _is_coded(self, algorithm: Algorithm, schedule: Schedule) -> bool:
        """Return whether an element of a message may be smaller than in the tensor."""
        if algorithm.in_network and find_system(algorithm.name).compress:
            return True
        return schedule.codec not in (None, SPARSE_STREAM)

    def _hosts_add(self, algorithm: Algorithm) -> bool:
        """Return whether only hosts add, as switches just forward."""
        if not algorithm.in_network:
            return True
        return find_system(algorithm.name).program(self._spec.lanes) == FORWARD
