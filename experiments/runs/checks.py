"""Cheap checks of an experiment, made first so that errors are reported at once."""

from __future__ import annotations

from collections import Counter
from itertools import chain
from pathlib import Path
from typing import Any

from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.core.extras import require
from ringleaf.core.faults import CORRUPT
from ringleaf.core.p4c import find_compiler
from ringleaf.core.packing import LONGEST_START, packing
from ringleaf.core.units import PS_PER_S, format_count, format_rate, serialize_ps
from ringleaf.errors import ConfigError, TopologyError
from ringleaf.experiments.estimates.estimate import check_memory
from ringleaf.experiments.estimates.machine import free_bytes
from ringleaf.experiments.programs.names import ALL, P4_SUFFIX, is_path, read_paths
from ringleaf.experiments.records.folder import check_out
from ringleaf.experiments.runs.kind import WorkloadKind
from ringleaf.experiments.runs.request import RunRequest
from ringleaf.experiments.setup.ranks import count_nodes
from ringleaf.experiments.spec.choices import FLOW, SOLVED, UGAL, VALIANT
from ringleaf.experiments.spec.network import NetworkSpec
from ringleaf.ina.registry import find_system
from ringleaf.ina.systems import FORWARD, System
from ringleaf.topologies.family import Counts
from ringleaf.topologies.k_shortest import MOST_HOSTS, too_many_hosts

CAPTURES = tuple(
    bytes.fromhex(magic) for magic in ("a1b2c3d4", "d4c3b2a1", "a1b23c4d", "4d3cb2a1", "0a0d0d0a")
)
"""How captures begin: pcap in both byte orders, with microseconds or nanoseconds; pcapng."""

BMV2_ADDS_BYTES = 512
"""The room that simple_switch leaves in front of a packet; more would overwrite memory."""

FEW_LINKS = 10_000
"""Detours, injection rates and places of faults are checked at once in a topology of at most this
many links."""


def check(request: RunRequest, *, live: bool = True) -> None:
    """Check that an experiment can be run here; if `live`, on a network of its own.

    Raises:
        ConfigError: If it can't; the message names the option, the value and a remedy.
        TopologyError: If there is no such topology.
    """
    kind = request.kind
    spec = kind.fitted(request.spec)
    counts = count_nodes(spec)
    _check_names(spec, counts)
    _check_programs(spec, counts)
    if spec.shortest_paths is not None and counts.hosts > MOST_HOSTS:
        raise too_many_hosts(spec.topo, counts.hosts)
    if spec.routes in (VALIANT, UGAL) and counts.hosts > MOST_HOSTS:
        raise too_many_hosts(spec.topo, counts.hosts, "by drawn switches")
    kind.check(spec, counts)
    check_fits(kind, spec, counts)
    _check_racks(kind, spec, counts)
    _check_growth(spec)
    _check_adaptive(spec)
    _check_fluid(spec)
    _check_verified(spec)
    check_out(spec.out)
    if spec.routes in SOLVED:
        require("scipy", f"routes {spec.routes}")
    _check_places(spec, counts)
    if live and spec.is_live:
        check_machine_for(spec)


def check_network(spec: NetworkSpec) -> None:
    """Check what an experiment says of its network, whatever runs on it.

    Raises:
        ConfigError: If a file or a place is wrong; the message names the option and the value.
        TopologyError: If there is no such topology, or it has no such node or link.
    """
    counts = count_nodes(spec)
    _check_names(spec, counts)
    _check_places(spec, counts)


def _check_places(spec: NetworkSpec, counts: Counts) -> None:
    """Check the capture that hosts send, and the places of faults, detours and rates."""
    if spec.cross_traffic is not None:
        _check_capture(spec.cross_traffic)
    troubled = spec.network_faults or spec.reroute_ps is not None or spec.is_live
    if (spec.detours or spec.inject_bps is not None or troubled) and counts.links <= FEW_LINKS:
        _check_topology(spec)


def check_fits(kind: WorkloadKind[Any], spec: NetworkSpec, counts: Counts) -> None:
    """Check that a run fits into the free memory.

    Raises:
        ConfigError: If it can't.
    """
    check_memory(spec.topo, kind.need(spec, counts).memory_bytes, free_bytes())


def _check_capture(path: Path) -> None:
    """Check that a file is a capture, and find its packets; they are used where hosts are made."""
    try:
        if not path.is_file():  # reading a pipe might never end
            path.stat()
            raise ConfigError(f"cross_traffic: must be a plain file, got {path}, which is none")
        with path.open("rb") as file:
            head = file.read(max(LONGEST_START, 4))
    except OSError as error:
        raise ConfigError(f"cross_traffic: can't be read: {error.strerror}, got {path}") from error
    if head[:4] not in CAPTURES and not packing(head):
        raise ConfigError(
            f"cross_traffic: must be a packet capture, pcap or pcapng, got {path} that begins with "
            f"{head[:4].hex() or 'nothing'}; editcap makes pcapng of other captures"
        )
    from ringleaf.networks.cross_traffic import check_records  # loads Numba
    from ringleaf.networks.traces.pcap_read import read_records

    try:
        check_records(read_records(path))
    except ConfigError as error:
        raise ConfigError(f"cross_traffic: {error}") from error


def _check_names(spec: NetworkSpec, counts: Counts) -> None:
    """Check that detours name hosts and switches that there are, which needs no topology."""
    for way in spec.detours:
        for node in way:
            what, most = ("host", counts.hosts) if node[0] == "h" else ("switch", counts.switches)
            if int(node[1:]) >= most:
                raise TopologyError(f"detour: no such {what}, got {node!r} in {'-'.join(way)}")


