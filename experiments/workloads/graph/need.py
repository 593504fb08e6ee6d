"""The memory and time that a graph of work needs."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.experiments.estimates.estimate import (
    BYTES_PER_S,
    CONSTANT,
    COPIES,
    SWITCH_S,
    Estimate,
    Need,
    costs_of,
    messages,
    sort_of,
    start_s,
)
from ringleaf.experiments.estimates.needs import PATH_LINKS, estimate_of_hops, network_bytes
from ringleaf.experiments.estimates.pace import RunPaces
from ringleaf.experiments.spec.kinds import NONE
from ringleaf.experiments.workloads.graph.loading import load
from ringleaf.experiments.workloads.graph.spec import WorkloadSpec
from ringleaf.hosts.workload.matched import Matched
from ringleaf.topologies.family import Counts

NODE_BYTES = 5 << 10  # per node of a graph of work: its times, and where it waits
MEETING_BYTES = 10 << 10  # per meeting: parts of its ranks, and its row of the messages
MOST_ABREAST = 2  # meetings of the same ranks and size that have memory at a time
MEETING_S = 6e-4  # per meeting: started, and noted
CHECKED_S = 6e-4  # more, if its data are made and checked


def need_of_work(spec: WorkloadSpec, counts: Counts, paces: RunPaces = CONSTANT) -> Need:
    """Return what a replay needs, its packets roughly counted.

    Args:
        spec: The run.
        counts: The size of its network.
        paces: The paces of the machine.
    """
    matched = load(spec)
    sent = sum(each.size_bytes * max(len(each.ranks) - 1, 1) for each in matched.meetings)
    hops = round(sent / spec.mtu_bytes * PATH_LINKS)
    estimate = estimate_of_work(spec, counts, matched, hops)
    sort = sort_of(spec, "+".join(spec.algos))
    return Need(estimate.memory_bytes, start_s(spec, paces) + estimate.paced(paces, sort).time_s)


def estimate_of_work(spec: WorkloadSpec, counts: Counts, matched: Matched, hops: int) -> Estimate:
    """Estimate the memory and time of a workload, whose packets arrive so many times."""
    from ringleaf.experiments.workloads.graph.data import data_of

    has_data = data_of(spec, matched) != NONE
    input_bytes = sum(each.size_bytes * len(each.ranks) for each in matched.meetings) * has_data
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
    setup_s = SWITCH_S * counts.switches + per_meeting_s * meetings + input_bytes / BYTES_PER_S
    timed = estimate_of_hops(spec, hops, _messages_of_work(spec, matched), setup_s)
    return Estimate(round(memory), hops, setup_s, timed.packets_s, timed.threads, timed.cores)


def _messages_of_work(spec: WorkloadSpec, matched: Matched) -> int:
    """Return the messages of all meetings, by the first algorithm."""
    algorithm = ALGORITHMS[spec.algos[0]]
    like = Counter((len(each.ranks), each.size_bytes) for each in matched.meetings)
    return sum(
        count * max(messages(algorithm, ranks, size_bytes), 1)
        for (ranks, size_bytes), count in like.items()
    )


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
