"""The numbers of hosts, ranks and servers of an experiment, checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ringleaf.collectives.collective import Collective
from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.core.units import format_count
from ringleaf.errors import ConfigError
from ringleaf.experiments.spec.network import NetworkSpec
from ringleaf.topologies import registry
from ringleaf.topologies.family import Counts


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
    if hosts < 2:
        raise ConfigError(f"hosts: must be two at least to be ranks, got {hosts}")
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
    algorithms = [ALGORITHMS[name] for name in names]
    for algorithm in algorithms:
        if algorithm.ranks not in (None, ranks):
            raise ConfigError(
                f"algo: {algorithm.name} is for {format_count(algorithm.ranks, 'rank')}, got "
                f"{format_count(ranks, 'host')} that "
                f"are ranks; give hosts={algorithm.ranks}, or a topology that has as many"
            )
    if len({algorithm.name for algorithm in algorithms}) < len(algorithms):
        raise ConfigError(
            f"algo: files must have different names, got {', '.join(names)}; rename one"
        )
    for algorithm in algorithms:
        if algorithm.ranks is not None:
            algorithm.build(ranks)  # which follows the schedule
