"""Graphs of work by their spec: a trace is read once, however often somebody asks."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from ringleaf.errors import ConfigError
from ringleaf.experiments.spec.workload import FLOWS, LLM, WorkloadSpec
from ringleaf.hosts.workload.flows import RING, Traffic, graph_of, make_flows
from ringleaf.hosts.workload.formats.flows import read_flows
from ringleaf.hosts.workload.llm.generate import generate
from ringleaf.hosts.workload.llm.sizes import Sizes, Split
from ringleaf.hosts.workload.matched import Matched
from ringleaf.hosts.workload.meetings import match


def load(spec: WorkloadSpec) -> Matched:
    """Return the graph of a spec, matched.

    Raises:
        ConfigError: If its files can't be read or don't make sense, or it could wait forever.
    """
    if spec.workload == LLM:
        return _make(spec.preset or "llm", *spec.model_sizes(), spec.eager_limit)
    if spec.workload == FLOWS:
        return _read_flows(spec.files) if spec.files else _make_flows(spec.traffic)
    return _read(spec.files, spec.groups, spec.flops, spec.eager_limit)


@lru_cache(maxsize=1)
def _make(name: str, sizes: Sizes, split: Split, eager_bytes: int | None) -> Matched:
    return match(generate(name, sizes, split), eager_bytes)


@lru_cache(maxsize=1)
def _make_flows(traffic: Traffic) -> Matched:
    flows = make_flows(traffic)
    return match(graph_of(traffic.pattern, flows, in_turn=traffic.pattern == RING))


@lru_cache(maxsize=1)
def _read_flows(path: str) -> Matched:
    return match(graph_of(Path(path).stem, read_flows(Path(path))))


@lru_cache(maxsize=1)
def _read(files: str, groups: str, flops: float | None, eager_bytes: int | None) -> Matched:
    from ringleaf.hosts.workload.formats.files import read_trace  # loads protobuf

    return match(read_trace(files, groups, flops), eager_bytes)


def fit(spec: WorkloadSpec) -> WorkloadSpec:
    """Return the spec with a host for each rank, if it says nothing of the number of hosts.

    Raises:
        ConfigError: If the graph can't be made or read.
    """
    if spec.inject_bps is not None:
        from ringleaf.experiments.network import divide_injection

        spec = divide_injection(spec)
    ranks = len(load(spec).graph.ranks)
    return spec if spec.hosts else spec.model_copy(update={"hosts": max(ranks, 2)})


def check_ranks(ranks: int, hosts: int) -> None:
    """Check that there is a host for each rank.

    Raises:
        ConfigError: If not.
    """
    if ranks > hosts:
        raise ConfigError(
            f"hosts: each of {ranks} ranks needs one, got {hosts}; take a larger topology, or "
            "leave its sizes open"
        )
