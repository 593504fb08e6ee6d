"""Graphs of work by their spec: a trace that has not changed is read once."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from statistics import fmean

from ringleaf.core.inputs import FileState, file_state
from ringleaf.core.units import PS_PER_S, format_count
from ringleaf.errors import ConfigError
from ringleaf.experiments.workloads.graph.names import FLOWS, LLM
from ringleaf.experiments.workloads.graph.spec import WorkloadSpec
from ringleaf.hosts.workload.flows import RING, Traffic, graph_of, make_flows
from ringleaf.hosts.workload.formats.flows import read_flows
from ringleaf.hosts.workload.llm.generate import generate
from ringleaf.hosts.workload.llm.sizes import Split, TransformerSizes
from ringleaf.hosts.workload.matched import Matched
from ringleaf.hosts.workload.meetings import match
from ringleaf.topologies.graph import hosts
from ringleaf.topologies.injection import injection_bps
from ringleaf.topologies.registry import ranks_by_name


def load(spec: WorkloadSpec) -> Matched:
    """Return the graph of a spec, matched.

    Raises:
        ConfigError: If its files can't be read or don't make sense, or it could wait forever.
    """
    if spec.workload == LLM:
        return _make(spec.preset or "llm", *spec.model_sizes(), spec.eager_limit)
    if spec.workload == FLOWS:
        if not spec.files:
            return _make_flows(_traffic(spec))
        names = tuple(ranks_by_name(spec.topo).items())
        return _read_flows(spec.files, file_state(spec.files), names)
    from ringleaf.hosts.workload.formats.files import files_of  # loads protobuf

    states = tuple(map(file_state, files_of(spec.files, spec.groups)))
    return _read(spec.files, spec.groups, states, spec.flops, spec.ranks, spec.eager_limit)


@lru_cache(maxsize=1)
def _make(name: str, sizes: TransformerSizes, split: Split, eager_bytes: int | None) -> Matched:
    return match(generate(name, sizes, split), eager_bytes)


def _traffic(spec: WorkloadSpec) -> Traffic:
    """Return a pattern's sizes, with the interval that brings about a load."""
    traffic = spec.traffic
    if not spec.mean_load:
        return traffic
    from ringleaf.experiments.setup.network import divide_injection, make_graph

    graph = make_graph(divide_injection(_with_hosts(spec, traffic.ranks)))
    rates = [injection_bps(graph, host) for host in hosts(graph)]
    sizes = traffic.sizes_bytes
    mean_bytes = traffic.drawn.mean_bytes if traffic.drawn else fmean(sizes)
    sent_bps = spec.mean_load * fmean(rates) * traffic.ranks
    return replace(traffic, interval_ps=round(mean_bytes * 8 * PS_PER_S / sent_bps))


@lru_cache(maxsize=1)
def _make_flows(traffic: Traffic) -> Matched:
    flows = make_flows(traffic)
    return match(graph_of(traffic.pattern, flows, in_turn=traffic.pattern == RING))


@lru_cache(maxsize=1)
def _read_flows(path: str, state: FileState, ranks: tuple[tuple[str, int], ...]) -> Matched:
    del state  # another one is another file
    flow_file = read_flows(Path(path), dict(ranks))
    return match(
        graph_of(Path(path).stem, flow_file.flows, ranks=flow_file.ranks, notes=flow_file.notes)
    )


@lru_cache(maxsize=1)
def _read(
    files: str,
    groups: str,
    states: tuple[FileState, ...],
    flops: float | None,
    ranks: int | None,
    eager_bytes: int | None,
) -> Matched:
    del states  # others are other files
    from ringleaf.hosts.workload.formats.files import read_trace  # loads protobuf

    return match(read_trace(files, groups, flops, ranks), eager_bytes)


def fit(spec: WorkloadSpec) -> WorkloadSpec:
    """Return the spec with a host for each rank, if it says nothing of the number of hosts.

    Raises:
        ConfigError: If the graph can't be made or read.
    """
    return _with_hosts(spec, len(load(spec).graph.ranks))


def _with_hosts(spec: WorkloadSpec, ranks: int) -> WorkloadSpec:
    return spec if spec.hosts else spec.model_copy(update={"hosts": max(ranks, 2)})


def check_ranks(ranks: int, hosts: int) -> None:
    """Check that there is a host for each rank.

    Raises:
        ConfigError: If not.
    """
    if ranks > hosts:
        raise ConfigError(
            f"hosts: each of {format_count(ranks, 'rank')} needs one, got {hosts}; take a "
            "larger topology, or leave its sizes open"
        )
