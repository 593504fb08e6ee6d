"""The description of a whole network, checked: nothing that could fail later is let through."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from math import prod

from ringleaf.core.units import format_count
from ringleaf.errors import ConfigError, TopologyError, choose
from ringleaf.topologies.files.attributes import (
    HOST,
    LAYOUTS,
    MOST_NODES,
    MOST_PORTS,
    OF_FILE,
    ROUTINGS,
    check_names,
    read_sizes,
)
from ringleaf.topologies.files.cables import read_cables
from ringleaf.topologies.files.description import Cable, Description, FileNode
from ringleaf.topologies.files.foreign import translate
from ringleaf.topologies.files.maps import MOST_SHOWN, with_hosts
from ringleaf.topologies.files.nodes import read_nodes
from ringleaf.topologies.files.numbering import with_addresses, with_ports
from ringleaf.topologies.files.rows import NetworkRows, with_repeats_joined

MOST_LINKS = 100_000
LAST_HOST_PORT = 254  # which is the last byte of a host's address


def describe(rows: NetworkRows, source: str) -> Description:
    """Return the network that rows describe.

    Args:
        rows: From a format's `read`.
        source: The file's name, for messages.

    Raises:
        ConfigError: If an attribute is wrong; the message names the file, line and node or link.
        TopologyError: If the network is too large, not connected, or has a switch with too many
            ports.
    """
    where = f"topology {source}"
    rows = translate(with_hosts(with_repeats_joined(rows), where), where)
    for what, count, most in (
        ("nodes", len(rows.nodes), MOST_NODES),
        ("links", len(rows.links), MOST_LINKS),
    ):
        if count > most:
            raise TopologyError(f"{where}: at most {most} {what}, got {count}")
    cables, notes = read_cables(rows, where)
    hosts, switches = read_nodes(rows, cables, where)
    cables, ports = with_ports(cables, switches, where, is_strict=rows.strict)
    hosts, addresses = with_addresses(hosts, rows.nodes, where, is_strict=rows.strict)
    about = rows.about.values
    place = f"{where} line {rows.about.line}"
    if rows.strict:
        check_names(about, OF_FILE, place)
    description = Description(
        source,
        hosts,
        switches,
        cables,
        read_sizes(about["hierarchy"], f"{place}: hierarchy") if "hierarchy" in about else (),
        choose(place, "routing", about.get("routing", ROUTINGS[0]), ROUTINGS),
        read_sizes(about["shape"], f"{place}: shape") if "shape" in about else (),
        choose(place, "layout", about["layout"], LAYOUTS) if "layout" in about else "",
        read_sizes(about["machine"], f"{place}: machine") if "machine" in about else (),
        read_sizes(about["grid"], f"{place}: grid") if "grid" in about else (),
        (
            *(*rows.notes, *notes, *ports.notes, *addresses.notes),
            *(*_own((*ports.taken, *addresses.taken)), *_guess(rows, hosts)),
            *(*_forwarding(rows, hosts, cables), *_names(hosts, switches)),
        ),
    )
    _check_connected(description, where)
    _check_ports(description, where)
    _check_whole(description, place)
    return description


def _own(names: Sequence[str]) -> Iterator[str]:
    """Yield a note on ports and addresses that are the file's, if there are any."""
    if names:
        yield f"{', '.join(names)}: the file's own"


def _names(hosts: Sequence[FileNode], switches: Sequence[FileNode]) -> Iterator[str]:
    """Yield a note if what the file calls a node is our name of another one."""
    servers = sum(each.is_server for each in hosts)
    ours = {f"h{rank}": each.label for rank, each in enumerate(hosts)}
    ours |= {f"s{number}": each.label for number, each in enumerate(switches, servers)}
    names = {*ours, *(f"s{number}" for number in range(servers))}
    first: dict[str, str] = {}
    for name, label in ours.items():
        if label != name and label in names:
            first.setdefault(name[0], f"{name} is the file's {label}")
    if first:
        shown = ", ".join(first.values())
        yield f"names in results are Ringleaf's, and in options the file's: {shown}"


def _guess(rows: NetworkRows, hosts: Sequence[FileNode]) -> Iterator[str]:
    """Yield a note if the file did not say which nodes are hosts."""
    if not any("role" in each.row.values for each in rows.nodes):
        shown = ", ".join(each.label for each in hosts[:MOST_SHOWN])
        more = ", ..." if len(hosts) > MOST_SHOWN else ""
        yield (
            f"no node has a role, so the {len(hosts)} with one link are hosts ({shown}{more}); "
            "hosts=each puts a host at every node"
        )


def _forwarding(
    rows: NetworkRows, hosts: Sequence[FileNode], cables: Sequence[Cable]
) -> Iterator[str]:
    """Yield a note if hosts that are no servers by the file have links to several switches."""
    role = {each.name: each.row.values.get("role") for each in rows.nodes}
    names = {each.name for each in hosts}
    beside = {
        end for each in cables for end in (each.a, each.b) if each.a in names and each.b in names
    }
    shown = [
        each.label
        for each in hosts
        if each.is_server and role[each.name] == HOST and each.name not in beside
    ]
    if shown:
        some = ", ".join(shown[:MOST_SHOWN]) + ", ..." * (len(shown) > MOST_SHOWN)
        verb = "has" if len(shown) == 1 else "have"
        yield (
            f"{format_count(len(shown), 'host')} {verb} several links, and may forward for others: "
            f"{some}"
        )


