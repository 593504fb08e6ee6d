"""The memory and time that jobs need."""

from __future__ import annotations

from collections.abc import Sequence

from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.experiments.estimates.estimate import (
    CONSTANT,
    COPIES,
    FLOAT32_BYTES,
    SWITCH_S,
    TORCH_BYTES,
    USUAL,
    Estimate,
    Need,
    costs_of,
    draft,
    loads_torch,
    mean_copies,
    sort_of,
    start_s,
)
from ringleaf.experiments.estimates.needs import PATH_LINKS, estimate_of_hops, network_bytes
from ringleaf.experiments.estimates.pace import RunPaces
from ringleaf.experiments.workloads.jobs.spec import JobSpec, JobsSpec
from ringleaf.topologies.family import Counts

OTHER_PIECES = 1 / 8
"""The share of a job's other pieces that are in memory beside its largest one."""


def need_of_jobs(spec: JobsSpec, counts: Counts, paces: RunPaces = CONSTANT) -> Need:
    """Return what all cases of a spec need.

    All jobs' inputs are parts of one long tensor, and a job has those of its pieces in memory
    that are on their way: the largest layer's, and a few others.

    Args:
        spec: The run.
        counts: The size of its network.
        paces: The paces of the machine.
    """
    sizes_bytes = [
        _bytes_of_jobs(spec, counts, spec.jobs[:count], name)
        for count in spec.counts or (len(spec.jobs),)
        for name in spec.algos
    ]
    times = len(spec.schedulers) * max(1, len(spec.entries or ()))
    cases_s = sum(
        estimate_of_jobs(spec, counts).paced(paces, sort_of(spec, name)).time_s
        for _ in spec.counts or (None,)
        for name in spec.algos
    )
    return Need(max(sizes_bytes), start_s(spec, paces) + times * cases_s)


def estimate_of_jobs(spec: JobsSpec, counts: Counts) -> Estimate:
    """Estimate the time of one combination of jobs; their packets are counted as those of rings."""
    longest = max(job.iterations or 1 for job in spec.jobs)
    sent = sum(
        2 * job.ranks * (job.iterations or longest) * job.model.elements * FLOAT32_BYTES
        for job in spec.jobs
    )
    hops = round(sent / spec.mtu_bytes * PATH_LINKS)
    sends = sum(
        2 * job.ranks**2 * (job.iterations or longest) * len(job.model.layers) for job in spec.jobs
    )
    return estimate_of_hops(spec, hops, sends, SWITCH_S * counts.switches)


def _bytes_of_jobs(spec: JobsSpec, counts: Counts, jobs: Sequence[JobSpec], algorithm: str) -> int:
    inputs = max(job.model.elements for job in jobs) * FLOAT32_BYTES
    switch_bytes = costs_of(ALGORITHMS[jobs[0].algo or algorithm]).switch_bytes
    tensors = 0.0
    for job in jobs:
        largest = max(layer.elements for layer in job.model.layers)
        elements = largest + OTHER_PIECES * (job.model.elements - largest)
        tensors += job.ranks * elements * FLOAT32_BYTES * _copies_of_job(job, algorithm)
    torch = TORCH_BYTES * loads_torch(spec)
    return round(inputs + tensors + torch) + network_bytes(counts, switch_bytes)


def _copies_of_job(job: JobSpec, algorithm: str) -> float:
    used = ALGORITHMS[job.algo or algorithm]
    if used.in_network:
        return COPIES
    largest = max(layer.elements for layer in job.model.layers)
    drafted = draft(used, job.ranks, largest * FLOAT32_BYTES)
    return mean_copies(COPIES + drafted.scratch, drafted.buffers) if drafted else COPIES + USUAL
