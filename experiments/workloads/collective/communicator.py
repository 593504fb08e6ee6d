"""Communicators that shrink: when a host is lost for good, the others begin again without it.

It is what `MPI_Comm_shrink` of ULFM (Bland et al., IJHPCA 27(3), 2013) and `ncclCommShrink` are
for. All ranks still have their inputs, and what was under way is thrown away: a new communicator
has other queue pairs, and other aggregation trees. It begins on an idle network.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import networkx as nx

from ringleaf.collectives.embedding import GridEmbedding
from ringleaf.core.faults import NetworkFault
from ringleaf.core.units import exact_time, format_count
from ringleaf.errors import BackendError
from ringleaf.experiments.setup.cabling import Cabling
from ringleaf.experiments.setup.network import fold_hierarchy
from ringleaf.experiments.setup.placing import embedding_of
from ringleaf.ina.systems import System
from ringleaf.networks.groups import Group
from ringleaf.networks.outcome import RunResult
from ringleaf.networks.successive_runs import in_turn
from ringleaf.topologies.graph import hosts as all_hosts

LEAST_RANKS = 2
"""The fewest ranks that still have something to do."""


@dataclass(frozen=True)
class Communicator:
    """The hosts that do a collective together, from a time on.

    Args:
        graph: The topology.
        hosts: The hosts of the ranks, in their order.
        servers: Hosts that help.
        numbers: The numbers of these ranks in the first communicator.
        begins_ps: When it begins, after the start of the run.
        lost: The hosts that had a rank and were lost before.
    """

    graph: nx.Graph[str]
    hosts: tuple[str, ...]
    servers: tuple[str, ...]
    numbers: tuple[int, ...]
    begins_ps: int = 0
    lost: tuple[str, ...] = ()

    @classmethod
    def of_all(cls, graph: nx.Graph[str], servers: int) -> Communicator:
        """Return that of all hosts, of which the last `servers` are servers."""
        names = all_hosts(graph)
        ranks = len(names) - servers
        return cls(graph, tuple(names[:ranks]), tuple(names[ranks:]), tuple(range(ranks)))

    @property
    def nodes(self) -> tuple[str, ...]:
        """The hosts of its ranks, then its servers."""
        return self.hosts + self.servers

    @property
    def places(self) -> list[int]:
        """The number of each node's host, in the order of all hosts."""
        number = {host: place for place, host in enumerate(all_hosts(self.graph))}
        return [number[node] for node in self.nodes]

    @property
    def ranks(self) -> int:
        """The number of ranks."""
        return len(self.hosts)

    @cached_property
    def hierarchy(self) -> tuple[int, ...]:
        """The sizes of groups of ranks that are near one another."""
        sizes: tuple[int, ...] = self.graph.graph["hierarchy"]
        is_whole = self.ranks == len(all_hosts(self.graph))
        return sizes if is_whole else fold_hierarchy(sizes, self.ranks)

    @cached_property
    def embedding(self) -> GridEmbedding:
        """The places of ranks: cycles leave out who is lost, and there is no grid any more."""
        whole = embedding_of(self.graph, self.ranks + len(self.lost))
        if not self.lost:
            return whole
        rank = {number: place for place, number in enumerate(self.numbers)}
        return GridEmbedding(
            tuple(tuple(rank[each] for each in cycle if each in rank) for cycle in whole.cycles)
        )

    @cached_property
    def cabling(self) -> Cabling:
        """The wires between its hosts."""
        return Cabling(self.graph, self.hosts if self.lost else None)

    def group(self, system: System | None) -> Group:
        """Return the network's group of it, for an aggregation system if one has a part."""
        return Group(1, self.hosts, self.servers, system)

    def at_scale(self, factor: int) -> Communicator:
        """Return the same in a run that is so many times as slow."""
        return replace(self, begins_ps=self.begins_ps * factor)

    def faults(self, faults: Sequence[NetworkFault]) -> tuple[NetworkFault, ...]:
        """Return the faults as times count from its beginning on."""
        return tuple(each.sooner(self.begins_ps) for each in faults)


@dataclass(frozen=True, slots=True)
class Shrinking:
    """When ranks give up, and who goes on.

    Attributes:
        lost_ps: When hosts are lost for good, after the start of the run.
        shrink_ps: The time from a loss until the others have a communicator without that host.
    """

    lost_ps: Mapping[str, int]
    shrink_ps: int

    def until_ps(self, of: Communicator, *, served: bool) -> int | None:
        """Return when a communicator gives up, after its beginning; None: never.

        Args:
            of: The communicator.
            served: Whether its servers help.
        """
        nodes = of.nodes if served else of.hosts
        first = min((self.lost_ps[each] for each in nodes if each in self.lost_ps), default=None)
        return None if first is None else max(first + self.shrink_ps - of.begins_ps, 0)

    def without_lost(
        self, of: Communicator, *, where: str, root: int | None, served: bool
    ) -> Communicator:
        """Return the communicator of those that are left when one gives up.

        Args:
            of: The one that does.
            where: The algorithm, for errors.
            root: The rank without which there is no result; None: there is no such rank.
            served: Whether its servers help.

        Raises:
            BackendError: If none can go on.
        """
        after_ps = self.until_ps(of, served=served)
        assert after_ps is not None, "none that never gives up shrinks"
        begins_ps = of.begins_ps + after_ps
        gone = [each for each in of.hosts if self._is_lost(each, begins_ps)]
        left = [place for place, host in enumerate(of.hosts) if host not in gone]
        for server in of.servers if served else ():
            if self._is_lost(server, begins_ps):
                raise BackendError(
                    f"shrink: {where} needs its servers, got {server} lost; leave a server alone"
                )
        assert gone, "a communicator gives up as somebody is lost"
        if root is not None and of.hosts[root] in gone:
            raise BackendError(
                f"shrink: {where} needs its root, rank {root}, got its host {of.hosts[root]} lost; "
                "let another host fail"
            )
        if len(left) < LEAST_RANKS:
            least = format_count(LEAST_RANKS, "rank")
            raise BackendError(
                f"shrink: {where} needs {least}, got {len(left)} left at {exact_time(begins_ps)} "
                f"without {', '.join(gone)}; let fewer hosts fail"
            )
        return Communicator(
            of.graph,
            tuple(of.hosts[place] for place in left),
            of.servers,
            tuple(of.numbers[place] for place in left),
            begins_ps,
            (*of.lost, *gone),
        )

    def _is_lost(self, host: str, by_ps: int) -> bool:
        return host in self.lost_ps and self.lost_ps[host] <= by_ps


def joined(outcomes: Sequence[RunResult]) -> RunResult:
    """Return the result of all attempts; messages are noted of the last one alone."""
    *others, last = outcomes
    if not others:
        return last
    return in_turn([*(replace(each, notes=[]) for each in others), last], [0] * len(outcomes))
