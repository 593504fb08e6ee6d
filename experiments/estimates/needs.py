"""The memory and time that a run of any kind needs: collectives, jobs and workloads.

`need_of` has a part for each kind of spec; those of scripts and NICs are beside their specs
(`train/need.py`, `nic/need.py`). What this machine has no memory for is refused with the
same words, whatever its kind (`check_fits`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import singledispatch
from typing import Any

from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.experiments.estimates.estimate import (
    BASE_BYTES,
    BYTES_PER_S,
    CONSTANT,
    COPIES,
    FLOAT32_BYTES,
    HOPS_PER_S,
    PORT_BYTES,
    ROUTE_BYTES,
    SWITCH_BYTES,
    SWITCH_S,
    TORCH_BYTES,
    USUAL,
    Estimate,
    Need,
    check_memory,
    costs_of,
    count_threads,
    draft,
    mean_copies,
    need,
    sort_of,
    start_s,
)
from ringleaf.experiments.estimates.machine import free_bytes
from ringleaf.experiments.estimates.pace import Paces
from ringleaf.experiments.spec.collective import NONE, CollectiveSpec
from ringleaf.experiments.spec.jobs import JobSpec, JobsSpec
from ringleaf.experiments.spec.network import NetworkSpec
from ringleaf.experiments.spec.workload import WorkloadSpec
from ringleaf.hosts.workload.matched import Matched
from ringleaf.threads import count_cores
from ringleaf.topologies.family import Counts

JOBS_LINKS = 4  # between the hosts of a job, or of a workload

OTHER_PIECES = 1 / 8
"""The share of a job's other pieces that are in memory beside its largest one."""

NODE_BYTES = 5 << 10  # per node of a graph of work: its times, and where it waits
MEETING_BYTES = 10 << 10  # per meeting: parts of its ranks, and its row of the messages
MOST_ABREAST = 2  # meetings of the same ranks and size that have memory at a time
MEETING_S = 6e-4  # per meeting: started, and noted
CHECKED_S = 6e-4  # more, if its data are made and checked


def check_fits(spec: NetworkSpec, counts: Counts) -> None:
    """Check that a run fits into the free memory.

    Raises:
        ConfigError: If it can't.
    """
    check_memory(spec.topo, need_of(spec, counts).memory_bytes, free_bytes())


def plain(needed: Need) -> dict[str, Any]:
    """Return what a run needs, beside the memory that there is, for `--dry-run`."""
    return {
        "memory_bytes": needed.memory_bytes,
        "free_bytes": free_bytes(),
        "time_s": None if needed.time_s is None else round(needed.time_s, 1),
    }


@singledispatch
def need_of(
    spec: NetworkSpec, counts: Counts, distance: float = 1, paces: Paces = CONSTANT
) -> Need:
    """Return what a run needs.

    Args:
        spec: The run.
        counts: The size of its network.
        distance: Mean number of links between two hosts, if time matters.
        paces: The paces of the machine.
    """
    raise TypeError(f"need_of: must have a part for each kind of spec, got {type(spec).__name__}")


@need_of.register
def _(spec: CollectiveSpec, counts: Counts, distance: float = 1, paces: Paces = CONSTANT) -> Need:
    return need(spec, counts, distance, paces)


# Jobs.


@need_of.register
def _(spec: JobsSpec, counts: Counts, distance: float = 1, paces: Paces = CONSTANT) -> Need:
    """All jobs' inputs are parts of one long tensor, and a job has those of its pieces in memory
    that are on their way: the largest layer's, and a few others.
    """
    found = [
        _bytes_of_jobs(spec, counts, spec.jobs[:count], name)
        for count in spec.counts or (len(spec.jobs),)
        for name in spec.algos
    ]
    times = len(spec.orders) * max(1, len(spec.entries or ()))
    cases_s = sum(
        estimate_of_jobs(spec, counts).paced(paces, sort_of(spec, name)).time_s
        for _ in spec.counts or (None,)
        for name in spec.algos
    )
    return Need(max(found), start_s(spec, paces) + times * cases_s)


def estimate_of_jobs(spec: JobsSpec, counts: Counts) -> Estimate:
    """Estimate the time of one combination of jobs; their packets are counted as those of rings."""
    longest = max(job.iterations or 1 for job in spec.jobs)
    sent = sum(
        2 * job.ranks * (job.iterations or longest) * job.model.elements * FLOAT32_BYTES
        for job in spec.jobs
    )
    hops = round(sent / spec.mtu_bytes * JOBS_LINKS)
    return _estimate(spec, hops, SWITCH_S * counts.switches)


