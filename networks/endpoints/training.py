"""A director of training jobs: connects their state machines, a scheduler and operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from ringleaf.collectives.schedule import Schedule
from ringleaf.core.tensors import Array
from ringleaf.core.units import FOREVER_PS
from ringleaf.hosts.executor.build import Executors
from ringleaf.hosts.schedulers.common.hooks import SeesLinks, Shifts, Splits
from ringleaf.hosts.schedulers.common.interface import (
    CHANNELS,
    Item,
    Release,
    Scheduler,
    Situation,
    Standing,
)
from ringleaf.hosts.training.accelerator import Accelerator
from ringleaf.hosts.training.pieces import GradientPiece
from ringleaf.ina.allocation import ALLOCATORS, OWN, Claim
from ringleaf.networks.endpoints.assignment import JobAssignment, Ledger
from ringleaf.networks.endpoints.credit import credit_bytes
from ringleaf.networks.endpoints.endpoints import Endpoints
from ringleaf.networks.endpoints.halves import halves
from ringleaf.networks.endpoints.keeper import Keeper
from ringleaf.networks.endpoints.kit import Kit, SchedulePlan
from ringleaf.networks.endpoints.knowledge import (
    busy_links,
    first_standing,
    places,
    prospect,
    sharing,
)
from ringleaf.networks.endpoints.operation import CollectiveOperation, Combine

Key = tuple[int, bool]
"""Elements, and whether it is the second half of a collective, which gathers."""


@dataclass(slots=True)
class _Ready:
    """All that a job's collectives need, made before time begins, and those under way."""

    kit: Kit[Key]
    credit_bytes: int | None
    schedules: dict[int, Schedule]  # by elements, whole
    split: bool  # whether collectives run in halves
    kept: dict[int, list[Array]] = field(default_factory=dict)  # by piece, between its halves
    channels: dict[int, Release] = field(default_factory=dict)  # in use

    def has_room(self, size_bytes: int) -> bool:
        """Return whether an item of `size_bytes` may start now."""
        under_way = sum(release.item.size_bytes for release in self.channels.values())
        is_within = self.credit_bytes is None or under_way + size_bytes <= self.credit_bytes
        return len(self.channels) < CHANNELS and (is_within or not under_way)


Tell = Callable[[float, int, int], None]


@dataclass(frozen=True, slots=True)
class _Started:
    """A collective that is under way."""

    release: Release
    start_ps: int
    gradients: list[Array]  # by rank; those of the piece are the first elements


@dataclass(frozen=True, slots=True)
class PieceTimes:
    """The times at which a piece was ready, started and reduced, in picoseconds."""

    job: int
    iteration: int
    piece: GradientPiece
    priority: int
    ready_ps: int
    start_ps: int
    end_ps: int
    gathers: bool = False  # it is the second half of a collective; else it is the first, or all


