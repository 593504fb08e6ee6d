"""Summaries of cases as rows and series."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

import networkx as nx
import numpy as np
import numpy.typing as npt

from ringleaf.core.units import FOREVER_PS, PS_PER_S
from ringleaf.experiments.records import circuit_counts, tree_counts
from ringleaf.experiments.records.link_use import time_busy_ps, uses_of
from ringleaf.experiments.records.slow_links import is_slow
from ringleaf.experiments.workloads.jobs.results import Combination, JobRow, JobsCase, jain
from ringleaf.experiments.workloads.jobs.spec import JobSpec
from ringleaf.experiments.workloads.jobs.stages import JobsPerformance
from ringleaf.experiments.workloads.jobs.timeline import spans_of
from ringleaf.hosts.training.job import TrainingJob
from ringleaf.networks.outcome import RunResult, tell_forbidden
from ringleaf.topologies.graph import link

Direction = tuple[str, str]


def summarise(
    graph: nx.Graph[str],
    combination: Combination,
    jobs: Sequence[JobSpec],
    done: JobsPerformance,
    shown: str = "",
    detect_ps: int | None = None,
) -> JobsCase:
    """Return a case: its rows, one per job, and the series of a shared link, queue and switch.

    Live, links, queues and switches' memory are not known over time.

    Args:
        graph: The topology.
        combination: The case.
        jobs: Its jobs.
        done: How they ran.
        shown: The link of the case before with as many jobs, so that both show the same one; "":
            the most loaded one that most jobs share.
        detect_ps: The time from a fault until routes and trees are others.
    """
    trained, outcome = done.jobs, done.outcome
    is_live = done.lateness is not None
    shared = _shared(graph, outcome)
    if shown:
        shared = next(ends for ends in outcome.link_bytes if " to ".join(ends) == shown)
    loads = _loads(graph, outcome)
    queues = outcome.queue_series
    fullest = ("", "")
    if queues:
        fullest = max(queues, key=lambda name: int(queues[name].sum(axis=0).max(initial=0)))
    switch, entries = _fullest(outcome)
    in_use = entries.sum(axis=0)
    fairness = _fairness([job for job in trained if _ended(job)])
    rows = [
        JobRow(
            jobs=combination.count,
            algo=job.algo or combination.algo,
            scheduler=combination.scheduler,
            entries=combination.entries,
            job=number + 1,
            model=job.model.name,
            ranks=job.ranks,
            iterations=len(_ended(trained[number])),
            size_bytes=job.model.size_bytes,
            compute_ps=job.model.compute_ps,
            moves=done.moves[number],
            deadline_ps=job.deadline_ps or None,
            wrong=done.wrong[number],
            reason=done.reasons[number],
            retransmissions=outcome.retransmissions,
            drops=outcome.drops,
            pauses=outcome.pauses,
            trims=outcome.trims,
            lost=outcome.lost,
            corrupted=outcome.corrupted,
            repaths=outcome.repaths,
            forbidden=tell_forbidden(outcome.forbidden),
            **circuit_counts.counts_of(outcome),
            **tree_counts.counts_of(outcome, detect_ps),
            peak_queue_bytes=outcome.peak_queue_bytes,
            busiest_percent=round(100 * max(loads), 3),
            links_percent=round(100 * fmean(loads), 3),
            memory_peak=None if is_live else int(in_use.max(initial=0)),
            memory_mean=None if is_live else round(float(in_use.mean()) if in_use.size else 0.0, 3),
            fairness=fairness,
            packet_hops=outcome.packet_hops,
            late_ps=done.lateness.mean_ps if done.lateness else None,
            most_late_ps=done.lateness.most_ps if done.lateness else None,
            limit=outcome.usage.limit if outcome.usage else "",
            **_times(trained[number]),
        )
        for number, job in enumerate(jobs)
    ]
    return JobsCase(
        combination,
        rows,
        spans=spans_of(trained, done.stretches),
        bin_ps=outcome.bin_ps,
        link=" to ".join(shared),
        link_series=outcome.owner_series.get(shared),
        link_rate_bps=link(graph, *shared).rate_bps,
        queue_bin_ps=outcome.queue_bin_ps,
        queue=" to ".join(fullest) if queues else "",
        queue_series=queues.get(fullest),
        memory_interval_ps=outcome.memory_interval_ps,
        memory_switch=switch,
        memory_series=entries if switch else None,
        drops=outcome.drop_counts,
        uses=uses_of(graph, outcome),
        wall_s=outcome.wall_s,
    )


def with_prediction(case: JobsCase, foretold: JobsCase) -> JobsCase:
    """Return a live case, with the jobs' completion times in virtual time in its rows."""
    rows = [
        replace(row, virtual_jct_ps=each.jct_ps)
        for row, each in zip(case.rows, foretold.rows, strict=True)
    ]
    return replace(case, rows=rows)


