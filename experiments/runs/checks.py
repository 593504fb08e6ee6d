"""Cheap checks of an experiment, made first so that errors are reported at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ringleaf.collectives.collective import Collective
from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.errors import ConfigError, TopologyError
from ringleaf.experiments.records.folder import check_out
from ringleaf.experiments.workloads.graph.loading import check_ranks, fit, load
from ringleaf.experiments.estimates.needs import check_fits
from ringleaf.experiments.setup.places import place_jobs
from ringleaf.experiments.programs.names import ALL, P4_SUFFIX, is_path, read_paths
from ringleaf.experiments.spec.collective import CollectiveSpec
from ringleaf.experiments.spec.jobs import JobsSpec
from ringleaf.experiments.spec.network import SOLVED, VIRTUAL, NetworkSpec
from ringleaf.experiments.spec.workload import WorkloadSpec
from ringleaf.extras import require
from ringleaf.ina.registry import find_system
from ringleaf.p4c import find_compiler
from ringleaf.topologies import registry
from ringleaf.topologies.family import Counts
from ringleaf.topologies.k_shortest import MOST_HOSTS, too_many_hosts

CAPTURES = tuple(
    bytes.fromhex(magic) for magic in ("a1b2c3d4", "d4c3b2a1", "a1b23c4d", "4d3cb2a1", "0a0d0d0a")
)
"""How captures begin: pcap in both byte orders, with microseconds or nanoseconds; pcapng."""

PACKED = (b"\x1f\x8b", b"\x28\xb5", b"\xfd7", b"BZ")
"""How compressed files begin: gzip, zstd, xz, bzip2."""

BMV2_ADDS_BYTES = 512
"""The room that simple_switch leaves in front of a packet; more would overwrite memory."""

FEW_LINKS = 10_000
"""Detours and injection rates are checked at once in a topology of at most this many links."""


def check(spec: CollectiveSpec | JobsSpec | WorkloadSpec, *, live: bool = True) -> None:
    """Check that an experiment can be run here; if `live`, on a network of its own.

    Raises:
        ConfigError: If it can't; the message names the option, the value and a remedy.
        TopologyError: If there is no such topology.
    """
    if isinstance(spec, WorkloadSpec):
        spec = fit(spec)
    counts = count_nodes(spec)
    _check_names(spec, counts)
    _check_programs(spec, counts)
    if spec.shortest_paths is not None and counts.hosts > MOST_HOSTS:
        raise too_many_hosts(spec.topo, counts.hosts)
    if isinstance(spec, CollectiveSpec):
        _check_collective(spec, counts)
    elif isinstance(spec, JobsSpec):
        check_room(spec, counts.hosts)
    else:
        check_ranks(len(load(spec).graph.ranks), counts.hosts)
    check_fits(spec, counts)
    if not isinstance(spec, WorkloadSpec):
        _check_racks(spec, counts)
        _check_growth(spec)
    if live and spec.net != VIRTUAL:
        check_machine_for(spec)
    check_out(spec.out)
    if spec.routes in SOLVED:
        require("scipy", f"routes {spec.routes}")
    if spec.cross_traffic is not None:
        _check_capture(spec.cross_traffic)
    if (spec.detours or spec.inject_bps is not None) and counts.links <= FEW_LINKS:
        _check_topology(spec)


def _check_capture(path: Path) -> None:
    """Check that a file is a capture, and find its packets; they are used where hosts are made."""
    try:
        with path.open("rb") as file:
            magic = file.read(4)
    except OSError as error:
        raise ConfigError(f"cross_traffic: can't be read: {error.strerror}, got {path}") from error
    if magic not in CAPTURES:
        raise ConfigError(
            f"cross_traffic: must be a packet capture, pcap or pcapng, got {path} that begins with "
            f"{magic.hex() or 'nothing'}{'; unpack it first' if magic[:2] in PACKED else ''}"
        )
    from ringleaf.networks.cross_traffic import check_records  # loads Numba
    from ringleaf.networks.traces.pcap_read import read_records

    try:
        check_records(read_records(path))
    except ConfigError as error:
        raise ConfigError(f"cross_traffic: {error}") from error


def _check_collective(spec: CollectiveSpec, counts: Counts) -> None:
    one_collective(spec.algos)
    check_given_ranks(spec.algos, count_ranks(counts.hosts, spec.servers))
    for name in spec.algos:
        method = ALGORITHMS[name].method
        if method is not None:
            method.make(0, count_ranks(counts.hosts, spec.servers))  # which may refuse the number


def check_room(spec: JobsSpec, hosts: int) -> None:
    """Check that there are enough hosts for all jobs.

    Raises:
        ConfigError: If the topology has fewer.
    """
    if spec.needed_hosts > hosts:
        raise ConfigError(
            f"jobs: must fit the {hosts} hosts of {spec.topo}, got {spec.needed_hosts} with "
            f"{spec.servers} servers for each of {len(spec.jobs)}"
        )


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


def _check_racks(spec: CollectiveSpec | JobsSpec, counts: Counts) -> None:
    """Check that systems take the jobs' workers where they are, if that can be told from counts."""
    systems = [find_system(name) for name in spec.algos if ALGORITHMS[name].in_network]
    if not systems or counts.rack is None or spec.detours or spec.routes in SOLVED:
        return
    for workers, servers in _places(spec, range(counts.hosts)):
        racks = Counter(host // counts.rack for host in workers)
        for system in systems:
            system.check_racks(list(racks.values()), len(servers))


def _check_growth(spec: CollectiveSpec | JobsSpec) -> None:
    """Check that BMv2 can add as many bytes to packets as the systems' programs do."""
    for name in spec.algos:
        if ALGORITHMS[name].in_network and spec.net == "mininet" and spec.switch == "bmv2":
            added = find_system(name).added_bytes(spec.lanes)
            if added > BMV2_ADDS_BYTES:
                raise ConfigError(
                    f"lanes: BMv2 adds at most {BMV2_ADDS_BYTES} bytes to a packet, got {added} "
                    f"with algo={name} and lanes={spec.lanes}; take lanes=64, or switch=embedded"
                )


def _places(
    spec: CollectiveSpec | JobsSpec, numbers: range
) -> list[tuple[Sequence[int], Sequence[int]]]:
    """Return the numbers of the hosts of the ranks, and of the servers, of each job that runs."""
    if isinstance(spec, CollectiveSpec):
        ranks = len(numbers) - spec.servers
        return [(numbers[:ranks], numbers[ranks:])]
    return [place for count in spec.counts for place in place_jobs(spec, numbers, count)]


def _check_topology(spec: NetworkSpec) -> None:
    """Check what only the topology itself shows; loading NetworkX takes a fifth of a second."""
    from ringleaf.experiments.setup.network import build_topology, divide_injection
    from ringleaf.topologies.detours import with_detours

    spec = divide_injection(spec)
    graph = build_topology(
        spec.topo, rate_bps=spec.rate_bps, delay_ps=spec.delay_ps, hosts=spec.hosts
    )
    with_detours(graph, spec.detours)


def count_nodes(spec: NetworkSpec) -> Counts:
    """Return the size of the topology, counting only the hosts that were asked for."""
    counts = registry.count(spec.topo, hosts=spec.hosts)
    if spec.hosts is None or spec.hosts >= counts.hosts:
        return counts
    gone = counts.hosts - spec.hosts
    return replace(counts, hosts=spec.hosts, links=counts.links - gone)


def one_collective(names: Sequence[str]) -> Collective:
    """Return the collective that all algorithms of a run perform.

    Raises:
        ConfigError: If they perform different ones.
    """
    first, *others = (ALGORITHMS[name] for name in names)
    for other in others:
        if other.collective is not first.collective:
            raise ConfigError(
                f"algo: must all be of one collective, got {first.name!r} "
                f"({first.collective.value}) and {other.name!r} ({other.collective.value})"
            )
    return first.collective


def count_ranks(hosts: int, servers: int) -> int:
    """Return the number of hosts that are ranks.

    Raises:
        ConfigError: If there are fewer than two.
    """
    if hosts - servers < 2:
        raise ConfigError(
            f"servers: must leave two hosts at least to be ranks, got {servers} of {hosts}"
        )
    return hosts - servers


def check_given_ranks(names: Sequence[str], ranks: int) -> None:
    """Check that algorithms for one number of ranks, which files hold, get so many, and are right.

    Raises:
        ConfigError: If one is for another number, or two files have the same name.
        ScheduleError: If a file's schedule is wrong.
    """
    found = [ALGORITHMS[name] for name in names]
    for algorithm in found:
        if algorithm.ranks not in (None, ranks):
            raise ConfigError(
                f"algo: {algorithm.name} is for {algorithm.ranks} ranks, got {ranks} hosts that "
                f"are ranks; give hosts={algorithm.ranks}, or a topology that has as many"
            )
    if len({algorithm.name for algorithm in found}) < len(found):
        raise ConfigError(
            f"algo: files must have different names, got {', '.join(names)}; rename one"
        )
    for algorithm in found:
        if algorithm.ranks is not None:
            algorithm.build(ranks)  # which follows the schedule


def check_machine_for(spec: NetworkSpec) -> None:
    """Check that this machine has all that the spec's live network needs.

    Raises:
        ConfigError: If a part is missing; the message names each one, and how to get it.
    """
    from ringleaf.networks.mininet.preflight import check_machine

    check_machine(bmv2=spec.switch == "bmv2", netem_for="losses" if spec.loss else None)
