"""Compare recoveries: the same training, with the same losses, by each of them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from functools import cached_property
from typing import Any

from ringleaf.core.faults import SLOW
from ringleaf.core.units import PS_PER_S, format_time
from ringleaf.errors import ConfigError
from ringleaf.experiments.records.folder import RunFolder
from ringleaf.experiments.runs.kind import Experiment
from ringleaf.experiments.runs.progress import Progress
from ringleaf.experiments.setup.network import divide_injection, make_graph
from ringleaf.experiments.workloads.graph.placement import place_ranks
from ringleaf.experiments.workloads.recovery.about import NOTES, about
from ringleaf.experiments.workloads.recovery.results import (
    RecoveryResults,
)
from ringleaf.experiments.workloads.recovery.spec import (
    USUAL_INTERVAL,
    RecoverySpec,
    is_host_loss,
)
from ringleaf.experiments.workloads.recovery.traffic import PlanTraffic
from ringleaf.hosts.recoveries.checkpoint import young_s
from ringleaf.hosts.recoveries.common.course import Course
from ringleaf.hosts.recoveries.common.interface import NoPlanError, regular_plan
from ringleaf.hosts.recoveries.common.losses import Loss, LossQueue
from ringleaf.hosts.recoveries.common.registry import RECOVERIES
from ringleaf.hosts.workload.slowness import slowness_of
from ringleaf.networks.faults import check_apart
from ringleaf.topologies.graph import hosts


def fit(spec: RecoverySpec) -> RecoverySpec:
    """Return the spec with a host for each rank, spare ones included."""
    _, split = spec.model_sizes()
    ranks = spec.workers * split.tp * split.cp
    return spec if spec.hosts else spec.model_copy(update={"hosts": max(ranks, 2)})


def simulated_iterations(spec: RecoverySpec) -> int:
    """Return about how many iterations are simulated: of each recovery one for each loss."""
    return 1 + len(spec.recovery) * (1 + sum(is_host_loss(each) for each in spec.faults))


class RecoveryExperiment(Experiment[RecoverySpec]):
    """A spec with its topology.

    Raises:
        ConfigError: If there are not enough hosts, or a fault is of a host that there is not.
        TopologyError: If there is no such topology.
    """

    def __init__(self, spec: RecoverySpec) -> None:
        super().__init__()
        self.spec = spec = divide_injection(fit(spec))
        self.graph = make_graph(spec)
        _, split = spec.model_sizes()
        self._per_worker = split.tp * split.cp
        ranks = spec.workers * self._per_worker
        self.hosts = place_ranks(hosts(self.graph), ranks, spec.placement, spec.seed)
        self._rank_of = {host: rank for rank, host in enumerate(self.hosts)}
        self._slowness = slowness_of(spec.faults, self.hosts)
        self._check_faults()

    def _check_faults(self) -> None:
        """Check that hosts that are down have workers, and are down once at a time."""
        check_apart((each for each in self.spec.faults if each.kind != SLOW), self.graph)
        for fault in self.spec.faults:
            if is_host_loss(fault) and fault.place not in self._rank_of:
                raise ConfigError(
                    f"faults: a host that is down must have a worker, got {str(fault)!r}; like one "
                    f"of {', '.join(self.hosts[:3])}"
                )

    @property
    def count(self) -> int:
        """The recoveries."""
        return len(self.spec.recovery)

    @cached_property
    def results(self) -> RecoveryResults:
        """The results, which still have no rows at first."""
        return RecoveryResults(about=about(self), notes=NOTES, config=self.plain())

    def plain(self) -> dict[str, Any]:
        """Return the options, and where ranks are."""
        return self.spec.plain() | {"hosts_of_ranks": self.hosts}

    def record(self, shown: Progress, folder: RunFolder) -> Generator[None]:
        """Train by each recovery, and yield after each."""
        del folder
        yield from self.compare(lambda what: shown.begin(what, packets_s=1))

    def compare(self, tell: Callable[[str], None] = lambda what: None) -> Generator[None]:
        """Train by each recovery, and yield after each; `tell` is told what comes next.

        Raises:
            NoPlanError: If there is one recovery only, and it can't go on.
        """
        spec = self.spec
        traffic = PlanTraffic(spec, self.graph)
        tell("iteration without losses")
        usual = regular_plan(spec.shape, tuple(range(spec.workers)))
        self.results.usual_ps = usual_ps = traffic.alone_ps(usual)
        if any(RECOVERIES[name].saves for name in spec.recovery):
            apart, why = format_time(self._interval_ps(usual_ps)), self._interval_by
            self.results.checkpoints = f"checkpoints are {apart} apart at least, {why}"
        for name in spec.recovery:
            tell(name)
            course = self._course(name, traffic)
            try:
                course.run(spec.iterations)
            except NoPlanError as error:
                if self.count == 1:
                    raise
                self.results.ended.append(f"{error}, at {format_time(course.now_ps)}")
            self.results.take(name, course, usual_ps, traffic)
            yield

    def _course(self, name: str, traffic: PlanTraffic) -> Course:
        spec = self.spec
        return Course(
            RECOVERIES[name],
            spec.shape,
            spec.workers,
            LossQueue(self._listed(), self._drawn()),
            spec.pauses(self._interval_ps(self.results.usual_ps)),
            traffic,
            paces=self._paces,
            seed=spec.seed,
        )

    @property
    def _interval_by(self) -> str:
        """What the time between checkpoints follows from."""
        if self.spec.checkpoint_interval_ps is not None:
            return "as asked for"
        return f"{USUAL_INTERVAL} iterations" if self.spec.rates is None else "by Young's formula"

    def _interval_ps(self, usual_ps: int) -> int:
        """Return the time between checkpoints."""
        spec = self.spec
        if spec.checkpoint_interval_ps is not None:
            return spec.checkpoint_interval_ps
        if spec.rates is None:
            return USUAL_INTERVAL * usual_ps
        mttf_s = spec.rates.mttf_s(len(self.hosts), spec.failures_times)
        return round(PS_PER_S * young_s(spec.checkpoint_cost_ps / PS_PER_S, mttf_s))

    def _paces(self, now_ps: int) -> dict[int, float]:
        """Return the workers that are slow at a time: each is as slow as its slowest host."""
        paces: dict[int, float] = {}
        for rank in range(len(self.hosts)):
            times = self._slowness.times_at(rank, now_ps)
            if times > 1:
                worker = rank // self._per_worker
                paces[worker] = max(paces.get(worker, 1.0), times)
        return paces

    def _drawn(self) -> Iterator[Loss]:
        """Yield the losses that are drawn, without end, if there are rates."""
        spec = self.spec
        if spec.rates is None:
            return
        for at_ps, host, kind in spec.rates.draw(len(self.hosts), spec.seed, spec.failures_times):
            after_ps = spec.restart_ps if kind.comes_back else spec.repair_ps
            back_ps = None if after_ps is None else at_ps + after_ps
            yield self._loss(at_ps, host, kind.kind, back_ps)

    def _listed(self) -> Iterator[Loss]:
        """Yield the losses that the options list, in the order of time."""
        losses = [
            self._loss(at_ps, self._rank_of[fault.place], fault.place, back_ps)
            for fault in self.spec.faults
            if is_host_loss(fault)
            for at_ps, back_ps in fault.spans()
        ]
        yield from sorted(losses, key=lambda loss: (loss.at_ps, loss.worker))

    def _loss(self, at_ps: int, host: int, kind: str, back_ps: int | None) -> Loss:
        """Return the loss of a host's worker."""
        return Loss(at_ps, host // self._per_worker, kind, back_ps, host)
