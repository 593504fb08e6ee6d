"""The hosts on which the jobs of an experiment run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from ringleaf.core.units import format_count
from ringleaf.errors import ConfigError
from ringleaf.experiments.workloads.jobs.spec import JobsSpec

T = TypeVar("T")


def place_jobs(spec: JobsSpec, names: Sequence[T], count: int) -> list[tuple[list[T], list[T]]]:
    """Return the hosts of the ranks, and of the servers, of each of the first `count` jobs.

    Args:
        spec: The experiment.
        names: All hosts, by name or number; there must be enough.
        count: Number of jobs that run.
    """
    needs = [job.ranks + spec.servers for job in spec.jobs[:count]]
    if spec.placement == "packed":
        taken = [list(names[sum(needs[:i]) : sum(needs[: i + 1])]) for i in range(count)]
    else:
        taken = _deal(names, needs)
    return [
        (own[: job.ranks], own[job.ranks :]) for job, own in zip(spec.jobs, taken, strict=False)
    ]


def _deal(names: Sequence[T], needs: Sequence[int]) -> list[list[T]]:
    """Deal hosts to jobs in turn, so that neighbours belong to different ones."""
    taken: list[list[T]] = [[] for _ in needs]
    left = iter(names)
    while any(len(own) < need for own, need in zip(taken, needs, strict=True)):
        for own, need in zip(taken, needs, strict=True):
            if len(own) < need:
                own.append(next(left))
    return taken


def check_room(spec: JobsSpec, hosts: int) -> None:
    """Check that there are enough hosts for all jobs.

    Raises:
        ConfigError: If the topology has fewer.
    """
    if spec.needed_hosts > hosts:
        raise ConfigError(
            f"jobs: must fit the {format_count(hosts, 'host')} of {spec.topo}, got "
            f"{spec.needed_hosts} with "
            f"{format_count(spec.servers, 'server')} for each of {max(spec.counts)}"
        )
