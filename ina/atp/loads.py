"""The least bytes that ATP sends over each link."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import finsy as fy

from ringleaf.ina.atp.control import AGGREGATORS, GROUPS_PER_JOB, AtpJob, entities
from ringleaf.ina.atp.roster import Roster, make_roster
from ringleaf.ina.atp.wire import VALUES_AT
from ringleaf.ina.loads import Aggregation, Demand, Tree, blocks_of, frame_bytes
from ringleaf.topologies.graph import neighbors
from ringleaf.topologies.ways import Loads, Outlet, Pass, TopologyRoutes


@dataclass(frozen=True, slots=True)
class _Share:
    """The switches' configuration for one of ATP's parameter servers."""

    roster: Roster
    children: dict[str, list[str]]  # of the tree that delivers results


def demand(ways: TopologyRoutes, what: Aggregation) -> Demand:
    """Return ATP's demand.

    Gradients go to parameter servers, added up by two switches at most, but for those of workers
    for whom the server's switch has no bits. Results go by a tree.
    """
    packet_bytes = frame_bytes(VALUES_AT, what.lanes)
    loads, chain_ps = Loads(ways.links), 0
    servers = what.servers or what.members
    for number, share in enumerate(_shares(ways, what, servers)):
        blocks = len(range(number, blocks_of(what), len(servers)))
        if blocks:
            one_ps = _to_server(ways, what, servers[number], share, packet_bytes, blocks, loads)
            chain_ps = max(chain_ps, one_ps)
    return Demand(chain_ps, loads)


def _shares(ways: TopologyRoutes, what: Aggregation, servers: Sequence[int]) -> list[_Share]:
    """Return the configuration that the control plane gives switches, by server."""
    members, helpers = (
        tuple(ways.hosts[i] for i in numbers) for numbers in (what.members, servers)
    )
    job = AtpJob(1, members, helpers, AGGREGATORS[what.lanes], window=1, lanes=what.lanes)
    shares = [_Share(make_roster(ways.graph, members, helper), {}) for helper in helpers]
    for switch, rows in entities(ways.graph, job).items():
        peers = neighbors(ways.graph, switch)
        for row in rows:
            if isinstance(row, fy.P4MulticastGroupEntry):
                server = row.multicast_group_id // GROUPS_PER_JOB - 1
                shares[server].children[switch] = [peers[int(port)] for port in row.replicas]
    return shares


def _to_server(
    ways: TopologyRoutes,
    what: Aggregation,
    server: int,
    share: _Share,
    packet_bytes: int,
    blocks: int,
    loads: Loads,
) -> int:
    """Add the loads to and from one server; return the least time of one block."""
    host, first = ways.hosts[server], ways.access[server]
    size_bytes = blocks * packet_bytes
    tree = Tree(ways, first, share.children, packet_bytes)
    out_ps = ways.hop_ps(host, first, packet_bytes)
    in_ps = ways.hop_ps(first, host, packet_bytes)
    down_ps = out_ps + tree.down_ps[first]
    groups = _groups(ways, what, server, share, packet_bytes)
    up_ps = max(group.there_ps for group in groups) + in_ps
    for group in groups:
        for each in group.passes:
            loads.add(each.outlet, size_bytes, each.before_ps, each.after_ps + down_ps)
    at_last_ps = min(group.first_ps for group in groups)
    last_bytes = (1 + share.roster.alone) * size_bytes
    loads.add((first, (host,)), last_bytes, at_last_ps, ways.hop_ps(first, host) + down_ps)
    loads.add((host, (first,)), size_bytes, up_ps, ways.hop_ps(host, first) + tree.down_ps[first])
    tree.add_down(loads, size_bytes, up_ps + out_ps)
    return up_ps + down_ps


@dataclass(frozen=True, slots=True)
class _Group:
    """Workers whose gradients one switch adds up, on their way to a server's switch."""

    passes: list[Pass]  # each has to carry all blocks once
    first_ps: int  # until any of their values can be sent on by the server's switch
    there_ps: int  # until all of them can


def _groups(
    ways: TopologyRoutes, what: Aggregation, server: int, share: _Share, packet_bytes: int
) -> list[_Group]:
    """Group workers by the switch that adds before the server's own does; others are alone."""
    last = ways.access[server]
    by_adder: dict[str, list[tuple[list[Pass], list[Pass]]]] = {}
    adders = share.roster.adders.items()
    before = {n: switch for switch, each in adders if switch != last for n in each.workers}
    ways_there = ways.passes(what.members, server, packet_bytes)
    for number, passes in enumerate(ways_there):
        adder = before.get(number, last)
        at = next(i for i, each in enumerate(passes) if each.outlet[0] == adder)
        key = adder if adder != last else f"alone {number}"
        by_adder.setdefault(key, []).append((passes[:at], passes[at:]))
    return [_group(members) for members in by_adder.values()]


def _group(members: Sequence[tuple[list[Pass], list[Pass]]]) -> _Group:
    """Return a group of workers, given the passes of each one's packets before and after adding.

    A sum goes on like the packet that completed it, so only passes common to all are certain.
    """
    rests_ps = [tail[-1].before_ps - tail[0].before_ps for _, tail in members]
    rest_ps = min(rests_ps)
    # A worker's own way from there on may be longer than that of the sum.
    passes = [
        Pass(each.outlet, each.before_ps, each.after_ps - own_ps + rest_ps)
        for (before, _), own_ps in zip(members, rests_ps, strict=True)
        for each in before
    ]
    by_outlet: dict[Outlet, list[Pass]] = {}
    for _, tail in members:
        for each in tail[:-1]:  # the server's own link is everybody's
            by_outlet.setdefault(each.outlet, []).append(each)
    for outlet, alike in by_outlet.items():
        if len(alike) == len(members):
            before_ps, after_ps = min(a.before_ps for a in alike), min(a.after_ps for a in alike)
            passes.append(Pass(outlet, before_ps, after_ps))
    added_ps = max(tail[0].before_ps for _, tail in members)
    return _Group(passes, min(tail[-1].before_ps for _, tail in members), added_ps + rest_ps)