def _ended(job: TrainingJob) -> list[int]:
    """Return durations of the iterations that are complete, with their gradients."""
    return [each.end_ps - each.start_ps for each in job.history if each.end_ps < FOREVER_PS]


def _speed(job: TrainingJob) -> float:
    """Return a job's speed over all iterations, which overlap; 1 is the speed without any waits."""
    done = [each for each in job.history if each.end_ps < FOREVER_PS]
    return job.model.compute_ps * len(done) / max(done[-1].end_ps - job.start_ps, 1)


def _fairness(jobs: Sequence[TrainingJob]) -> float | None:
    """Return Jain's index of jobs' speeds; None if one computes for no time, and so has none."""
    if not all(job.model.compute_ps for job in jobs):
        return None
    return round(jain(list(map(_speed, jobs))), 6)


def _times(job: TrainingJob) -> dict[str, Any]:
    done = [each for each in job.history if each.end_ps < FOREVER_PS]
    if not done:
        return {"jct_ps": 0, "iteration_ps": 0, "wait_ps": 0, "front_wait_ps": 0}
    jct_ps = done[-1].end_ps - job.start_ps
    front = -(-len(job.model.layers) // 4)
    later = [each.waits_ps for each in done[1:]]
    return {
        "jct_ps": jct_ps,
        "iteration_ps": jct_ps // len(done),
        "wait_ps": round(fmean(map(sum, later))) if later else 0,
        "front_wait_ps": round(fmean(sum(waits[:front]) for waits in later)) if later else 0,
    }


def _load(graph: nx.Graph[str], outcome: RunResult, direction: Direction) -> float:
    """Return the load of a direction of a link while jobs ran; 1 is its full rate."""
    if is_slow(graph, direction):
        return time_busy_ps(graph, outcome, direction) / max(outcome.time_ps, 1)
    took_s = max(outcome.time_ps, 1) / PS_PER_S
    return outcome.link_bytes[direction] * 8 / (link(graph, *direction).rate_bps * took_s)


def _loads(graph: nx.Graph[str], outcome: RunResult) -> list[float]:
    """Return the loads of the directions that carried anything."""
    used = (direction for direction, size in outcome.link_bytes.items() if size)
    return [_load(graph, outcome, direction) for direction in used] or [0.0]


def _shared(graph: nx.Graph[str], outcome: RunResult) -> Direction:
    """Return the most loaded direction of a link, of those that most jobs share."""

    def sharing(direction: Direction) -> int:
        series = outcome.owner_series.get(direction)
        return 0 if series is None else int(series.any(axis=1).sum())

    return max(outcome.link_bytes, key=lambda each: (sharing(each), _load(graph, outcome, each)))


def _fullest(outcome: RunResult) -> tuple[str, npt.NDArray[np.int64]]:
    """Return the switch with most entries in use at a time, and their series by group number."""

    def use(name: str) -> tuple[int, int]:
        in_use = outcome.memory_series[name].sum(axis=0)
        return int(in_use.max(initial=0)), int(in_use.sum())

    if not outcome.memory_series:
        return "", np.zeros((1, 0), np.int64)
    fullest = max(outcome.memory_series, key=use)
    return fullest, outcome.memory_series[fullest]
