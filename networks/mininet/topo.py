"""A topology as Mininet's `Topo`: `Mininet(topo=GraphTopo(graph, ...), link=VethLink)`."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import networkx as nx
from mininet.node import Host
from mininet.topo import Topo

from ringleaf.errors import BackendError
from ringleaf.networks.mininet.links import MTU_BYTES, VethLink, line_of, run
from ringleaf.networks.mininet.preflight import shaping_disciplines
from ringleaf.networks.mininet.shaping import host_disciplines, unshaped
from ringleaf.topologies.addresses import common_bits, format_ipv4, format_mac, ipv4, mac
from ringleaf.topologies.graph import hosts, link, switches

PREFIX_BITS = 8
"""All hosts are neighbours, as nothing but P4 routes; they may have addresses of their own."""

Namer = Callable[[str, int], str | None]


class P4Host(Host):
    """A host that knows all other hosts' addresses, so that switches need no ARP."""

    def config(
        self, neighbours: Mapping[str, str] | None = None, *, shaped: bool = False, **params: Any
    ) -> dict[str, Any]:
        """Set up addresses, the other hosts' (IPv4 -> MAC), and the line of what programs send.

        Args:
            neighbours: The other hosts.
            shaped: Whether the kernel shapes what programs send, as the host's link asks.
            params: Mininet's own.
        """
        ipv6 = "/proc/sys/net/ipv6/conf/default/disable_ipv6"
        run(self, f"{{ ! test -e {ipv6} || echo 1 > {ipv6}; }} && ip link set dev lo up")
        name = self.defaultIntf().name
        rows = "".join(
            f"neighbour replace {ip} lladdr {address} dev {name} nud permanent\n"
            for ip, address in (neighbours or {}).items()
        )
        _batch(self, "ip", rows)
        if shaped:
            self._shape()
        return {}

    def _shape(self) -> None:
        there, line = shaping_disciplines(), line_of(self.defaultIntf())
        _warn(unshaped(line, there))
        commands = host_disciplines(line, there)
        if commands:
            _batch(self, "tc", "".join(f"{command}\n" for command in commands))


@cache
def _warn(text: str) -> None:
    """Write a warning, if there is one, once."""
    if text:
        sys.stderr.write(f"ringleaf: {text}\n")


def _batch(host: Any, program: str, lines: str) -> None:
    """Run many lines of `ip` or `tc` in a host's namespace, with one process for all of them."""
    done = subprocess.run(
        ["mnexec", "-a", str(host.pid), program, "-batch", "-"],
        input=lines,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise BackendError(f"{host.name}: {program}: {done.stderr.strip()}")


Programs = Path | Mapping[str, Path]
"""A program of all switches, or programs by switch's name, as BMv2 JSON."""


class GraphTopo(Topo):
    """Hosts, switches and links of a graph of `topologies`.

    Ports have the numbers of the graph; but a host's only port is Mininet's port 0.

    Args:
        graph: The topology.
        scale: Divisor of links' rates.
        loss: Loss probability of each switch port, per packet, where a link has none of its own.
        queue_bytes: Queue size of each switch port; likewise.
        discipline: Discipline of each switch port, in the form that
            `switches/engine/disciplines.py` reads.
        pfc: Priority flow control of each switch port, as `parse_pausing` reads it; "": none.
        mtu_bytes: MTU of all interfaces.
        program: Program of all switches, or of each by name, as BMv2 JSON.
        p4info: P4Info as text; by default the file beside the program.
        entities: Switch -> entities written to it.
        name_of: Node and port -> an interface's name; None for Mininet's own.
        switch_options: Options of all switches.
        shapes_hosts: Whether the kernel gives what hosts' programs send the rates, delays and
            losses of their links; agents of experiments see to that themselves.
    """

    def build(
        self,
        graph: nx.Graph[str],
        *,
        scale: int = 1,
        loss: float = 0.0,
        queue_bytes: int = 4 << 20,
        discipline: str = "strict",
        pfc: str = "",
        mtu_bytes: int = MTU_BYTES,
        program: Programs | None = None,
        p4info: Path | None = None,
        entities: Mapping[str, Sequence[Any]] | None = None,
        name_of: Namer = lambda node, port: None,
        switch_options: Mapping[str, Any] | None = None,
        shapes_hosts: bool = True,
    ) -> None:
        """Add the graph's nodes and links, when Mininet asks; the class describes the arguments."""
        self._graph = graph
        self._add_hosts(shaped=shapes_hosts)
        for switch in switches(graph):
            self.addSwitch(
                switch,
                program=program.get(switch) if isinstance(program, Mapping) else program,
                p4info=p4info,
                entities=(entities or {}).get(switch, ()),
                **(switch_options or {}),
            )
        for a, b, data in graph.edges(data=True):
            lines = [
                {
                    "rate_bps": max(1, sent.rate_bps // scale),
                    "delay_ps": sent.delay_ps,
                    "loss": sent.loss_or(loss),
                    "queue_bytes": sent.queue_bytes_or(queue_bytes),
                    "discipline": discipline,
                    "pfc": pfc,
                    "mtu_bytes": mtu_bytes,
                }
                for sent in (link(graph, a, b), link(graph, b, a))
            ]
            self._add_link(a, b, data["ports"], name_of, lines)

    def _add_hosts(self, *, shaped: bool) -> None:
        graph = self._graph
        addresses = {host: format_ipv4(ipv4(graph, host)) for host in hosts(graph)}
        macs = {host: format_mac(mac(graph, host, 1)) for host in hosts(graph)}
        bits = min(PREFIX_BITS, common_bits([ipv4(graph, host) for host in addresses]))
        for host, address in addresses.items():
            others = {addresses[other]: macs[other] for other in addresses if other != host}
            own = {"ip": f"{address}/{bits}", "neighbours": others, "shaped": shaped}
            self.addHost(host, cls=P4Host, **own)

    def _add_link(
        self,
        a: str,
        b: str,
        ports: Mapping[str, int],
        name_of: Namer,
        lines: Sequence[dict[str, Any]],
    ) -> None:
        """Add a link; `lines` has the options of its two interfaces, each for what it sends."""
        options: dict[str, Any] = {}
        for number, node in enumerate((a, b), start=1):
            port = self._mininet_port(node, ports[node])
            options[f"port{number}"] = port
            options[f"intfName{number}"] = name_of(node, port)
            options[f"params{number}"] = lines[number - 1]
            if self.isSwitch(node):
                continue  # switches' own addresses stay unknown, so that the kernel takes no frame
            ip = self.nodeInfo(node)["ip"]
            options[f"params{number}"] = {"ip": ip, **lines[number - 1]}
            options[f"addr{number}"] = format_mac(mac(self._graph, node, ports[node]))
        self.addLink(a, b, cls=VethLink, **options)

    def _mininet_port(self, node: str, port: int) -> int:
        return port if self.isSwitch(node) else port - 1
