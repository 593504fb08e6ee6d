"""Maps of routers, which have no hosts: `hosts=each` puts one at every node.

Such a host is a server: a switch for the node, and a host that no other node can be reached
through.
"""

from __future__ import annotations

from dataclasses import replace

from ringleaf.core.units import format_count
from ringleaf.errors import ConfigError, choose
from ringleaf.topologies.files.attributes import HOST, HOSTS, SERVER, SWITCH
from ringleaf.topologies.files.foreign_roles import role_name, role_of
from ringleaf.topologies.files.rows import FileRow, NetworkRows, NodeRow

EACH = "each"
HYPEREDGE = "hyperedge"
"""The attribute of the Topology Zoo's nodes that stand for a link with several ends."""

MOST_SHOWN = 5


def with_hosts(rows: NetworkRows, where: str) -> NetworkRows:
    """Return rows with the hosts that `hosts=each` asks for, if it does.

    The largest connected part of the network is taken. Each of its nodes is a host, but those
    that stand for a link with several ends.

    Raises:
        ConfigError: If `hosts` is something else, or a node says that it is a host.
    """
    if HOSTS not in rows.about.values:
        return rows
    choose(where, HOSTS, rows.about.values[HOSTS], (EACH,))
    role = "" if rows.strict else role_name(each.row.values for each in rows.nodes)
    for each in rows.nodes:
        own = each.row.values.get("role", "").strip().lower()
        if (role_of(role, each.row.values.get(role, "")) or own) in (HOST, SERVER):
            raise ConfigError(
                f"{where} line {each.row.line}: node {each.name!r}: is a host already, "
                f"got hosts={EACH}, which is for files without hosts"
            )
    part = _largest_part(rows)
    nodes = tuple(_with_role(each) for each in rows.nodes if each.name in part)
    links = tuple(each for each in rows.links if not {each.a, each.b}.isdisjoint(part))
    left = [each.name for each in rows.nodes if each.name not in part]
    notes = list(rows.notes)
    if left:
        shown = ", ".join(left[:MOST_SHOWN]) + (", ..." if len(left) > MOST_SHOWN else "")
        notes.append(
            f"left out: {len(left)} of {format_count(len(rows.nodes), 'node')}, {shown}: not "
            "connected"
        )
    return replace(rows, nodes=nodes, links=links, notes=tuple(notes))


def _with_role(node: NodeRow) -> NodeRow:
    is_link = node.row.values.get(HYPEREDGE, "") in ("1", "true", "True")
    role = SWITCH if is_link else SERVER
    return NodeRow(node.name, FileRow(node.row.line, {**node.row.values, "role": role}))


def _largest_part(rows: NetworkRows) -> set[str]:
    """Return the names in the largest connected part; of equal ones, the first in the file."""
    peers: dict[str, list[str]] = {each.name: [] for each in rows.nodes}
    for link in rows.links:
        peers.setdefault(link.a, []).append(link.b)  # an unknown end is refused later
        peers.setdefault(link.b, []).append(link.a)
    parts: list[set[str]] = []
    met: set[str] = set()
    for start in peers:
        if start in met:
            continue
        part, waiting = {start}, [start]
        while waiting:
            new = set(peers[waiting.pop()]) - part
            part |= new
            waiting += new
        met |= part
        parts.append(part)
    return max(parts, key=len, default=set())