def _check_programs(spec: NetworkSpec, counts: Counts) -> None:
    """Check that the user's programs are for switches that there are, and can be compiled."""
    if not is_path(spec.program):
        return
    paths = read_paths(spec.program, "program")
    for what, text in (("program", spec.program), ("control", spec.control)):
        for switch in read_paths(text, what) if text else ():
            if switch != ALL and int(switch[1:]) >= counts.switches:
                raise ConfigError(f"{what}: no such switch, got {switch!r} in {spec.topo}")
    from ringleaf.switches.bmv2.binaries import need_v1model
    from ringleaf.switches.json.program import load_source

    for path in paths.values():
        if path.suffix != P4_SUFFIX:
            source = load_source(path)  # report errors before Numba is loaded
            if spec.net == "mininet" and spec.switch == "bmv2":
                need_v1model(source, f"program: {path}")
    if any(path.suffix == P4_SUFFIX for path in paths.values()):
        find_compiler(f"program: {spec.program}", "give its BMv2 JSON")


def _check_racks(kind: WorkloadKind[Any], spec: NetworkSpec, counts: Counts) -> None:
    """Check that systems take workers where they are, if that can be told from counts."""
    systems = _systems(spec)
    if not systems or counts.rack is None or spec.detours or spec.routes in SOLVED:
        return
    for workers, servers in kind.places(spec, range(counts.hosts)):
        racks = Counter(host // counts.rack for host in workers)
        for system in systems.values():
            system.check_racks(list(racks.values()), len(servers))


def _check_growth(spec: NetworkSpec) -> None:
    """Check that BMv2 can add as many bytes to packets as the systems' programs do."""
    if spec.net != "mininet" or spec.switch != "bmv2":
        return
    for name, system in _systems(spec).items():
        added = system.added_bytes(spec.lanes)
        if added > BMV2_ADDS_BYTES:
            raise ConfigError(
                f"lanes: BMv2 adds at most {BMV2_ADDS_BYTES} bytes to a packet, got {added} "
                f"with algo={name} and lanes={spec.lanes}; take lanes=64, or switch=embedded"
            )


def _check_adaptive(spec: NetworkSpec) -> None:
    """Check that switches can run the program that routes by queues."""
    for name, system in _systems(spec).items():
        if spec.routes == UGAL and system.program(spec.lanes) != FORWARD:
            raise ConfigError(
                f"algo: switches can't aggregate while they run routes={UGAL}, got {name!r}; "
                "leave out either of them"
            )


def _check_fluid(spec: NetworkSpec) -> None:
    """Check that systems, and links' faults, can be had without packets, where there are none."""
    if spec.net != FLOW:
        return
    systems = _systems(spec)
    for name, system in systems.items():
        if not system.is_fluid:
            raise ConfigError(f"algo: {name} has no fluid form, got net={FLOW}; take net=virtual")
    if spec.network_faults:
        from ringleaf.networks.faults import check_fluid  # loads NetworkX

        check_fluid(spec.network_faults, adds=bool(systems))


def _check_verified(spec: NetworkSpec) -> None:
    """Check that packets with a wrong bit are noticed, if a fault makes some."""
    kinds = [each.kind for each in spec.network_faults]
    if CORRUPT in kinds:
        from ringleaf.networks.faults import check_verified  # loads NetworkX

        check_verified(kinds, _systems(spec).values(), trims=spec.trim_bytes is not None)


def _systems(spec: NetworkSpec) -> dict[str, System]:
    """Return the aggregation systems that an experiment uses, by name."""
    names = getattr(spec, "algos", ())
    return {name: find_system(name) for name in names if ALGORITHMS[name].in_network}


def _check_topology(spec: NetworkSpec) -> None:
    """Check what only the topology itself shows; loading NetworkX takes a fifth of a second."""
    from ringleaf.experiments.setup.network import divide_injection, make_graph
    from ringleaf.networks.faults import check_restarts, disturbances_of
    from ringleaf.topologies.graph import link

    graph = make_graph(divide_injection(spec))
    faults = [each.at_scale(spec.scale) for each in spec.network_faults]
    disturbances = disturbances_of(faults, graph, spec.reroute_ps)
    records = spec.record is not None or (spec.is_live and spec.pcap)
    check_restarts(disturbances, records=records, pauses=spec.pfc is not None)
    if spec.is_live:
        both_ways = chain.from_iterable(((a, b), (b, a)) for a, b in graph.edges)
        _check_pace(spec, min(link(graph, *ends).rate_bps for ends in both_ways))


def _check_pace(spec: NetworkSpec, slowest_bps: int) -> None:
    """Check that a live packet takes less than a second: else, a run looks as if it was stuck."""
    if serialize_ps(spec.mtu_bytes, slowest_bps) >= PS_PER_S:
        raise ConfigError(
            f"scale: a live link must send {format_count(spec.mtu_bytes, 'byte')} in a second, got "
            f"{format_rate(slowest_bps)}, its rate over scale={spec.scale}; take a smaller scale"
        )


def check_machine_for(spec: NetworkSpec) -> None:
    """Check that this machine has all that the spec's live network needs.

    Raises:
        ConfigError: If a part is missing; the message names each one, and how to get it.
    """
    from ringleaf.networks.mininet.preflight import check_machine

    check_machine(bmv2=spec.switch == "bmv2", netem_for="losses" if spec.loss else None)