def _check_connected(description: Description, where: str) -> None:
    """Check that every node can be reached from the first host."""
    peers: dict[str, list[str]] = {
        each.name: [] for each in (*description.hosts, *description.switches)
    }
    for cable in description.cables:
        peers[cable.a].append(cable.b)
        peers[cable.b].append(cable.a)
    start = description.hosts[0].name
    met = [start]
    reached = {start}
    for name in met:  # it grows
        for peer in peers[name]:
            if peer not in reached:
                reached.add(peer)
                met.append(peer)
    for each in (*description.hosts, *description.switches):
        if each.name not in reached:
            raise TopologyError(
                f"{where} line {each.line}: node {each.name!r}: must be connected with "
                f"{start!r}, got no path between them"
            )


def _check_ports(description: Description, where: str) -> None:
    """Check the number of ports, and those of hosts; a server's own host is at port 1."""
    ports = Counter({each.name: 1 for each in description.hosts if each.is_server})
    plain = {each.name for each in description.hosts if not each.is_server}
    for cable in description.cables:
        ports.update((cable.a, cable.b))
        sides = ((cable.a, cable.b, cable.ports[1]), (cable.b, cable.a, cable.ports[0]))
        for host, switch, own in sides:
            number = own or ports[switch]
            if host in plain and number > LAST_HOST_PORT:
                raise TopologyError(
                    f"{where} line {cable.line}: node {switch!r}: hosts must be among its first "
                    f"{LAST_HOST_PORT} links, got {host!r} as number {number}"
                )
    for each in (*description.hosts, *description.switches):
        if ports[each.name] > MOST_PORTS:
            raise TopologyError(
                f"{where} line {each.line}: node {each.name!r}: at most {MOST_PORTS} links, "
                f"got {ports[each.name]}"
            )


def _check_whole(description: Description, place: str) -> None:
    """Check what a file says of the network as a whole."""
    hosts = len(description.hosts)
    if description.hierarchy and prod(description.hierarchy) != hosts:
        raise ConfigError(
            f"{place}: hierarchy: must multiply to {format_count(hosts, 'host')}, "
            f"got {_text(description.hierarchy)}"
        )
    if description.machine and (len(description.machine) != 2 or hosts % description.machine[0]):
        raise ConfigError(
            f"{place}: machine: must be a number of GPUs that divides "
            f"{format_count(hosts, 'host')}, and one of "
            f"tiers, got {_text(description.machine)}; write it like 8x4"
        )
    _check_grid(description, place)
    tiers = [each.tier is not None for each in description.switches]
    if any(tiers) and not all(tiers):
        missing = description.switches[tiers.index(False)].name
        raise ConfigError(f"{place}: all switches have a tier or none has, got none of {missing!r}")
    places = [each.pos is not None for each in (*description.hosts, *description.switches)]
    if description.layout and not all(places):
        raise ConfigError(
            f"{place}: layout: needs x and y of all nodes, got {description.layout!r}"
        )
    if description.routing == "dimension_order":
        _check_torus(description.hosts, description.cables, description.shape, place)
    elif description.routing not in ("", "shortest") and len(description.shape) != 2:
        raise ConfigError(
            f"{place}: shape: must be two numbers with routing={description.routing}, got "
            f"{_text(description.shape) or 'none'}; write it like 4x1"
        )


def _check_grid(description: Description, place: str) -> None:
    """Check that a grid has a place for each host, and that hosts have one each."""
    hosts = description.hosts
    if description.grid and prod(description.grid) != len(hosts):
        raise ConfigError(
            f"{place}: grid: must multiply to {format_count(len(hosts), 'host')}, got "
            f"{_text(description.grid)}"
        )
    places = [each.in_grid for each in hosts if each.in_grid is not None]
    if places and (not description.grid or sorted(places) != [*range(len(hosts))]):
        size = _text(description.grid) or "none"
        raise ConfigError(
            f"{place}: in_grid: all hosts must have places of their own in a grid, from 0 to "
            f"{len(hosts) - 1}, got {format_count(len({*places}), 'place')} and grid={size}"
        )


def _check_torus(
    hosts: Sequence[FileNode], cables: Iterable[Cable], shape: tuple[int, ...], place: str
) -> None:
    """Check that hosts are the servers of a torus, in the order of their ranks."""
    where = f"{place}: routing: dimension_order needs a torus of servers"
    if prod(shape) != len(hosts) or not shape:
        raise ConfigError(f"{where} with a shape of {len(hosts)}, got {_text(shape) or 'none'}")
    joined = {frozenset((cable.a, cable.b)) for cable in cables}
    for rank, host in enumerate(hosts):
        if not host.is_server:
            raise ConfigError(f"{where}, got the host {host.name!r}")
        stride = 1
        for size in shape:
            step = (rank // stride + 1) % size - rank // stride % size
            peer = hosts[rank + step * stride]
            if size > 1 and frozenset((host.name, peer.name)) not in joined:
                raise ConfigError(f"{where}, got no link from {host.name!r} to {peer.name!r}")
            stride *= size


def _text(sizes: Sequence[int]) -> str:
    return "x".join(map(str, sizes))
