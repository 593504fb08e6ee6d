"""Networks in virtual time that carry the calls of ranks."""

from __future__ import annotations

import networkx as nx

from ringleaf.experiments.setup.network import common_options
from ringleaf.experiments.workloads.train.carrier import CollectiveCarrier, Teams
from ringleaf.experiments.workloads.train.hosting import Hosting
from ringleaf.ina.registry import find_system
from ringleaf.networks.groups import Group
from ringleaf.networks.virtual import VirtualNetwork
from ringleaf.topologies.graph import hosts

WORLD_NUMBER, FIRST_NUMBER = 1, 2


def make_carrier(hosting: Hosting) -> CollectiveCarrier:
    """Return what carries the calls of a fabric's ranks, in virtual time."""
    spec, graph = hosting.spec, hosting.graph
    options = common_options(spec)

    def build(teams: Teams) -> VirtualNetwork:
        return VirtualNetwork(graph, options, groups=make_groups(graph, teams), seed=spec.seed)

    return CollectiveCarrier(
        hosting.fabric,
        hosting.ways(),
        hosting,
        build=build,
        converse=hosting.server.converse,
        check=hosting.check,
        note=hosting.note,
    )


def make_groups(graph: nx.Graph[str], teams: Teams) -> list[Group]:
    """Return the groups of a network: all hosts, and those for which switches aggregate."""
    names = hosts(graph)
    return [
        Group(WORLD_NUMBER, tuple(names)),
        *(
            Group(number, tuple(names[rank] for rank in members), (), find_system(system))
            for number, (system, members) in enumerate(teams, start=FIRST_NUMBER)
        ),
    ]
