"""Build the network of a spec: the topology with the hosts that take part, and its transport."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from functools import partial
from math import gcd
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import networkx as nx

from ringleaf.core.units import PS_PER_S
from ringleaf.experiments.programs.names import is_path
from ringleaf.experiments.records.slow_links import with_slow_links
from ringleaf.experiments.spec.choices import DCELL, FLOW, GOAT, SOLVED, UGAL, VALIANT
from ringleaf.experiments.spec.network import NetworkSpec
from ringleaf.topologies import registry
from ringleaf.topologies.delays import with_delays
from ringleaf.topologies.detours import with_detours
from ringleaf.topologies.graph import attachment, distances, switch_graph, with_links
from ringleaf.topologies.graph import hosts as all_hosts
from ringleaf.topologies.injection import divide_ports
from ringleaf.topologies.k_shortest import with_k_shortest
from ringleaf.topologies.routing import with_routing
from ringleaf.topologies.valiant import with_ugal, with_valiant

if TYPE_CHECKING:
    from ringleaf.collectives.schedule import Schedule
    from ringleaf.core.tensors import Array, ElementType
    from ringleaf.experiments.workloads.collective.spec import CollectiveSpec
    from ringleaf.networks.flow.network import FlowNetwork
    from ringleaf.networks.groups import Group
    from ringleaf.networks.options import Assigned, NetworkOptions
    from ringleaf.networks.outcome import RunResult
    from ringleaf.networks.virtual import VirtualNetwork


SomeSpec = TypeVar("SomeSpec", bound=NetworkSpec)


class Network(Protocol):
    """The interface that an experiment needs of a network, virtual or live.

    `slots` is the most packets that each worker of its aggregation system has in flight; None
    if there is no such system.
    """

    @property
    def slots(self) -> int | None:
        """Return the packets in flight of each worker of the system; None: there is no system."""

    def arrays(
        self, elements: int, dtype: ElementType = ..., schedule: Schedule | None = None
    ) -> list[Array]:
        """Return one array per rank, of shape (elements,), in registered memory."""

    def run(
        self,
        schedule: Schedule,
        arrays: Sequence[Array],
        tell: Callable[[int], None] | None = None,
        *,
        until_ps: int | None = None,
    ) -> RunResult:
        """Run a schedule on arrays that `arrays` has returned; `tell` is called with progress.

        Ranks that are not done by `until_ps` after the start give up.
        """

    def close(self) -> None:
        """End the network, and all processes that it has."""


class MakeNetwork(Protocol):
    """A function that makes a network; see `connect`."""

    def __call__(
        self,
        spec: CollectiveSpec,
        graph: nx.Graph[str],
        *,
        in_network: str | None,
        capture: Path | None,
        record: Path | None = None,
        groups: Sequence[Group] | None = None,
    ) -> Network: ...


def build_topology(
    topo: str, *, rate_bps: int, delay_ps: int, hosts: int | None, copy: Path | None = None
) -> nx.Graph[str]:
    """Return the topology, without the hosts beyond those asked for.

    Of a topology that is a file, a `copy` is read in its place.

    Raises:
        ConfigError: If its name or parameters are not understood.
        TopologyError: If there is no such instance.
    """
    graph = registry.build(topo, rate_bps=rate_bps, delay_ps=delay_ps, hosts=hosts, copy=copy)
    return graph if hosts is None else keep_hosts(graph, hosts)


def make_graph(spec: NetworkSpec) -> nx.Graph[str]:
    """Return the topology of an experiment, with its rates, detours and delays.

    Raises:
        ConfigError: If its name or parameters are not understood, a detour is no way, or a fault
            is at a place that is not there.
        TopologyError: If there is no such instance.
    """
    graph = build_topology(
        spec.topo, rate_bps=spec.rate_bps, delay_ps=spec.delay_ps, hosts=spec.hosts
    )
    if spec.scale != 1:  # each of these copies the graph
        graph = scale_rates(graph, spec.scale)
    if spec.detours or spec.routes in SOLVED:
        graph = with_detours(graph, [*spec.detours, *_solved_ways(spec, graph)])
    if spec.shortest_paths is not None:
        graph = with_k_shortest(graph, spec.shortest_paths)
    elif spec.routes == VALIANT:
        graph = with_valiant(graph, spec.seed)
    elif spec.routes == UGAL:
        graph = with_ugal(graph, spec.seed)
    elif spec.routes == DCELL:
        graph = with_routing(graph, "dcell_routing", "dcell")
    if spec.circuits is not None:
        graph = graph.copy()
        graph.graph["strides"] = spec.circuits.controller.strides
    graph = with_delays(
        graph,
        switch_delay_ps=spec.switch_delay_ps,
        host_delay_ps=spec.host_delay_ps,
    )
    return with_slow_links(graph, [each.at_scale(spec.scale) for each in spec.network_faults])


def _solved_ways(spec: NetworkSpec, graph: nx.Graph[str]) -> list[tuple[str, ...]]:
    """Return the detours of gradients that are solved for the topology, besides those given.

    With several servers, each has a part of everything by GRID.
    """
    if spec.routes not in SOLVED:
        return []
    from ringleaf.topologies.gradients import goat, grid

    names = all_hosts(graph)
    servers = names[len(names) - getattr(spec, "servers", 0) :]
    workers = names[: len(names) - len(servers)]
    rng = Random(f"{spec.routes} {spec.seed}")
    if spec.routes == GOAT:
        ways = [*goat.route(graph, workers, servers, rng=rng).ways]
    else:
        ways = [
            way
            for server in servers
            for way in grid.route(graph, workers, server, adds_bps=spec.adds_bps, rng=rng).ways
        ]
    pairs = {(way[0], way[-1]) for way in spec.detours}
    return [way for way in ways if (way[0], way[-1]) not in pairs]


def divide_injection(spec: SomeSpec) -> SomeSpec:
    """Return the spec with the link rate that `inject` implies, also in its topology's text.

    Raises:
        ConfigError: If the topology's text has rates already.
        TopologyError: If there is no such topology.
    """
    is_divided = "rate_bps" in spec.model_fields_set  # nobody may ask for both
    if spec.inject_bps is None or is_divided:
        return spec
    topo, rate_bps = divide_ports(spec.topo, spec.inject_bps, hosts=spec.hosts)
    return spec.model_copy(update={"topo": topo, "rate_bps": rate_bps})


def scale_rates(graph: nx.Graph[str], factor: int) -> nx.Graph[str]:
    """Return the topology with its links' rates divided by a factor, and delays unchanged."""
    if factor == 1:
        return graph
    return with_links(graph, lambda each: replace(each, rate_bps=max(each.rate_bps // factor, 1)))


def keep_hosts(graph: nx.Graph[str], count: int) -> nx.Graph[str]:
    """Return the graph without hosts of ranks `count` and above, ports renumbered in order."""
    kept = graph.copy()
    kept.remove_nodes_from(all_hosts(graph)[count:])
    for node in kept:
        edges = sorted(kept.adj[node].values(), key=lambda edge: edge["ports"][node])
        for number, edge in enumerate(edges, start=1):
            edge["ports"] = {**edge["ports"], node: number}
    kept.graph["hierarchy"] = fold_hierarchy(graph.graph["hierarchy"], count)
    return kept


def fold_hierarchy(sizes: tuple[int, ...], ranks: int) -> tuple[int, ...]:
    """Return group sizes, innermost first, that multiply to `ranks` and follow the given groups."""
    folded = []
    left = ranks
    for size in sizes:
        group = gcd(left, size)
        if group > 1:
            folded.append(group)
            left //= group
    return (*folded, left) if left > 1 or not folded else tuple(folded)


SAMPLED = 8  # switches, from which distances are measured


def mean_distance(graph: nx.Graph[str]) -> float:
    """Return the mean number of links between two different hosts, from some of them to all."""
    peers = switch_graph(graph)
    below = Counter(attachment(graph, host) for host in all_hosts(graph))
    starts = list(below)[:: -(-len(below) // SAMPLED)]
    pairs = total = 0
    for start in starts:
        for switch, links in distances(peers, start).items():
            count = below[start] * (below[switch] - (switch == start))
            pairs += count
            total += count * (links + 2)
    return total / pairs if pairs else 2.0


def connect(
    spec: CollectiveSpec,
    graph: nx.Graph[str],
    *,
    in_network: str | None,
    capture: Path | None,
    record: Path | None = None,
    groups: Sequence[Group] | None = None,
    watched: bool = True,
) -> Network:
    """Return a new network for one run, so that no run depends on another.

    Args:
        spec: The experiment, which gives loss rates, packet sizes and the like.
        graph: The network's topology.
        in_network: The system that aggregates in the switches, if one does.
        capture: A folder for a capture of all ports, if it is wanted.
        record: A folder for traces, if they are wanted.
        groups: Groups that run collectives together; None: all hosts.
        watched: Whether queues, switches' memory and messages are noted, for a timeline.

    Raises:
        ConfigError: If options, topology and program do not fit one another.
    """
    from ringleaf.experiments.records.tracks import MOST_EVENTS
    from ringleaf.experiments.workloads.collective.timeline import MOST_PORTS  # loads NumPy

    options = network_options(spec, in_network, capture=capture, record=record)
    if watched:
        options = replace(
            options,
            watch_queues=2 * graph.number_of_edges() <= MOST_PORTS,
            watch_memory=True,
            watch_messages=MOST_EVENTS,
        )
    if spec.explain:
        from ringleaf.experiments.explain.log import LoggedNetwork

        return LoggedNetwork(graph, replace(options, threads=1), seed=spec.seed)
    return simulated(spec, graph, options, groups)


def simulated(
    spec: NetworkSpec,
    graph: nx.Graph[str],
    options: NetworkOptions,
    groups: Sequence[Group] | None = None,
) -> VirtualNetwork | FlowNetwork:
    """Return a new network in virtual time, of packets or of flows as the spec says.

    Raises:
        ConfigError: If options, topology, groups and program do not fit one another.
    """
    if spec.net == FLOW:
        from ringleaf.networks.flow.network import FlowNetwork  # compiles, or loads compiled code

        return FlowNetwork(graph, options, groups=groups)
    from ringleaf.networks.virtual import VirtualNetwork  # likewise

    return VirtualNetwork(graph, options, groups=groups, seed=spec.seed)


@contextmanager
def connecting(
    spec: CollectiveSpec, graph: nx.Graph[str], *, watched: bool = True
) -> Iterator[MakeNetwork]:
    """Yield a function that makes the networks of an experiment.

    A simulated one is watched for a timeline if `watched`. A live one stays up until the end, its
    switches programmed anew for each measurement.

    Raises:
        ConfigError: If a live network needs something that is missing.
        BackendError: If it can't be brought up.
    """
    if not spec.is_live:
        yield partial(connect, watched=watched)
        return
    from ringleaf.experiments.setup.testbed import open_testbed
    from ringleaf.networks.mininet.network import MininetNetwork

    with open_testbed(spec, graph) as testbed:

        def connect_live(
            spec: CollectiveSpec,
            graph: nx.Graph[str],
            *,
            in_network: str | None,
            capture: Path | None,
            record: Path | None = None,
            groups: Sequence[Group] | None = None,
        ) -> Network:
            return MininetNetwork(
                testbed,
                network_options(spec, in_network, capture=capture, record=record),
                seed=spec.seed,
                stall_s=spec.stall_ps / PS_PER_S,
                groups=groups,
            )

        yield connect_live


def network_options(
    spec: CollectiveSpec,
    in_network: str | None,
    *,
    capture: Path | None = None,
    record: Path | None = None,
    switch_entries: int | None = None,
) -> NetworkOptions:
    """Return the options of a collective's network, for its links, queues and hosts."""
    system: dict[str, Any] = {}
    if in_network is not None:
        from ringleaf.ina.registry import find_system

        system["system"] = find_system(in_network)
    return replace(
        common_options(spec),
        slots=spec.slots,
        has_data=spec.has_data,
        switch_entries=switch_entries,
        servers=spec.servers,
        capture=capture,
        record=record,
        **system,
    )


def assigned_programs(spec: NetworkSpec) -> Mapping[str, Assigned]:
    """Return the user's programs for switches, by switch.

    Raises:
        ConfigError: If a file is not understood, or does not fit the program or the topology.
        BackendError: If a P4 program is to be compiled, and there is no compiler.
    """
    if not is_path(spec.program):
        return {}
    from ringleaf.experiments.programs.assign import assign

    return assign(make_graph(spec), spec.program, spec.control, lanes=spec.lanes)


def common_options(spec: NetworkSpec) -> NetworkOptions:
    """Return the network options that all experiments have, whatever their workload.

    An option that both have by one name is passed on; None stands for the network's default.
    """
    from ringleaf.networks.options import NetworkOptions

    names = {each.name for each in fields(NetworkOptions)} - {"record"}  # a folder of each run
    shared = NetworkSpec.model_fields.keys() & names
    values = {name: value for name in shared if (value := getattr(spec, name)) is not None}
    resolved = {
        "ecmp": spec.routes == "ecmp",
        "ecn": spec.ecn,
        "program": spec.plain_program,
        "assigned": assigned_programs(spec),
        "faults": tuple(each.at_scale(spec.scale) for each in spec.network_faults),
        "reroute_ps": None if spec.reroute_ps is None else spec.reroute_ps * spec.scale,
        "circuits": None if spec.circuits is None else spec.circuits.at_scale(spec.scale),
    }
    return NetworkOptions(**values | resolved)
