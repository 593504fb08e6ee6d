"""The systems of groups join the network: each has its share of switches' memory."""

from __future__ import annotations

from collections.abc import Sequence

import networkx as nx

from ringleaf.core.arena import Store
from ringleaf.core.pausing import Pausing
from ringleaf.core.units import PS_PER_S
from ringleaf.ina.allocation import OWN
from ringleaf.ina.systems import FORWARD, JobAggregator, JobRequest, ResourceShare
from ringleaf.networks.groups import Group
from ringleaf.networks.options import NetworkOptions
from ringleaf.topologies.graph import directions
from ringleaf.topologies.routing import most_links


def join_systems(
    graph: nx.Graph[str],
    store: Store,
    options: NetworkOptions,
    groups: Sequence[Group],
    *,
    ring: int,
    rtt_ps: int,
) -> dict[int, JobAggregator]:
    """Return the aggregators, by group; those of one program share the switches' memory.

    Args:
        graph: The topology.
        store: The store that holds the hosts.
        options: The options of the network.
        groups: The groups, some of which have systems.
        ring: The ring that agents report to.
        rtt_ps: The longest round trip.

    Raises:
        ConfigError: If a system does not fit the topology.
    """
    joined: dict[int, JobAggregator] = {}
    moves = options.allocator != OWN
    sharers = _sharers(groups, options)
    stretch = pause_stretch(graph, options.pfc)
    for place, group in enumerate(groups):
        if group.system is None:
            continue
        alike = sharers[place]
        moving = sum(_moves(groups[other]) for other in alike) if moves else 0
        has_moving = moves and group.system.moves
        request = JobRequest(
            number=group.number,
            members=group.hosts,
            servers=group.servers,
            share=ResourceShare(alike.index(place), len(alike), options.switch_entries, moving),
            ring=ring,
            lanes=options.lanes,
            slots=options.slots,
            rtt_ps=rtt_ps,
            quiet_ps=options.quiet_ps,
            stretch=stretch,
            moves=has_moving,
            rebuilds=options.reroute_ps is not None and group.system.rebuilds and not has_moving,
            ecmp=options.ecmp,
            congestion=options.ina_cc,
            trees=options.trees,
            earlier=[
                (other.number, other.hosts)
                for other in groups[:place]
                if other.system is group.system
            ],
        )
        joined[place] = group.system.join(graph, store, request)
        assert (joined[place].mover is not None) == request.moves, group.system.name
    return joined


def pause_stretch(graph: nx.Graph[str], pausing: Pausing | None) -> int:
    """Return how many times as long as at links' rates packets may take, since they are paused.

    A queue that is down to XON runs empty before its sender goes on, if XON is less than the link
    carries in a round trip. A link that stands still for that long has carried as much before, if
    its sender had it. So it may take twice as long, and packets wait so at each link of their way.
    """
    if pausing is None:
        return 1
    seconds = ((2 * sent.delay_ps / PS_PER_S, sent.rate_bps) for _, _, sent in directions(graph))
    most_bytes = max(round_trip_s * rate_bps / 8 for round_trip_s, rate_bps in seconds)
    return 1 if most_bytes <= pausing.xon_bytes else 1 + most_links(graph)


def _sharers(groups: Sequence[Group], options: NetworkOptions) -> dict[int, list[int]]:
    """Return the groups with which each group shares switches' memory, itself among them.

    They have the same program. If memory moves they are all that aggregate in switches, as
    jobs of different programs exchange parts then; those that keep theirs are the last.
    """
    programs = {
        place: group.system.program(options.lanes)
        for place, group in enumerate(groups)
        if group.system is not None
    }
    sharers = {}
    for place, mine in programs.items():
        alike = [other for other, program in programs.items() if program == mine]
        if options.allocator != OWN and mine != FORWARD:
            alike = [other for other, program in programs.items() if program != FORWARD]
            alike.sort(key=lambda other: not _moves(groups[other]))
        sharers[place] = alike
    return sharers


def _moves(group: Group) -> bool:
    return group.system is not None and group.system.moves
