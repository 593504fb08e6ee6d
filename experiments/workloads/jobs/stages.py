"""The networks that jobs run on: one in virtual time, or Mininet's. Both play one director."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import networkx as nx

from ringleaf.core.units import PS_PER_S
from ringleaf.experiments.setup.network import simulated
from ringleaf.experiments.workloads.jobs.ledger import GradientLedger, LateLedger
from ringleaf.experiments.workloads.jobs.spec import JobsSpec

if TYPE_CHECKING:
    from ringleaf.hosts.schedulers.common.interface import Scheduler
    from ringleaf.hosts.training.job import TrainingJob
    from ringleaf.networks.endpoints.assignment import JobAssignment
    from ringleaf.networks.endpoints.endpoints import Endpoints
    from ringleaf.networks.endpoints.training import PieceTimes, Tell
    from ringleaf.networks.groups import Group
    from ringleaf.networks.live.coordinator import Lateness
    from ringleaf.networks.mininet.network import LiveTestbed
    from ringleaf.networks.options import NetworkOptions
    from ringleaf.networks.outcome import RunResult


@dataclass(frozen=True, slots=True)
class Play:
    """All that runs in one case.

    Args:
        options: The network's options.
        groups: The hosts of each job.
        assign: Returns the jobs, for the network's hosts.
        scheduler: Decides the order and times of pieces.
        ledger: Fills gradients, and checks their sums.
        tell: Is told how far the case is.
        pass_hops: Likewise, the number of packet arrivals so far; in virtual time only.
    """

    options: NetworkOptions
    groups: Sequence[Group]
    assign: Callable[[Endpoints], list[JobAssignment]]
    scheduler: Scheduler
    ledger: GradientLedger
    tell: Tell
    pass_hops: Callable[[int], None]


@dataclass(frozen=True, slots=True)
class JobsPerformance:
    """The result of a case: its jobs' histories, and the network's account.

    `wrong`, `reasons`: as the ledger has them. `moves`: changes of each job's part of switches'
    memory. `lateness` is of live hosts.
    """

    jobs: list[TrainingJob]
    stretches: list[PieceTimes]
    wrong: list[int | None]
    reasons: list[str]
    moves: list[int]
    outcome: RunResult
    lateness: Lateness | None = None


Stage = Callable[[Play], JobsPerformance]


def play_virtually(spec: JobsSpec, graph: nx.Graph[str], play: Play) -> JobsPerformance:
    """Play a case in virtual time."""
    from ringleaf.networks.endpoints.training import TrainingDirector

    network = simulated(spec, graph, play.options, play.groups)
    assignments = play.assign(network.endpoints)
    director = TrainingDirector(
        network.endpoints, assignments, play.scheduler, play.ledger, play.tell
    )
    outcome = network.play(director, play.pass_hops)
    network.close()
    ledger = play.ledger
    jobs = [each.job for each in assignments]
    moves, stretches = director.moves, director.stretches
    return JobsPerformance(jobs, stretches, ledger.wrong, ledger.reasons, moves, outcome)


def play_live(spec: JobsSpec, testbed: LiveTestbed, play: Play) -> JobsPerformance:
    """Play a case on a testbed, whose switches begin anew.

    Raises:
        BackendError: If a process ends, or nothing gets through any more.
    """
    from ringleaf.networks.endpoints.training import TrainingDirector
    from ringleaf.networks.mininet.network import MininetNetwork

    network = MininetNetwork(
        testbed,
        play.options,
        seed=spec.seed,
        stall_s=spec.stall_ps / PS_PER_S,
        groups=play.groups,
    )
    ledger = LateLedger(play.ledger)
    assignments = play.assign(network.endpoints)
    director = TrainingDirector(network.endpoints, assignments, play.scheduler, ledger, play.tell)

    def collect() -> tuple[
        list[TrainingJob], list[PieceTimes], list[int | None], list[str], list[int]
    ]:
        ledger.later.settle()
        jobs = [each.job for each in assignments]
        wrong, reasons = play.ledger.wrong, play.ledger.reasons
        return jobs, director.stretches, wrong, reasons, director.moves

    outcome, lateness, collected = network.play(director, collect)
    network.close()
    return JobsPerformance(*collected, outcome, lateness)


def predicting(options: NetworkOptions) -> NetworkOptions:
    """Return options for a prediction: nothing is kept, and no threads are left behind."""
    return replace(options, capture=None, record=None, threads=1)
