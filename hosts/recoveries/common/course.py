"""The course of a training that loses workers, without I/O: iterations, losses, recoveries.

An iteration in which a worker of the plan is lost counts for nothing, as the sums of its gradients
lack that worker's. After the loss is detected, the recovery plans anew; what the new plan's workers
lack is copied from owners that are left, or all begin anew from the last checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from ringleaf.core.units import format_count
from ringleaf.hosts.recoveries.common.interface import NoPlanError, Recovery
from ringleaf.hosts.recoveries.common.losses import Loss, LossQueue
from ringleaf.hosts.recoveries.common.plan import (
    LayerCopy,
    LossSituation,
    PipelineShape,
    Plan,
    copies_for,
)

MOST_IN_VAIN = 100
"""Recoveries, one after the other, without getting further than before."""


class Phase(Enum):
    """The kinds of stretches of a training."""

    ITERATION = "iteration"
    LOST = "lost"
    SAVE = "checkpoint"
    DETECT = "detect"
    RESTART = "restart"
    COPY = "copy"
    WAIT = "wait"


@dataclass(frozen=True, slots=True)
class PhaseSpan:
    """A phase of a training, in picoseconds."""

    phase: Phase
    start_ps: int
    end_ps: int


@dataclass(frozen=True, slots=True)
class RecoveryPauses:
    """The times that pass beside iterations and copies, in picoseconds.

    Attributes:
        detect_ps: From a loss until the others know of it.
        regroup_ps: To make communicators anew and go on, where nothing is read from a checkpoint.
        restart_ps: To begin anew from a checkpoint.
        save_ps: To write a checkpoint.
        interval_ps: From one checkpoint to the next.
    """

    detect_ps: int
    regroup_ps: int
    restart_ps: int
    save_ps: int
    interval_ps: int


class PlanTimes(Protocol):
    """The network: how long iterations and copies take on it."""

    def iterate(self, plan: Plan, start_ps: int) -> int:
        """Return the time of an iteration that begins then."""

    def copy(self, copies: Sequence[LayerCopy], start_ps: int) -> int:
        """Return the time of copies that begin then."""


@dataclass(slots=True)
class Recovered:
    """A recovery from losses; times in picoseconds.

    Attributes:
        at_ps: When the first worker was lost.
        workers: The workers that were lost, up to when the training went on.
        kinds: What had failed.
        lost_ps: Time of iterations that count for nothing, but for the pauses.
        undone: Iterations that had been done, and are done again.
        detect_ps: Time until the losses were known.
        pause_ps: Time until communicators were there, or all had begun anew.
        copy_ps: Time of copies.
        copied: Layers that were copied, with repetitions.
        resumed_ps: When the next iteration began.
        pipelines: Pipelines from then on.
        restarted: Whether it began anew from a checkpoint, or from the start.
    """

    at_ps: int
    workers: list[int] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    lost_ps: int = 0
    undone: int = 0
    detect_ps: int = 0
    pause_ps: int = 0
    copy_ps: int = 0
    copied: int = 0
    resumed_ps: int = 0
    pipelines: int = 0
    restarted: bool = False

    @property
    def took_ps(self) -> int:
        """The time from the loss until the next iteration began."""
        return self.resumed_ps - self.at_ps


Paces = Callable[[int], Mapping[int, float]]
"""Returns, at a time, the factors of those workers that are slower than usual."""


class Course:
    """A training from its start until so many iterations are done.

    `phases` are what it has done so far, `recovered` its recoveries; `joins` counts how often
    workers that came back were taken in, `copied` the layers whose state was copied.

    Args:
        recovery: Plans.
        shape: The model in pipelines.
        workers: Workers at the start, spare ones included.
        losses: The losses to come.
        pauses: Times that are not simulated.
        traffic: Times that are.
        paces: Says which workers are slow.
        seed: Of what recoveries choose at random.
    """

    def __init__(
        self,
        recovery: Recovery,
        shape: PipelineShape,
        workers: int,
        losses: LossQueue,
        pauses: RecoveryPauses,
        traffic: PlanTimes,
        *,
        paces: Paces = lambda now_ps: {},
        seed: int = 1,
    ) -> None:
        self._recovery, self._shape, self._losses = recovery, shape, losses
        self._pauses, self._traffic, self._paces, self._seed = pauses, traffic, paces, seed
        self._alive = set(range(workers))
        self._back: dict[int, int] = {}  # when lost workers are there again
        self._down: dict[tuple[int, int], int | None] = {}  # likewise hosts; None: never
        self._lost: set[int] = set()  # since the plan was made; their state is gone
        self._offered = set(self._alive)  # those that the plan was made for
        self._known = paces(0)
        self._saved = self._saved_ps = 0  # iterations, and when
        self._since: list[int] = []  # times of iterations since then
        self._news: list[Loss] = []  # since the training went on
        self._best = self._tries = 0  # the most iterations done, and recoveries since then
        self._in_vain_ps = 0  # time of the iteration in which a worker was lost
        self.now_ps = self.done = self.joins = self.copied = 0
        self.phases: list[PhaseSpan] = []
        self.recovered: list[Recovered] = []
        self.plan = recovery.begin(self._situation())
        self.plan.check(shape.layers)

    def run(self, iterations: int) -> None:
        """Go on until so many iterations are done.

        Raises:
            NoPlanError: If too few workers are left and none comes back, or losses leave no time
                for an iteration.
        """
        while self.done < iterations:
            self._in_vain_ps = 0
            if not (self._take_in() and self._save() and self._iterate()):
                self._recover()
            elif self.done > self._best:
                self._best, self._tries = self.done, 0

    def total_ps(self, phase: Phase) -> int:
        """Return the time of all phases of a kind."""
        return sum(each.end_ps - each.start_ps for each in self.phases if each.phase is phase)

    def _situation(self) -> LossSituation:
        return LossSituation(self._shape, tuple(sorted(self._alive)), self._known, self._seed)

    # Steps, which return whether they were done before a worker of the plan was lost.

    def _iterate(self) -> bool:
        start_ps = self.now_ps
        time_ps = self._traffic.iterate(self.plan, start_ps)
        is_done = self._pass(Phase.ITERATION, time_ps, self.plan.spans)
        if is_done:
            self.done += 1
            self._since.append(time_ps)
        else:
            self._in_vain_ps = self.now_ps - start_ps
        return is_done

    def _save(self, *, is_due: bool = False) -> bool:
        """Write a checkpoint, if it is time."""
        age_ps = self.now_ps - self._saved_ps
        if not (self._recovery.saves and self._since):
            return True
        if not is_due and age_ps < self._pauses.interval_ps:
            return True
        is_done = self._pass(Phase.SAVE, self._pauses.save_ps, self.plan.spans)
        if is_done:
            self._saved, self._saved_ps, self._since = self.done, self.now_ps, []
        return is_done

    def _take_in(self) -> bool:
        """Plan anew if workers have come back, or have become slower and that matters."""
        self._come_back(self.now_ps)
        paces = self._paces(self.now_ps)
        is_paced = self._recovery.adapts and paces != self._known
        if self._alive <= self._offered and not is_paced:
            return True
        self._known = paces
        plan = self._recovery.replan(self._situation(), self.plan)
        copies = self._copies(plan)
        if plan.key == self.plan.key or copies is None:
            self._offered = set(self._alive)
            return True
        if not self._save(is_due=True):
            return False
        self.joins += not is_paced
        pause_ps = self._pauses.restart_ps if self._recovery.saves else self._pauses.regroup_ps
        return self._go_over(plan, copies, pause_ps if copies or not is_paced else 0)

    def _copies(self, plan: Plan) -> list[LayerCopy] | None:
        """Return the copies for a plan; None: some layer has no owner that is left."""
        if self._recovery.saves:
            return []  # all read the checkpoint
        return copies_for(self.plan, plan, self._alive - self._lost)

    def _go_over(self, plan: Plan, copies: Sequence[LayerCopy], pause_ps: int) -> bool:
        """Go over to a plan."""
        concerned = {*plan.spans, *(each.source for each in copies)}
        if not self._pass(Phase.RESTART, pause_ps, concerned):
            return False
        if copies:
            time_ps = self._traffic.copy(copies, self.now_ps)
            self.copied += sum(len(each.layers) for each in copies)
            if not self._pass(Phase.COPY, time_ps, concerned):
                return False
        plan.check(self._shape.layers)
        self.plan, self._offered = plan, set(self._alive)
        self._lost.clear()
        self._saved_ps = self.now_ps if self._recovery.saves else self._saved_ps
        return True

    def _pass(self, phase: Phase, time_ps: int, concerned: Collection[int]) -> bool:
        """Let time pass, up to when one of these workers is lost; return whether none was."""
        struck_ps = self._meet_losses(self.now_ps + time_ps, concerned)
        if struck_ps is None:
            self._spend(phase, time_ps)
            return True
        lost = Phase.LOST if phase is Phase.ITERATION else phase
        self._spend(lost, max(struck_ps - self.now_ps, 0))
        return False

    def _spend(self, phase: Phase, time_ps: int) -> None:
        if time_ps:
            self.phases.append(PhaseSpan(phase, self.now_ps, self.now_ps + time_ps))
        self.now_ps += time_ps

    # Losses and returns.

    def _meet_losses(self, until_ps: int, concerned: Collection[int]) -> int | None:
        """Take note of losses up to a time, or up to one of these workers; return when it was."""
        while self._losses.next_ps <= until_ps:
            loss = self._losses.take()
            self._come_back(loss.at_ps)
            if not self._fail(loss):
                continue
            if loss.worker in concerned or loss.worker in self.plan.spans:
                self._news.append(loss)
            if loss.worker in concerned:
                return loss.at_ps
        return None

    def _fail(self, loss: Loss) -> bool:
        """Let a host fail; return whether that is the loss of its worker, which was there."""
        host, worker = (loss.worker, loss.host), loss.worker
        until_ps = self._down.get(host, 0)
        if until_ps is None or until_ps > loss.at_ps:
            return False  # it is down, and so cannot fail
        self._down[host] = loss.back_ps
        is_loss = worker in self._alive
        self._alive.discard(worker)
        self._lost.add(worker)
        back_ps = 0 if is_loss else self._back.pop(worker, None)
        if back_ps is not None and loss.back_ps is not None:
            # It comes back when the last of its hosts does.
            self._back[worker] = max(back_ps, loss.back_ps)
        return is_loss

    def _come_back(self, now_ps: int) -> None:
        for worker in [each for each, at_ps in self._back.items() if at_ps <= now_ps]:
            self._alive.add(worker)
            self._offered.discard(worker)
            del self._back[worker]

    # Recoveries.

    def _recover(self) -> None:
        """Go on after a loss; others may be lost meanwhile."""
        note = Recovered(self.now_ps, lost_ps=self._in_vain_ps)
        self.recovered.append(note)
        try:
            while not self._try(note):
                pass
        finally:
            note.workers = [loss.worker for loss in self._news]
            note.kinds = [loss.kind for loss in self._news]
            self._news.clear()
            note.resumed_ps, note.pipelines = self.now_ps, len(self.plan.pipelines)

    def _try(self, note: Recovered) -> bool:
        """Detect losses, plan, copy; return whether no further worker was lost meanwhile."""
        self._tries += 1
        if self._tries > MOST_IN_VAIN:
            raise NoPlanError(
                f"recovery: losses leave no time for an iteration, got {MOST_IN_VAIN} since "
                f"{format_count(self._best, 'iteration')}; take fewer losses, or shorter pauses"
            )
        pauses, detected_ps = self._pauses, self.now_ps
        self._spend(Phase.DETECT, pauses.detect_ps)
        self._meet_losses(self.now_ps, ())
        note.detect_ps += self.now_ps - detected_ps
        plan = self._replan()
        copies = self._copies(plan)
        if self._recovery.saves or copies is None or note.restarted:
            self._roll_back(note)
            copies = []
        pause_ps = pauses.restart_ps if note.restarted else pauses.regroup_ps
        begun = len(self.phases)
        is_done = self._go_over(plan, copies, pause_ps)
        for phase in self.phases[begun:]:
            if phase.phase is Phase.COPY:
                note.copy_ps += phase.end_ps - phase.start_ps
            else:
                note.pause_ps += phase.end_ps - phase.start_ps
        note.copied += sum(len(each.layers) for each in copies)
        return is_done

    def _replan(self) -> Plan:
        """Return the new plan, if need be of workers that come back later.

        Raises:
            NoPlanError: If too few workers are left, and none comes back.
        """
        self._known = self._paces(self.now_ps)
        while True:
            self._come_back(self.now_ps)
            try:
                return self._recovery.replan(self._situation(), self.plan)
            except NoPlanError:
                if not self._back:
                    raise
            self._spend(Phase.WAIT, max(min(self._back.values()) - self.now_ps, 0))
            self._meet_losses(self.now_ps, ())

    def _roll_back(self, note: Recovered) -> None:
        """Go back to the last checkpoint, or to the start if there is none."""
        note.restarted = True
        note.undone += self.done - self._saved
        note.lost_ps += sum(self._since)
        self.done, self._since = self._saved, []