class TrainingDirector:
    """A `Director` of one job for each of the network's groups.

    Args:
        endpoints: The network's hosts, idle.
        assignments: The jobs, by group.
        scheduler: Decides the order and times of pieces.
        ledger: Fills gradients, and checks their sums.
        tell: Called when a piece is reduced: with the share of elements reduced so far, the
            number of iterations done and their total, counting jobs that end only.
    """

    def __init__(
        self,
        endpoints: Endpoints,
        assignments: Sequence[JobAssignment],
        scheduler: Scheduler,
        ledger: Ledger,
        tell: Tell = lambda share, done, total: None,
    ) -> None:
        self.endpoints = endpoints
        self.assignments = assignments
        self._scheduler = scheduler
        self._ledger = ledger
        self._waiting: list[Item] = []
        self._started: dict[tuple[int, int], _Started] = {}  # by group and channel
        self._now_ps = 0
        self._changed = True  # since the scheduler was last asked
        self._tell = tell
        self._reduced = 0  # elements of jobs that end
        self._served = [0] * len(assignments)  # bytes, by job
        self._busy_ps = [0] * len(assignments)  # with collectives under way, by job
        self._busy_from_ps = [0] * len(assignments)
        self._collectives = [0] * len(assignments)  # that are over, by job
        self.stretches: list[PieceTimes] = []
        self.moves = [0] * len(assignments)  # changes of their parts of switches' memory, by job
        self._movers = endpoints.movers()
        self._keeper = None
        if endpoints.allocator != OWN and self._movers:
            self._keeper = Keeper(self._movers, ALLOCATORS.find(endpoints.allocator, "memory"))
        self._running: set[int] = set()
        self._jobs = [each.job for each in assignments]
        for sharers in sharing([group.hosts for group in endpoints.groups]):
            sharers.sort(key=lambda number: assignments[number].turn)
            shared = Accelerator([self._jobs[number] for number in sharers])
            for number in sharers:
                self._jobs[number].accelerator = shared
        self._ready = self._prepare()
        links = [self._links(number) for number in range(len(assignments))]
        self._standings = [
            first_standing(
                each,
                endpoints.groups[number],
                place,
                in_order=number in endpoints.aggregators,
                link_ps=links[number],
            )
            for number, (each, place) in enumerate(
                zip(assignments, places(endpoints.graph, endpoints.groups), strict=True)
            )
        ]
        if isinstance(scheduler, Shifts):
            prospects = {i: prospect(each, links[i]) for i, each in enumerate(assignments)}
            for number, start_ps in scheduler.starts(prospects).items():
                assignments[number].job.hold(start_ps)

    def build(self) -> list[tuple[Executors, Combine]]:
        """Build the executors of all jobs, as hosts' processes need them before they are forked."""
        return [built for each in self._ready for built in each.kit.build()]

    def start(self, now_ps: int) -> None:
        """Begin all jobs' first iterations that are due."""
        self.reach(now_ps)

    def next_ps(self) -> int:
        """Return the earliest time at which a job's computation goes on; `FOREVER_PS`: never."""
        if self._over:
            return FOREVER_PS
        return min(job.next_ps() for job in self._jobs)

    def reach(self, now_ps: int) -> None:
        """Let the jobs go on up to a time, and collect the gradient pieces that became ready."""
        self._now_ps = now_ps
        self._changed = True
        # By time: jobs that share an accelerator get it from one another.
        while (first := min(self._jobs, key=lambda job: job.next_ps())).next_ps() <= now_ps:
            first.reach(first.next_ps())
        self._collect()

    def finish(self, operation: CollectiveOperation, now_ps: int) -> None:
        """Check a piece's sum and tell its job; a split piece has its gathering still to come."""
        self._now_ps = now_ps
        self._changed = True
        started = self._started.pop((operation.group, operation.channel))
        del self._ready[operation.group].channels[operation.channel]
        release, item = started.release, started.release.item
        job, ready = self.assignments[item.job].job, self._ready[item.job]
        end_ps = (
            operation.end_ps
        )  # hosts compute from then on, whenever the coordinator hears of it
        times = item.ready_ps, started.start_ps, end_ps
        about = item.job, job.reducing, item.piece, release.priority
        self.stretches.append(PieceTimes(*about, *times, item.gathers))
        self._collectives[item.job] += 1
        if not ready.channels:
            self._busy_ps[item.job] += end_ps - self._busy_from_ps[item.job]
        if ready.split and not item.gathers:
            ready.kept[item.piece.number] = started.gradients
            self._waiting.append(replace(item, ready_ps=end_ps, gathers=True))
            return
        self._ledger.check(
            item.job,
            item.piece,
            ready.schedules[item.piece.elements],
            [array[: item.piece.elements] for array in started.gradients],
        )
        ready.kit.stock.give_back(item.piece.elements, started.gradients)
        self._served[item.job] += item.size_bytes
        job.reduced(item.piece, end_ps)
        self._collect()
        if not self.assignments[item.job].endless:
            self._reduced += item.piece.elements
            self._say_how_far()

    def take_operations(self) -> list[CollectiveOperation]:
        """Ask the scheduler which pieces to release, and return those for which there is room."""
        if not self._changed or self._over:
            return []
        situation = Situation(
            self._now_ps,
            tuple(self._waiting),
            tuple(started.release for started in self._started.values()),
            {number: self._standing(number) for number in range(len(self.assignments))},
        )
        blocked = self._move_memory()
        released = []
        # By job without room for an item: the highest priority of its releases that have to wait.
        # Later items of such a job wait, too: none may pass.
        full: dict[int, int] = {}
        for release in self._scheduler.release(situation):
            job = release.item.job
            if job in blocked:
                continue
            if job not in full and self._ready[job].has_room(release.item.size_bytes):
                self._waiting.remove(release.item)
                released.append(self._launch(release))
            else:
                priority = release.priority if release.marks else 0
                full[job] = max(full.get(job, 0), priority)
        for job, priority in full.items():
            self.endpoints.raise_priority(job, priority)
        self._changed = bool(released)
        return released

    def _move_memory(self) -> set[int]:
        """Move jobs to other parts of switches' memory; return those that must wait for that."""
        if self._keeper is None:
            return set()
        running = {
            number
            for number, each in enumerate(self.assignments)
            if number in self._movers and each.job.history and not each.job.done
        }
        if running != self._running:
            self._running = running
            self._keeper.plan([self._claim(number) for number in sorted(running)])
        while move := self._keeper.next_move(lambda job: not self._ready[job].channels):
            self.endpoints.move(*move)
            self.moves[move[0]] += 1
        return self._keeper.held()

    def _claim(self, number: int) -> Claim:
        each, standing = self.assignments[number], self._standing(number)
        mover = self._movers[number]
        left = (each.job.iterations or 1) - standing.iterations_done
        due_ps = None
        if each.deadline_ps is not None:
            due_ps = each.job.start_ps + each.deadline_ps - self._now_ps
        return Claim(
            number,
            least=mover.least,
            most=mover.most,
            left_bytes=left * standing.size_bytes,
            left_ps=left * standing.compute_ps,
            hidden_ps=left * sum(layer.backward_ps for layer in each.job.model.layers),
            entry_bps=mover.entry_bps,
            link_bps=standing.link_bps,
            due_ps=due_ps,
        )

    @property
    def _over(self) -> bool:
        """Whether all jobs that end are done."""
        return all(each.job.done or each.endless for each in self.assignments)

    def _say_how_far(self) -> None:
        jobs = [each.job for each in self.assignments if not each.endless]
        elements = sum((job.iterations or 0) * job.model.elements for job in jobs)
        done = sum(each.end_ps < FOREVER_PS for job in jobs for each in job.history)
        self._tell(self._reduced / elements, done, sum(job.iterations or 0 for job in jobs))

    def _collect(self) -> None:
        """Collect the pieces that have become ready."""
        for number, each in enumerate(self.assignments):
            item = each.dtype.itemsize
            for piece in each.job.take_ready():
                self._waiting.append(Item(number, piece, piece.elements * item, self._now_ps))

    def _standing(self, number: int) -> Standing:
        each = self.assignments[number]
        job = each.job
        return replace(
            self._standings[number],
            iterations_done=max(job.reducing, 0) if job.iterations else 0,
            left_bytes=job.left_elements * each.dtype.itemsize,
            served_bytes=self._served[number],
            collectives=self._collectives[number],
            busy_ps=self._busy_ps[number],
            next_gradient_ps=job.next_gradient_ps,
            computing=job.computing_backward,
            layer=job.reached_layer,
        )

    def _launch(self, release: Release) -> CollectiveOperation:
        item = release.item
        number, piece = item.job, item.piece
        ready = self._ready[number]
        channel = min(set(range(CHANNELS)) - set(ready.channels))
        if not ready.channels:
            self._busy_from_ps[number] = self._now_ps
        ready.channels[channel] = release
        if item.gathers:
            arrays = ready.kept.pop(piece.number)
        else:
            arrays = ready.kit.stock.take(piece.elements)
        self._started[number, channel] = _Started(release, self._now_ps, arrays)
        gradients = [array[: piece.elements] for array in arrays]
        if not item.gathers:
            self._ledger.fill(number, piece, gradients)
        return ready.kit.operate(
            (piece.elements, item.gathers),
            channel,
            gradients,
            priority=release.priority,
            rate_bps=release.rate_bps,
            gain=release.gain,
            marks=release.marks,
        )

    def _links(self, number: int) -> dict[tuple[str, str], float]:
        """Return how long a job's gradients keep links busy, if the scheduler asks for that."""
        if not isinstance(self._scheduler, SeesLinks):
            return {}
        schedules = self._ready[number].schedules
        endpoints = self.endpoints
        group, longest = endpoints.groups[number], schedules[max(schedules)]
        return busy_links(endpoints.graph, group, longest, ecmp=endpoints.ecmp)

    def _prepare(self) -> list[_Ready]:
        """Make the queue pairs and the memory of all collectives that will run."""
        ready = [self._make_ready(number, each) for number, each in enumerate(self.assignments)]
        self.endpoints.memory.make_room(sum(each.kit.total_bytes for each in ready))
        for each in ready:
            each.kit.settle()
        return ready

    def _make_ready(self, number: int, each: JobAssignment) -> _Ready:
        schedules = {size: each.schedule_for(size) for size in _sizes(each)}
        parts = {}
        if isinstance(self._scheduler, Splits):
            parts = {size: halves(schedule) for size, schedule in schedules.items()}
        courses: dict[Key, SchedulePlan] = {}
        split = bool(parts) and None not in parts.values()
        for size, schedule in schedules.items():
            for gathers, part in enumerate((parts[size] or ()) if split else (schedule,)):
                courses[size, bool(gathers)] = SchedulePlan.of(part, size)
        pieces = [piece.elements for piece in each.job.pieces]
        kept = len(pieces) if split else None
        kit = Kit(self.endpoints, number, courses, pieces, each.dtype, channels=CHANNELS, kept=kept)
        credit = credit_bytes(self.endpoints.aggregators.get(number))
        return _Ready(kit, credit, schedules, split)


def _sizes(each: JobAssignment) -> set[int]:
    return {piece.elements for piece in each.job.pieces}
