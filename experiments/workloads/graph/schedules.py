"""Schedules of meetings: the algorithm of each collective, and messages as schedules of one row."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import networkx as nx

from ringleaf.collectives.algorithm import NOWHERE, Algorithm
from ringleaf.collectives.collective import Collective
from ringleaf.collectives.cost import AlphaBeta
from ringleaf.collectives.embedding import GridEmbedding
from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.collectives.schedule import Op, Schedule, Transfer, check
from ringleaf.collectives.synthesis.algorithm import about
from ringleaf.errors import ConfigError
from ringleaf.experiments.bounds.bounds import Bounds
from ringleaf.experiments.setup.cabling import Cabling
from ringleaf.experiments.setup.network import fold_hierarchy
from ringleaf.experiments.setup.placing import on_rings
from ringleaf.hosts.workload.graph import CalledCollective
from ringleaf.hosts.workload.matched import MatchedWork
from ringleaf.topologies.graph import hosts, index

if TYPE_CHECKING:
    from ringleaf.topologies.switching.plan import Circuits

Form = tuple[Hashable, ...]

ITEM_BYTES = 4
"""Bytes of an element: sizes are rounded up to whole ones, and nothing is shorter than one."""

COLLECTIVES = {
    CalledCollective.ALLREDUCE: Collective.ALLREDUCE,
    CalledCollective.BARRIER: Collective.ALLREDUCE,
    CalledCollective.REDUCE: Collective.REDUCE,
    CalledCollective.BROADCAST: Collective.BROADCAST,
    CalledCollective.ALL_GATHER: Collective.ALL_GATHER,
    CalledCollective.REDUCE_SCATTER: Collective.REDUCE_SCATTER,
    CalledCollective.ALL_TO_ALL: Collective.ALL_TO_ALL,
}
"""The collective of each call that algorithms do; a barrier is an all-reduce of one element."""

USUAL = ("ring", "reduce", "broadcast", "allgather", "reducescatter", "alltoall")
"""The algorithm of each collective that has no other."""


def elements_of(meeting: MatchedWork) -> int:
    """Return the elements of each rank's tensor in a meeting.

    An all-gather's tensor has the parts of all ranks, of which each brings in one; likewise that
    of a gather, and of a scatter, whose root brings in all.
    """
    spread = meeting.call in (CalledCollective.ALL_GATHER, CalledCollective.GATHER)
    return max(-(-meeting.size_bytes * (len(meeting.ranks) if spread else 1) // ITEM_BYTES), 1)


class Scheduling:
    """Makes the schedules of meetings on a topology.

    Args:
        graph: The topology.
        algos: Names of algorithms, one for each collective at most.
        at: The host of each rank; default: in their order.
        circuits: The circuits that are up all the time, whose rings groups of ranks may have.
    """

    def __init__(
        self,
        graph: nx.Graph[str],
        algos: Sequence[str],
        at: Sequence[str] | None = None,
        circuits: Circuits | None = None,
    ) -> None:
        self._graph = graph
        self._hosts = list(at or hosts(graph))
        self._circuits = circuits
        self._embeddings: dict[tuple[int, ...], GridEmbedding] = {}
        self._cablings: dict[tuple[int, ...], Cabling] = {}
        self._algorithms: dict[Collective, Algorithm] = {
            ALGORITHMS[name].collective: ALGORITHMS[name] for name in (*USUAL, *algos)
        }

    @cached_property
    def _fabric(self) -> AlphaBeta:
        return Bounds(self._graph).fabric

    def _cabling(self, ranks: tuple[int, ...]) -> Cabling:
        """Return what finds the wires between some ranks, if they are wanted."""
        if ranks not in self._cablings:
            members = [self._hosts[rank] for rank in ranks]
            self._cablings[ranks] = Cabling(self._graph, members)
        return self._cablings[ranks]

    @cached_property
    def _rack_of(self) -> list[int]:
        """The rack of each rank."""
        from ringleaf.topologies.switching.ways import CircuitWays

        of_host = CircuitWays(self._graph).racks_of_hosts(self._graph)
        return [of_host[index(host)] for host in self._hosts]

    def _embedding(self, ranks: Sequence[int]) -> GridEmbedding:
        if self._circuits is None:
            return NOWHERE
        members = tuple(ranks)
        if members not in self._embeddings:
            racks = [self._rack_of[rank] for rank in members]
            self._embeddings[members] = on_rings(racks, self._circuits)
        return self._embeddings[members]

    def form(self, meeting: MatchedWork) -> Form:
        """Return all that the schedule of a meeting depends on, besides its elements."""
        return meeting.call, len(meeting.ranks), meeting.root, self._embedding(meeting.ranks)

    def algorithm(self, call: CalledCollective | None) -> Algorithm | None:
        """Return the algorithm of a call; None: its messages go straight to their receivers."""
        if call is None or call not in COLLECTIVES:
            return None
        return self._algorithms[COLLECTIVES[call]]

    def schedule(self, meeting: MatchedWork, elements: int) -> Schedule:
        """Return the schedule of a meeting.

        Raises:
            ConfigError: If the algorithm needs servers, which a graph has no place for.
        """
        ranks, algorithm = len(meeting.ranks), self.algorithm(meeting.call)
        if algorithm is None:
            schedule = _direct(meeting.call, ranks, meeting.root)
        else:
            schedule = algorithm.build(
                ranks,
                size_bytes=about(algorithm.name, elements * ITEM_BYTES),
                hierarchy=fold_hierarchy(self._graph.graph["hierarchy"], ranks),
                root=meeting.root,
                fabric=self._fabric,
                embedding=self._embedding(meeting.ranks),
                network=self._cabling(tuple(meeting.ranks)),
            )
        if schedule.servers:
            raise ConfigError(
                f"algo: must do without servers, got {schedule.algorithm!r}; take ring"
            )
        check(schedule)
        return schedule


def _direct(call: CalledCollective | None, ranks: int, root: int) -> Schedule:
    """Return a message from the first of two ranks, or a gather or scatter by messages alone."""
    others = [rank for rank in range(ranks) if rank != root]
    if call is CalledCollective.GATHER:
        rows = [Transfer(0, rank, root, rank, Op.COPY) for rank in others]
        return Schedule(Collective.ALL_GATHER, "gather", ranks, ranks, rows, root=root)
    if call is CalledCollective.SCATTER:
        rows = [Transfer(0, root, rank, rank, Op.COPY) for rank in others]
        return Schedule(Collective.BROADCAST, "scatter", ranks, ranks, rows, root=root)
    assert call is None
    return Schedule(Collective.BROADCAST, "message", 2, 1, [Transfer(0, 0, 1, 0, Op.COPY)])
