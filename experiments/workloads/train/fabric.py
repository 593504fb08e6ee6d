"""Ranks, their clocks and calls: a state machine that says what may start, and who goes on.

Every rank is either running, and its clock unknown until it says something, or blocked in a wait,
or it has ended. The network may go on only when no rank is running: so nothing that a rank does
later can concern a time that is over (conservative simulation).

Source:
    Chandy and Misra, "Distributed simulation: a case study in design and verification of
    distributed programs", IEEE Transactions on Software Engineering SE-5(5), 1979.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto

from ringleaf.core.units import FOREVER_PS, format_time
from ringleaf.experiments.workloads.train.meeting import GroupMeetings
from ringleaf.experiments.workloads.train.parts import CallError, MatchedCalls, RankCall


class RankState(Enum):
    """What a rank does."""

    RUNNING = auto()
    BLOCKED = auto()
    ENDED = auto()


@dataclass(frozen=True, slots=True)
class CallDone:
    """To a rank: a call of its is over."""

    rank: int
    number: int
    now_ps: int
    source: int = -1  # of a message, the sender, as a rank of the group


@dataclass(frozen=True, slots=True)
class Go:
    """To a rank: its wait is over."""

    rank: int
    clock_ps: int


Answer = CallDone | Go


@dataclass(slots=True)
class _Rank:
    state: RankState = RankState.RUNNING
    clock_ps: int = 0  # when it last said something
    awaited: frozenset[int] = frozenset()  # calls, all of which it waits for
    watched: frozenset[int] = frozenset()  # calls, any of which lets it go on
    until_ps: int = FOREVER_PS  # a time that lets it go on
    is_soft: bool = False  # whether it may say something although it is blocked
    open: dict[int, str] = field(default_factory=dict)  # its calls that are not over, for people
    last_call: str = ""


class TrainingRanks:
    """The state of all ranks and their calls; without I/O, and without a network.

    Args:
        ranks: The number of ranks.
    """

    def __init__(self, ranks: int) -> None:
        self._ranks = [_Rank() for _ in range(ranks)]
        self._meeting = GroupMeetings(ranks)
        self._answers: list[Answer] = []

    # What ranks say.

    def join(self, rank: int, group: str, members: Sequence[int]) -> None:
        """Take note that a rank knows a process group.

        Raises:
            CallError: If another rank has the group with other members.
        """
        self._note(rank)
        self._meeting.join(rank, group, members)

    def call(self, group: str, part: RankCall) -> None:
        """Take a rank's call of a collective.

        Raises:
            CallError: If it does not fit the calls of other ranks.
        """
        rank, call = part.rank, part.call
        self._note(rank, part.clock_ps)
        self._meeting.call(group, part)
        at = self._ranks[rank]
        at.open[part.number] = at.last_call = f"{call} in {self.title(group)}"

    def wait(
        self,
        rank: int,
        awaited: Sequence[int],
        clock_ps: int,
        *,
        watched: Sequence[int] = (),
        until_ps: int = FOREVER_PS,
        is_soft: bool = False,
    ) -> None:
        """Take note that a rank does nothing before some of its calls are over.

        Args:
            rank: The rank.
            awaited: It goes on when all of these calls are over.
            clock_ps: Its clock.
            watched: It goes on when any of these calls is over.
            until_ps: It goes on at this time anyway.
            is_soft: Whether it may say something nevertheless, which ends the wait.
        """
        self._note(rank, clock_ps)
        at = self._ranks[rank]
        at.awaited = frozenset(awaited) & at.open.keys()
        at.watched = frozenset(watched)
        at.until_ps, at.is_soft = until_ps, is_soft
        at.state = RankState.BLOCKED
        is_over = not at.awaited and (awaited or not at.watched) and until_ps == FOREVER_PS
        if is_over or at.watched - at.open.keys():
            self._release(rank, clock_ps)

    def end(self, rank: int, clock_ps: int) -> None:
        """Take note that a rank has ended, and makes no more calls."""
        self._note(rank, clock_ps)
        self._ranks[rank].state = RankState.ENDED

    # What the network asks.

    @property
    def running(self) -> list[int]:
        """The ranks that are running."""
        return [rank for rank, at in enumerate(self._ranks) if at.state is RankState.RUNNING]

    @property
    def ended(self) -> list[int]:
        """The ranks that have ended."""
        return [rank for rank, at in enumerate(self._ranks) if at.state is RankState.ENDED]

    @property
    def has_ended(self) -> bool:
        """Whether all ranks have ended."""
        return all(at.state is RankState.ENDED for at in self._ranks)

    @property
    def has_soft(self) -> bool:
        """Whether a rank that is blocked may go on by itself."""
        return any(at.state is RankState.BLOCKED and at.is_soft for at in self._ranks)

    @property
    def is_idle(self) -> bool:
        """Whether no collective is under way."""
        return self._meeting.is_idle

    def next_ps(self) -> int:
        """Return the next time at which a collective may begin, or a rank goes on."""
        heads = (start_ps for start_ps, _ in self._meeting.starts())
        times = (at.until_ps for at in self._ranks if at.state is RankState.BLOCKED)
        return min((*heads, *times), default=FOREVER_PS)

    def ready(self, now_ps: int) -> Iterator[MatchedCalls]:
        """Return the collectives that may begin now, those that were called first before others."""
        return self._meeting.ready(now_ps)

    def begin(self, collective: MatchedCalls) -> None:
        """Take note that a collective that is ready has begun."""
        self._meeting.begin(collective)

    def finish(self, collective: MatchedCalls, now_ps: int) -> None:
        """Take note that a collective is over on all its ranks, or on all where it was not yet."""
        self._meeting.finish(collective)
        for part in collective.parts:
            if part.number in self._ranks[part.rank].open:
                self._end(collective, part, now_ps)

    def arrive(self, collective: MatchedCalls, now_ps: int) -> None:
        """Take note that a message is there: it is over for its receiver, not for its sender."""
        self._end(collective, collective.parts[1], now_ps)

    def _end(self, collective: MatchedCalls, part: RankCall, now_ps: int) -> None:
        source = self._meeting.source(collective)
        self._answers.append(CallDone(part.rank, part.number, now_ps, source))
        at = self._ranks[part.rank]
        del at.open[part.number]
        at.awaited -= {part.number}
        if at.state is RankState.BLOCKED and (
            part.number in at.watched
            or (not at.awaited and not at.watched and at.until_ps == FOREVER_PS)
        ):
            self._release(part.rank, now_ps)

    def reach(self, now_ps: int) -> None:
        """Take note of the time: ranks that have waited for it go on."""
        for rank, at in enumerate(self._ranks):
            if at.state is RankState.BLOCKED and at.until_ps <= now_ps:
                self._release(rank, now_ps)

    def take_answers(self) -> list[Answer]:
        """Return what ranks are to be told, in order."""
        answers, self._answers = self._answers, []
        return answers

    def match(self) -> None:
        """Bring together sends and receives; call it when no rank is running."""
        self._meeting.match()

    # What people ask.

    def title(self, group: str) -> str:
        """Return a group for people: `world`, or its ranks."""
        return self._meeting.title(group)

    def deadlock(self) -> str:
        """Return who waits for whom, where no rank can go on any more."""
        lines = [f"  rank {rank} {self.plight(rank)}" for rank in range(len(self._ranks))]
        return "\n".join(["no rank can go on:", *lines, *self._meeting.gaps()])

    def plight(self, rank: int) -> str:
        """Return what a rank does: `waits since 1.2 ms for all_reduce(...)`."""
        at = self._ranks[rank]
        when = f"at {format_time(at.clock_ps)}" if at.clock_ps else "at 0"
        if at.state is RankState.ENDED:
            return f"has ended {when}"
        if at.state is RankState.RUNNING:
            return f"last said {at.last_call or 'nothing'} {when}"
        awaited = sorted((at.awaited | at.watched) & at.open.keys())
        calls = "; ".join(at.open[number] for number in awaited) or "nothing that it has called"
        return f"waits {when} for {calls}"

    # Inside.

    def _note(self, rank: int, clock_ps: int = 0) -> None:
        """Note that a rank says something: it is running, then."""
        at = self._ranks[rank]
        if at.state is RankState.BLOCKED and at.is_soft:
            self._answers.append(Go(rank, at.clock_ps))
        elif at.state is not RankState.RUNNING:
            raise CallError(
                f"rank {rank}: must not call anything while it {self.plight(rank)}, got a call of "
                "another thread; make calls by one thread at a time"
            )
        at.state = RankState.RUNNING
        at.clock_ps = max(at.clock_ps, clock_ps)

    def _release(self, rank: int, now_ps: int) -> None:
        at = self._ranks[rank]
        at.state = RankState.RUNNING
        at.clock_ps = max(at.clock_ps, now_ps)
        at.awaited = at.watched = frozenset()
        at.until_ps = FOREVER_PS
        self._answers.append(Go(rank, at.clock_ps))
