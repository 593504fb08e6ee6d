"""The nodes of a description: which are hosts, in rank order, and which of them forward."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from ringleaf.core.units import parse_rate
from ringleaf.errors import ConfigError, TopologyError, choose
from ringleaf.topologies.files.attributes import (
    ADDRESSES,
    HOST,
    HOSTS,
    MOST_NODES,
    OF_NODE,
    ROLES,
    SERVER,
    SWITCH,
    check_name,
    check_names,
    read_coordinate,
    read_delay,
    read_whole,
)
from ringleaf.topologies.files.description import Cable, FileNode
from ringleaf.topologies.files.rows import NetworkRows, NodeRow

MOST_TIERS = 20


def read_nodes(
    rows: NetworkRows, cables: Sequence[Cable], where: str
) -> tuple[tuple[FileNode, ...], tuple[FileNode, ...]]:
    """Return the hosts, in rank order, and the switches, in the order of the file.

    Raises:
        ConfigError: If an attribute is wrong; the message names the line and the node.
        TopologyError: If there are too few hosts, or two nodes of one name.
    """
    places = _places(rows.nodes, where)
    roles = _roles(rows.nodes, cables, places, where)
    hosts: list[tuple[NodeRow, FileNode]] = []
    switches = []
    for each in rows.nodes:
        if rows.strict:
            check_names(each.row.values, OF_NODE, places[each.name])
        role, place = roles[each.name], places[each.name]
        node = _read_node(each, role, place, is_strict=rows.strict)
        if node.is_host:
            hosts.append((each, node))
        else:
            switches.append(node)
    if len(hosts) < 2:
        remedy = "" if HOSTS in rows.about.values or _has_hosts(rows.nodes) else _remedy(where)
        raise TopologyError(f"{where}: must have two hosts at least, got {len(hosts)}{remedy}")
    return _in_rank_order(hosts, places), tuple(switches)


def _has_hosts(nodes: Sequence[NodeRow]) -> bool:
    return any(each.row.values.get("role") in (HOST, SERVER) for each in nodes)


def _remedy(where: str) -> str:
    return f"; for a host at every node, write {where.removeprefix('topology ')},{HOSTS}=each"


def _places(nodes: Sequence[NodeRow], where: str) -> dict[str, str]:
    """Return how messages about each node begin."""
    places: dict[str, str] = {}
    lines: dict[str, int] = {}
    for each in nodes:
        line = f"{where} line {each.row.line}: node"
        check_name(each.name, line)
        if each.name in places:
            raise TopologyError(
                f"{line} {each.name!r}: is there already, got another on line {lines[each.name]}"
            )
        places[each.name], lines[each.name] = f"{line} {each.name!r}", each.row.line
    return places


def _roles(
    nodes: Sequence[NodeRow], cables: Sequence[Cable], places: Mapping[str, str], where: str
) -> dict[str, str]:
    """Return each node's role; where none is given, nodes with one link are hosts.

    If only hosts are named, the others are switches, and the other way round. A host with several
    links, or one that is joined to a host, is a server.
    """
    file_roles = {
        each.name: choose(places[each.name], "role", each.row.values["role"], ROLES)
        for each in nodes
        if "role" in each.row.values
    }
    degree = Counter(end for cable in cables for end in (cable.a, cable.b))
    if not file_roles:
        others = {each.name: HOST if degree[each.name] == 1 else SWITCH for each in nodes}
    else:
        other = HOST if set(file_roles.values()) == {SWITCH} else SWITCH
        others = {each.name: other for each in nodes}
    roles = others | file_roles
    if nodes and not file_roles and HOST not in others.values():
        raise TopologyError(
            f"{where}: must say which nodes are hosts, got no role and no node with one link"
            f"{_remedy(where)}"
        )
    joined = {
        end
        for cable in cables
        for end in (cable.a, cable.b)
        if SWITCH not in (roles[cable.a], roles[cable.b])
    }
    forwards = {name for name in roles if degree[name] > 1 or name in joined}
    return {
        name: SERVER if role == HOST and name in forwards else role for name, role in roles.items()
    }


def _read_node(each: NodeRow, role: str, place: str, *, is_strict: bool) -> FileNode:
    values = each.row.values
    pos = None
    if ("x" in values) != ("y" in values):
        raise ConfigError(f"{place}: must have both x and y, got one")
    if "x" in values:
        pos = (
            read_coordinate(values["x"], f"{place}: x"),
            read_coordinate(values["y"], f"{place}: y"),
        )
    for name in ("inner_rate", "inner_delay"):
        if name in values and role != SERVER:
            raise ConfigError(f"{place}: only a server has {name}, got role {role!r}")
    if is_strict and role == SWITCH and (own := values.keys() & {*ADDRESSES}):
        raise ConfigError(f"{place}: only a host has {min(own)}, got role {role!r}")
    if "tier" in values and role != SWITCH:
        raise ConfigError(f"{place}: only a switch has a tier, got role {role!r}")
    if role == SWITCH and (own := values.keys() & {"rank", "in_grid"}):
        raise ConfigError(f"{place}: only a host has {min(own)}, got role {role!r}")
    return FileNode(
        each.name,
        each.row.line,
        is_host=role != SWITCH,
        is_server=role == SERVER,
        label=check_name(values.get("label", each.name), f"{place}: label"),
        kind=check_name(values["kind"], f"{place}: kind") if "kind" in values else "",
        tier=read_whole(values["tier"], f"{place}: tier", MOST_TIERS) if "tier" in values else None,
        pos=pos,
        inner_rate_bps=(
            parse_rate(values["inner_rate"], f"{place}: inner_rate")
            if "inner_rate" in values
            else None
        ),
        inner_delay_ps=(
            read_delay(values["inner_delay"], f"{place}: inner_delay")
            if "inner_delay" in values
            else None
        ),
        in_grid=(
            read_whole(values["in_grid"], f"{place}: in_grid", MOST_NODES - 1)
            if "in_grid" in values
            else None
        ),
    )


def _in_rank_order(
    hosts: Sequence[tuple[NodeRow, FileNode]], places: Mapping[str, str]
) -> tuple[FileNode, ...]:
    """Return the hosts by their ranks, or in the order of the file if none has one."""
    if not any("rank" in row.row.values for row, _ in hosts):
        return tuple(node for _, node in hosts)
    by_rank: dict[int, FileNode] = {}
    for row, node in hosts:
        place = f"{places[node.name]}: rank"
        if "rank" not in row.row.values:
            raise ConfigError(f"{place}: all hosts have one or none has, got none here")
        rank = read_whole(row.row.values["rank"], place, len(hosts) - 1)
        if rank in by_rank:
            raise ConfigError(f"{place}: {by_rank[rank].name!r} has it, too, got {rank}")
        by_rank[rank] = node
    return tuple(by_rank[rank] for rank in range(len(hosts)))
