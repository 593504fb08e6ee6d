"""Networks of machines: each host of any topology becomes a machine with several GPUs and NICs.

Every part of a machine that packets pass is a switch which runs the network's P4 program, as all
others do: a GPU with NVLinks (its host is inside it, like a server's), the NVSwitch, PCIe switches,
CPUs and NICs. All NVSwitch chips of a machine are one switch, as a transfer is spread over them.
Parts that no packet would ever pass are left out: CPUs where NVLinks join GPUs and NICs are reached
directly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ringleaf.topologies.graph import (
    Role,
    add_host,
    add_server,
    add_switch,
    connect,
    hosts,
    index,
    join_servers,
    kind,
    link,
    new_graph,
    switches,
)
from ringleaf.topologies.machine import Inside
from ringleaf.topologies.machine_places import InsidePlaces
from ringleaf.topologies.port_order import in_port_order
from ringleaf.topologies.wiring import links, parts, tiers

if TYPE_CHECKING:
    import networkx as nx


def with_machines(graph: nx.Graph[str], inside: Inside) -> nx.Graph[str]:
    """Return the network in which each host is a machine: its GPUs are the hosts, rank by rank.

    The link of a host to its switch is there once for each NIC; in a graph with the attribute
    `rails`, the next NIC's leads to the next switch. Switches of GPUs come first,
    then the other parts, machine by machine, then the switches of the network. Routes are shortest
    paths, also where the network had others.
    """
    return _Builder(graph, inside).build()


class _Builder:
    """The making of such a network, of `old`."""

    def __init__(self, old: nx.Graph[str], inside: Inside) -> None:
        self._old = old
        self._inside = inside
        self._tiers = tiers(inside)
        self._places = InsidePlaces(old, inside)
        self._new = new_graph(
            f"{old.name},{inside}",
            (inside.gpus, *old.graph["hierarchy"]),
            machine=(inside.gpus, len(self._tiers)),
            uneven=True,
            irregular=old.graph.get("irregular", False),
            layout=self._places.layout,
            frames=[tuple(map(self._places.moved, ends)) for ends in old.graph["frames"]],
        )
        self._name: dict[str, str] = {}  # of switches in `old` -> in the new network
        self._parts: list[dict[tuple[str, int], str]] = []  # by machine: their names
        self._count = inside.gpus * len(hosts(old)) if inside.has_nvlink else 0  # switches

    def build(self) -> nx.Graph[str]:
        """Return the new network: GPUs are added first, then other parts, then links."""
        for number, host in enumerate(hosts(self._old)):
            for gpu in range(self._inside.gpus):
                self._add_gpu(number, host, gpu)
        for number, host in enumerate(hosts(self._old)):
            self._add_parts(number, host)
        for switch in switches(self._old):
            self._add_switch(switch)
        for number in range(len(self._parts)):
            self._join_parts(number)
        for a, b in in_port_order(self._old):
            self._join_network(a, b)
        if self._inside.has_nvlink:
            join_servers(self._new, self._inside.nvlink(), None)
        return self._new

    def _add_gpu(self, number: int, host: str, gpu: int) -> None:
        rank, pos = number * self._inside.gpus + gpu, self._places.gpu(host, gpu)
        if self._inside.has_nvlink:
            order = self._inside.machine.order
            label = f"gpu {number}.{order[gpu] if order else gpu}"
            add_server(self._new, rank, label, pos, self._places.beside)
        else:
            add_host(self._new, rank, pos)

    def _add_parts(self, number: int, host: str) -> None:
        names = {}
        for part in parts(self._inside):
            label, tier = f"{part.kind} {number}.{part.number}", self._tiers.index(part.kind)
            pos = self._places.part(host, part)
            names[part.kind, part.number] = add_switch(self._new, self._count, tier, label, pos)
            self._count += 1
        self._parts.append(names)

    def _add_switch(self, old: str) -> None:
        data, tier = self._old.nodes[old], self._old.nodes[old]["tier"] + len(self._tiers)
        new = add_switch(self._new, self._count, tier, data["label"], self._places.of(old))
        what = kind(self._old, old)
        self._new.nodes[new]["kind"] = "router" if what == "server" else what
        if "rail" in data:
            self._new.nodes[new]["rail"] = tuple(map(self._places.moved, data["rail"]))
        self._name[old] = new
        self._count += 1

    def _join_parts(self, number: int) -> None:
        first, own = number * self._inside.gpus, "s" if self._inside.has_nvlink else "h"
        names = self._parts[number]
        for a, b, each in links(self._inside):
            start = f"{own}{first + a}" if isinstance(a, int) else names[a]
            end = f"{own}{first + b}" if isinstance(b, int) else names[b]
            connect(self._new, start, end, each)

    def _join_network(self, a: str, b: str) -> None:
        """Add a link of the network; one of a host once for each NIC."""
        if self._old.nodes[b]["role"] is Role.HOST:
            a, b = b, a
        there, back = link(self._old, a, b), link(self._old, b, a)
        if self._old.nodes[a]["role"] is Role.HOST:
            is_railed = "rails" in self._old.graph
            for nic in range(self._inside.nics):
                start = self._parts[index(a)]["nic", nic]
                end = f"s{index(b) + nic}" if is_railed else b
                connect(self._new, start, self._name[end], there, back=back)
            return
        start, end = self._name[a], self._name[b]
        connect(self._new, start, end, there, back=back)
        stubs = self._old.edges[a, b].get("stubs")
        if stubs is not None:
            self._new.edges[start, end]["stubs"] = {
                self._name[node]: self._places.stretched(by) for node, by in stubs.items()
            }
