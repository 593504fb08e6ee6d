"""Racks that circuits join, with a core of packet switches or without one.

Each two racks have a link that may be set up as a circuit. At most `optical` of a rack's are up at
a time, each way, as a controller says (`ringleaf.topologies.circuits`). Without a controller all
are there, always.

Source:
    Farrington et al., "Helios: A Hybrid Electrical/Optical Switch Architecture for Modular Data
    Centers", SIGCOMM 2010; without a core, Wang et al., "TopoOpt: Co-optimizing Network Topology
    and Parallelization Strategy for Distributed Training Jobs", NSDI 2023.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations, product
from typing import TYPE_CHECKING

from ringleaf.errors import TopologyError
from ringleaf.topologies.circle import Circle
from ringleaf.topologies.family import Counts, Family, check_sizes, fill
from ringleaf.topologies.graph import Link, add_host, add_switch, connect, new_graph

if TYPE_CHECKING:
    import networkx as nx

MOST_RACKS = 128
"""Each two racks have a link of their own."""


def circuits(
    racks: int,
    hosts: int,
    optical: int,
    core: int = 1,
    *,
    link: Link,
    host_link: Link | None = None,
) -> nx.Graph[str]:
    """Join each two racks by a link that may be a circuit, and each rack to all core switches.

    With one host per rack and no core, a rack stands for a server that forwards. Its host's link is
    then as fast as its circuits together.

    Args:
        racks: Racks, >= 2.
        hosts: Hosts per rack, >= 1.
        optical: Circuits of a rack that are up at a time, each way; >= 1 and below `racks`.
        core: Core packet switches, >= 0.
        link: Links between switches.
        host_link: Links of hosts; as `link` if None.

    Raises:
        TopologyError: If a size is out of range.
    """
    name = _checked(racks, hosts, optical, core)
    graph = new_graph(
        name, (hosts, racks), layout="grid", uneven=True, irregular=True, optical=optical
    )
    if host_link is None:
        host_link = (
            replace(link, rate_bps=optical * link.rate_bps) if is_direct(hosts, core) else link
        )
    places = Circle(racks, racks * hosts)
    for rank in range(racks * hosts):
        add_host(graph, rank, places.host(rank))
    for rack in range(racks):
        add_switch(graph, rack, 0, f"rack {rack}", places.switch(rack))
    for number in range(core):
        add_switch(graph, racks + number, 1, f"core {number}", places.inner(number, core))
    for rank in range(racks * hosts):
        connect(graph, f"h{rank}", f"s{rank // hosts}", host_link)
    for rack, number in product(range(racks), range(core)):
        connect(graph, f"s{rack}", f"s{racks + number}", link)
    for rack, other in combinations(range(racks), 2):
        connect(graph, f"s{rack}", f"s{other}", replace(link, circuit=True))
    return graph


def is_direct(hosts: int, core: int) -> bool:
    """Return whether racks stand for servers that circuits join directly."""
    return hosts == 1 and core == 0


def _fit(hosts: int, fixed: Mapping[str, int]) -> dict[str, int]:
    sizes = fill(hosts, fixed, "racks", "hosts")
    return {**sizes, "racks": max(sizes["racks"], 2), "optical": 1, **fixed}


def _checked(racks: int, hosts: int, optical: int, core: int = 1) -> str:
    """Return the name of an instance, if there is one."""
    name = f"circuits,racks={racks},hosts={hosts},optical={optical},core={core}"
    check_sizes(name, 2, racks=racks)
    check_sizes(name, hosts=hosts, optical=optical)
    check_sizes(name, 0, core=core)
    if racks > MOST_RACKS:
        raise TopologyError(f"{name}: racks must be at most {MOST_RACKS}, got {racks}")
    if optical >= racks:
        raise TopologyError(f"{name}: optical must be below the racks, {racks}, got {optical}")
    return name


def _count(racks: int, hosts: int, optical: int, core: int = 1) -> Counts:
    _checked(racks, hosts, optical, core)
    links = racks * (hosts + core) + racks * (racks - 1) // 2
    return Counts(racks * hosts, racks + core, links, rack=hosts)


TOPOLOGY = Family(
    "racks joined by circuits, `optical` of each at a time, and by `core` packet switches",
    circuits,
    {"racks": 8, "hosts": 2, "optical": 1},
    _fit,
    _count,
    optional={"core": 1},
)