def _estimate(spec: NetworkSpec, hops: int, setup_s: float) -> Estimate:
    cores, packets_s = count_cores(), hops / HOPS_PER_S
    return Estimate(0, hops, setup_s, packets_s, count_threads(spec, packets_s, cores), cores)


def _bytes_of_jobs(spec: JobsSpec, counts: Counts, jobs: Sequence[JobSpec], algorithm: str) -> int:
    inputs = max(job.model.elements for job in jobs) * FLOAT32_BYTES
    switch_bytes = costs_of(ALGORITHMS[jobs[0].algo or algorithm]).switch_bytes
    tensors = 0.0
    for job in jobs:
        largest = max(layer.elements for layer in job.model.layers)
        elements = largest + OTHER_PIECES * (job.model.elements - largest)
        tensors += job.ranks * elements * FLOAT32_BYTES * _copies_of_job(job, algorithm)
    torch = TORCH_BYTES if getattr(spec, "compress", "") else 0
    return round(inputs + tensors + torch) + network_bytes(counts, switch_bytes)


def _copies_of_job(job: JobSpec, algorithm: str) -> float:
    used = ALGORITHMS[job.algo or algorithm]
    if used.in_network:
        return COPIES
    largest = max(layer.elements for layer in job.model.layers)
    found = draft(used, job.ranks, largest * FLOAT32_BYTES)
    return mean_copies(COPIES + found.scratch, found.buffers) if found else COPIES + USUAL


def network_bytes(counts: Counts, switch_bytes: int = SWITCH_BYTES) -> int:
    """Return the memory of a process with an idle network."""
    return (
        BASE_BYTES
        + 2 * PORT_BYTES * counts.links
        + ROUTE_BYTES * counts.switches * counts.hosts
        + switch_bytes * counts.switches
    )


# Workloads.


@need_of.register
def _(spec: WorkloadSpec, counts: Counts, distance: float = 1, paces: Paces = CONSTANT) -> Need:
    from ringleaf.experiments.workloads.graph.loading import load

    matched = load(spec)
    sent = sum(each.size_bytes * max(len(each.ranks) - 1, 1) for each in matched.meetings)
    hops = round(sent / spec.mtu_bytes * max(distance, JOBS_LINKS))
    found = estimate_of_work(spec, counts, matched, hops)
    sort = sort_of(spec, "+".join(spec.algos))
    return Need(found.memory_bytes, start_s(spec, paces) + found.paced(paces, sort).time_s)


def estimate_of_work(spec: WorkloadSpec, counts: Counts, matched: Matched, hops: int) -> Estimate:
    """Estimate the memory and time of a workload, whose packets arrive so many times."""
    from ringleaf.experiments.workloads.graph.data import data_of

    has_data = data_of(spec, matched) != NONE
    given = sum(each.size_bytes * len(each.ranks) for each in matched.meetings) * has_data
    nodes = sum(len(work.nodes) for work in matched.graph.ranks)
    meetings = len(matched.meetings)
    switch_bytes = max(costs_of(ALGORITHMS[name]).switch_bytes for name in spec.algos)
    memory = (
        network_bytes(counts, switch_bytes)
        + NODE_BYTES * nodes
        + MEETING_BYTES * meetings
        + _tensors_of_work(matched) * COPIES * has_data
    )
    per_meeting_s = MEETING_S + CHECKED_S * has_data
    setup_s = SWITCH_S * counts.switches + per_meeting_s * meetings + given / BYTES_PER_S
    timed = _estimate(spec, hops, setup_s)
    return Estimate(round(memory), hops, setup_s, timed.packets_s, timed.threads, timed.cores)


def _tensors_of_work(matched: Matched) -> int:
    """Return the bytes of ranks' tensors: those of like meetings have the same memory in turn."""
    like = Counter((each.ranks, each.call, _size_bytes(each)) for each in matched.meetings)
    return sum(
        min(count, MOST_ABREAST) * len(ranks) * size_bytes
        for (ranks, _, size_bytes), count in like.items()
    )


def _size_bytes(meeting: Any) -> int:
    from ringleaf.experiments.workloads.graph.schedules import ITEM_BYTES, elements_of

    return ITEM_BYTES * elements_of(meeting)
