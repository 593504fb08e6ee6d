"""What the needs of runs of all kinds have in common: an idle network, and the time of packets."""

from __future__ import annotations

from typing import Any

from ringleaf.core.threads import count_cores
from ringleaf.experiments.estimates.estimate import (
    BASE_BYTES,
    HOPS_PER_S,
    PORT_BYTES,
    ROUTE_BYTES,
    SWITCH_BYTES,
    Estimate,
    Need,
    carried_s,
    count_threads,
)
from ringleaf.experiments.estimates.machine import free_bytes
from ringleaf.experiments.spec.network import NetworkSpec
from ringleaf.topologies.family import Counts

PATH_LINKS = 4  # between hosts of a job, or of a workload


def plain(needed: Need) -> dict[str, Any]:
    """Return what a run needs, beside the memory that there is, for `--dry-run`."""
    return {
        "memory_bytes": needed.memory_bytes,
        "free_bytes": free_bytes(),
        "time_s": None if needed.time_s is None else round(needed.time_s, 1),
    }


def network_bytes(counts: Counts, switch_bytes: int = SWITCH_BYTES) -> int:
    """Return the memory of a process with an idle network."""
    return (
        BASE_BYTES
        + 2 * PORT_BYTES * counts.links
        + ROUTE_BYTES * counts.switches * counts.hosts
        + switch_bytes * counts.switches
    )


def estimate_of_hops(spec: NetworkSpec, hops: int, messages: int, setup_s: float) -> Estimate:
    """Estimate the time of a run from its packets' arrivals, and from all else that it does.

    Args:
        spec: The run.
        hops: Arrivals of packets.
        messages: Messages, which are what counts on a network of flows.
        setup_s: The time of all else.
    """
    cores, packets_s = count_cores(), carried_s(spec, hops, messages, HOPS_PER_S)
    return Estimate(0, hops, setup_s, packets_s, count_threads(spec, packets_s, cores), cores)
