"""Groups of hosts that run collectives together; several groups may share a network."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import networkx as nx

from ringleaf.errors import ConfigError
from ringleaf.ina.systems import System
from ringleaf.topologies.graph import hosts as all_hosts


@dataclass(frozen=True, slots=True)
class Group:
    """A communicator: node i of its schedules is on the i-th of its hosts, servers last.

    Args:
        number: 1 to 255. Groups of one number are one job's, and are counted together; that of a
            group with a system is its own.
        hosts: The hosts of its ranks, in their order.
        servers: Hosts that help: parameter servers and the like.
        system: The system that aggregates for it, if there is one.
    """

    number: int
    hosts: tuple[str, ...]
    servers: tuple[str, ...] = ()
    system: System | None = None

    @property
    def nodes(self) -> tuple[str, ...]:
        """The hosts of the group's ranks, then those of its servers."""
        return self.hosts + self.servers


def whole(graph: nx.Graph[str], system: System | None, servers: int) -> Group:
    """Return the group of all hosts, of which the last `servers` are servers."""
    names = all_hosts(graph)
    return Group(
        1, tuple(names[: len(names) - servers]), tuple(names[-servers:] if servers else ()), system
    )


def check_groups(graph: nx.Graph[str], groups: Sequence[Group]) -> None:
    """Check that groups can be told apart, and that their hosts exist.

    Raises:
        ConfigError: If not.
    """
    if not groups:
        raise ConfigError("groups: a network needs one at least, got none")
    numbers = Counter(group.number for group in groups)
    if any(group.system is not None and numbers[group.number] > 1 for group in groups):
        raise ConfigError(
            f"groups: numbers must differ where systems aggregate, got {list(numbers.elements())}"
        )
    known = set(all_hosts(graph))
    for group in groups:
        where = f"group {group.number}"
        if not group.hosts:
            raise ConfigError(f"{where}: needs one host at least, got none")
        if len(set(group.nodes)) < len(group.nodes):
            raise ConfigError(f"{where}: a host may be one node only, got {list(group.nodes)}")
        for name in group.nodes:
            if name not in known:
                raise ConfigError(f"{where}: hosts must be in the topology, got {name!r}")
