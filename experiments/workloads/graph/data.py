"""Whether the messages of a replay carry data."""

from __future__ import annotations

from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.errors import ConfigError
from ringleaf.experiments.spec.kinds import NONE, RANDOM
from ringleaf.experiments.workloads.graph.spec import AUTO, WorkloadSpec
from ringleaf.hosts.workload.matched import Matched

SMALL_BYTES = 64 << 20
"""Data are random by default if all ranks together bring in no more than this."""


def adds_in_network(spec: WorkloadSpec) -> bool:
    """Return whether switches add up the all-reduces of a workload."""
    return any(ALGORITHMS[name].in_network for name in spec.algos)


def data_of(spec: WorkloadSpec, matched: Matched) -> str:
    """Return the data of a workload's messages: random, or none.

    Raises:
        ConfigError: If there must be some, and the spec wants none.
    """
    in_network = adds_in_network(spec)
    if spec.is_live:
        if spec.data == NONE:
            raise ConfigError(f"data: live networks carry data, got {NONE!r}; take random")
        return RANDOM
    if spec.data == NONE and in_network:
        name = next(name for name in spec.algos if ALGORITHMS[name].in_network)
        raise ConfigError(f"data: switches add up data, got {NONE!r} and {name!r}; take random")
    sparse = next((name for name in spec.algos if ALGORITHMS[name].sparse), None)
    if spec.data == NONE and sparse:
        raise ConfigError(f"data: can't be none with algo={sparse}, got {NONE!r}; take random")
    if spec.data != AUTO:
        return spec.data
    input_bytes = sum(each.size_bytes * len(each.ranks) for each in matched.meetings)
    return RANDOM if input_bytes <= SMALL_BYTES or in_network or sparse else NONE
