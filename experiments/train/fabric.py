"""Ranks, their clocks and calls: a state machine that says what may start, and who goes on.

Every rank is either running, and its clock unknown until it says something, or blocked in a wait,
or it has ended. The network may go on only when no rank is running: so nothing that a rank does
later can concern a time that is over (conservative simulation). A collective begins when the last
of its ranks has called it, and not before the one before it in its group is over, as on a CUDA
stream: calls of one group take place one after the other, those of different groups side by side.

Source:
    Chandy and Misra, "Distributed simulation: a case study in design and verification of
    distributed programs", IEEE Transactions on Software Engineering SE-5(5), 1979.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto

from ringleaf.errors import BackendError
from ringleaf.experiments.train.calls import ANY, PAIRED, SEND, Call
from ringleaf.units import FOREVER_PS, format_time

WORLD = "world"


class State(Enum):
    """What a rank does."""

    RUNNING = auto()
    BLOCKED = auto()
    ENDED = auto()


class CallError(BackendError):
    """Calls that can't go together, or that can never end."""


@dataclass(frozen=True, slots=True)
class Part:
    """One rank's part in a collective."""

    rank: int  # of the world
    number: int  # of the call, by its rank
    call: Call
    clock_ps: int  # when it was made
    buffer: str = ""  # where its data lie


@dataclass(frozen=True, slots=True)
class Collective:
    """Calls that belong together.

    Attributes:
        group: The name of the process group.
        members: The world's ranks that take part, in the order of the group's ranks; of a
            message, sender and receiver.
        parts: Their calls, in this order.
        number: The place among the group's calls, from 0; of a message, among those between the
            two.
        start_ps: When the last of them was made.
    """

    group: str
    members: tuple[int, ...]
    parts: tuple[Part, ...]
    number: int
    start_ps: int

    @property
    def call(self) -> Call:
        """The first member's call."""
        return self.parts[0].call


@dataclass(frozen=True, slots=True)
class Done:
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


Answer = Done | Go


@dataclass(slots=True)
class _Rank:
    state: State = State.RUNNING
    clock_ps: int = 0  # when it last said something
    awaited: frozenset[int] = frozenset()  # calls, all of which it waits for
    watched: frozenset[int] = frozenset()  # calls, any of which lets it go on
    until_ps: int = FOREVER_PS  # a time that lets it go on
    is_soft: bool = False  # whether it may say something although it is blocked
    open: dict[int, str] = field(default_factory=dict)  # its calls that are not over, for people
    said: str = ""  # its last call


@dataclass(slots=True)
class _Group:
    members: tuple[int, ...]
    said: dict[int, int] = field(default_factory=dict)  # by rank, calls so far
    gathering: dict[int, dict[int, Part]] = field(default_factory=dict)  # by number, then rank


@dataclass(slots=True)
class _Stream:
    """Collectives that take place one after the other."""

    waiting: deque[Collective] = field(default_factory=deque)
    busy: bool = False
    begun: int = 0


_Key = tuple[str, int, int]  # of a stream: group, and the ranks of a message, or -1


class Fabric:
    """The state of all ranks and their calls; without I/O, and without a network.

    Args:
        ranks: The number of ranks.
    """

    def __init__(self, ranks: int) -> None:
        self._ranks = [_Rank() for _ in range(ranks)]
        self._groups: dict[str, _Group] = {}
        self._streams: dict[_Key, _Stream] = {}
        self._under_way: dict[_Key, Collective] = {}
        self._sends: dict[tuple[str, int], list[Part]] = {}  # by group and receiver, in order
        self._receives: dict[tuple[str, int], list[Part]] = {}
        self._answers: list[Answer] = []

    # What ranks say.

    def join(self, rank: int, group: str, members: Sequence[int]) -> None:
        """Take note that a rank knows a process group.

        Raises:
            CallError: If another rank has the group with other members.
        """
        self._note(rank)
        known = self._groups.setdefault(group, _Group(tuple(members)))
        if known.members != tuple(members):
            raise CallError(
                f"rank {rank}: group {group!r} must have the ranks that it has elsewhere, "
                f"{list(known.members)}, got {list(members)}"
            )

    def call(self, group: str, part: Part) -> None:
        """Take a rank's call of a collective.

        Raises:
            CallError: If it does not fit the calls of other ranks.
        """
        rank, call = part.rank, part.call
        self._note(rank, part.clock_ps)
        known = self._groups.get(group)
        if known is None or rank not in known.members:
            raise CallError(f"rank {rank}: {call} in a group that it has not joined, got {group!r}")
        at = self._ranks[rank]
        at.open[part.number] = at.said = f"{call} in {self.title(group)}"
        if call.kind in PAIRED:
            self._post(group, known, part)
        else:
            self._gather(group, known, part)

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
        at.state = State.BLOCKED
        is_over = not at.awaited and (awaited or not at.watched) and until_ps == FOREVER_PS
        if is_over or at.watched - at.open.keys():
            self._release(rank, clock_ps)

    def end(self, rank: int, clock_ps: int) -> None:
        """Take note that a rank has ended, and makes no more calls."""
        self._note(rank, clock_ps)
        self._ranks[rank].state = State.ENDED

    # What the network asks.

    @property
    def running(self) -> list[int]:
        """The ranks that are running."""
        return [rank for rank, at in enumerate(self._ranks) if at.state is State.RUNNING]

    @property
    def ended(self) -> list[int]:
        """The ranks that have ended."""
        return [rank for rank, at in enumerate(self._ranks) if at.state is State.ENDED]

    @property
    def has_ended(self) -> bool:
        """Whether all ranks have ended."""
        return all(at.state is State.ENDED for at in self._ranks)

    @property
    def has_soft(self) -> bool:
        """Whether a rank that is blocked may go on by itself."""
        return any(at.state is State.BLOCKED and at.is_soft for at in self._ranks)

    @property
    def is_idle(self) -> bool:
        """Whether no collective is under way."""
        return not self._under_way

    def next_ps(self) -> int:
        """Return the next time at which a collective may begin, or a rank goes on."""
        heads = (
            stream.waiting[0].start_ps
            for stream in self._streams.values()
            if stream.waiting and not stream.busy
        )
        times = (at.until_ps for at in self._ranks if at.state is State.BLOCKED)
        return min((*heads, *times), default=FOREVER_PS)

    def ready(self, now_ps: int) -> Iterator[Collective]:
        """Yield the collectives that may begin now, those that were called first before others."""
        heads = sorted(
            (stream.waiting[0].start_ps, key)
            for key, stream in self._streams.items()
            if stream.waiting and not stream.busy and stream.waiting[0].start_ps <= now_ps
        )
        for _, key in heads:
            yield self._streams[key].waiting[0]

    def begin(self, collective: Collective) -> None:
        """Take note that a collective that is ready has begun."""
        key = _key(collective)
        stream = self._streams[key]
        assert stream.waiting[0] is collective
        stream.waiting.popleft()
        stream.busy = True
        self._under_way[key] = collective

    def finish(self, collective: Collective, now_ps: int) -> None:
        """Take note that a collective is over on all its ranks."""
        key = _key(collective)
        assert self._under_way.pop(key) is collective
        self._streams[key].busy = False
        for part in collective.parts:
            self._answers.append(Done(part.rank, part.number, now_ps, self._source(collective)))
            at = self._ranks[part.rank]
            del at.open[part.number]
            at.awaited -= {part.number}
            if at.state is State.BLOCKED and (
                part.number in at.watched
                or (not at.awaited and not at.watched and at.until_ps == FOREVER_PS)
            ):
                self._release(part.rank, now_ps)

    def reach(self, now_ps: int) -> None:
        """Take note of the time: ranks that have waited for it go on."""
        for rank, at in enumerate(self._ranks):
            if at.state is State.BLOCKED and at.until_ps <= now_ps:
                self._release(rank, now_ps)

    def take_answers(self) -> list[Answer]:
        """Return what ranks are to be told, in order."""
        answers, self._answers = self._answers, []
        return answers

    # What people ask.

    def title(self, group: str) -> str:
        """Return a group for people: `world`, or its ranks."""
        members = self._groups[group].members
        if len(members) == len(self._ranks):
            return WORLD
        return f"ranks {','.join(map(str, members))}"

    def deadlock(self) -> str:
        """Return who waits for whom, where no rank can go on any more."""
        lines = [f"  rank {rank} {self.plight(rank)}" for rank in range(len(self._ranks))]
        missing = [*self._missing(), *self._unmet()]
        return "\n".join(["no rank can go on:", *lines, *missing])

    def plight(self, rank: int) -> str:
        """Return what a rank does: `waits since 1.2 ms for all_reduce(...)`."""
        at = self._ranks[rank]
        when = f"at {format_time(at.clock_ps)}" if at.clock_ps else "at 0"
        if at.state is State.ENDED:
            return f"has ended {when}"
        if at.state is State.RUNNING:
            return f"last said {at.said or 'nothing'} {when}"
        awaited = sorted((at.awaited | at.watched) & at.open.keys())
        said = "; ".join(at.open[number] for number in awaited) or "nothing that it has called"
        return f"waits {when} for {said}"

    def _missing(self) -> Iterator[str]:
        for name, group in self._groups.items():
            for number, parts in sorted(group.gathering.items()):
                gone = [rank for rank in group.members if rank not in parts]
                first = next(iter(parts.values()))
                yield (
                    f"  call {number} in {self.title(name)}, {first.call}, was made by "
                    f"{_ranks(parts)}, and not by {_ranks(gone)}"
                )

    def _unmet(self) -> Iterator[str]:
        for table, what in ((self._sends, "received"), (self._receives, "sent")):
            for (group, _), parts in table.items():
                for part in parts:
                    yield f"  {part.call} of rank {part.rank} in {self.title(group)} is not {what}"

    # Inside.

    def _note(self, rank: int, clock_ps: int = 0) -> None:
        """Note that a rank says something: it is running, then."""
        at = self._ranks[rank]
        if at.state is State.BLOCKED and at.is_soft:
            self._answers.append(Go(rank, at.clock_ps))
        elif at.state is not State.RUNNING:
            raise CallError(f"rank {rank}: must not call anything while it waits, or has ended")
        at.state = State.RUNNING
        at.clock_ps = max(at.clock_ps, clock_ps)

    def _release(self, rank: int, now_ps: int) -> None:
        at = self._ranks[rank]
        at.state = State.RUNNING
        at.clock_ps = max(at.clock_ps, now_ps)
        at.awaited = at.watched = frozenset()
        at.until_ps = FOREVER_PS
        self._answers.append(Go(rank, at.clock_ps))

    def _gather(self, name: str, group: _Group, part: Part) -> None:
        number = group.said.get(part.rank, 0)
        group.said[part.rank] = number + 1
        parts = group.gathering.setdefault(number, {})
        if parts:
            first = next(iter(parts.values()))
            if not first.call.agrees(part.call):
                raise CallError(
                    f"call {number} in {self.title(name)}: all ranks must make the same call, got "
                    f"{first.call} from rank {first.rank} and {part.call} from rank {part.rank}"
                )
        parts[part.rank] = part
        if len(parts) == len(group.members):
            del group.gathering[number]
            self._line_up(name, group.members, [parts[rank] for rank in group.members], number)

    def _post(self, name: str, group: _Group, part: Part) -> None:
        """Keep a send or a receive until both ends are there."""
        peer, size = part.call.root, len(group.members)
        if peer != ANY and not 0 <= peer < size:
            raise CallError(f"rank {part.rank}: peer must be one of {size} ranks, got {part.call}")
        if part.call.kind == SEND:
            self._sends.setdefault((name, group.members[peer]), []).append(part)
        else:
            self._receives.setdefault((name, part.rank), []).append(part)

    def match(self) -> None:
        """Bring together sends and receives; call it when no rank is running.

        Which send a receive from any rank gets must not depend on which rank was faster on this
        machine. So they meet only then, in the order of the senders' clocks.
        """
        for place, receives in self._receives.items():
            for receive in list(receives):
                sends = self._sends.get(place, [])
                fitting = [each for each in sends if self._fits(place[0], each, receive)]
                if fitting:
                    send = min(fitting, key=lambda each: (each.clock_ps, each.rank, each.number))
                    sends.remove(send)
                    receives.remove(receive)
                    self._pair(place[0], send, receive)

    def _fits(self, group: str, send: Part, receive: Part) -> bool:
        members = self._groups[group].members
        peer = receive.call.root
        return send.call.tag == receive.call.tag and (peer == ANY or members[peer] == send.rank)

    def _pair(self, group: str, send: Part, receive: Part) -> None:
        ours, theirs = send.call, receive.call
        if (ours.dtype, ours.count) != (theirs.dtype, theirs.count):
            raise CallError(
                f"message in {self.title(group)}: both ranks must name the same tensor, got {ours} "
                f"from rank {send.rank} and {theirs} from rank {receive.rank}"
            )
        self._line_up(group, (send.rank, receive.rank), [send, receive], 0)

    def _source(self, collective: Collective) -> int:
        if collective.call.kind not in PAIRED:
            return -1
        return self._groups[collective.group].members.index(collective.members[0])

    def _line_up(
        self, group: str, ranks: Sequence[int], parts: Sequence[Part], number: int
    ) -> None:
        start_ps = max(part.clock_ps for part in parts)
        made = Collective(group, tuple(ranks), tuple(parts), number, start_ps)
        _check_blocks(made, self.title(group))
        self._streams.setdefault(_key(made), _Stream()).waiting.append(made)


def _key(collective: Collective) -> _Key:
    if collective.call.kind in PAIRED:
        sender, receiver = collective.members
        return collective.group, sender, receiver
    return collective.group, -1, -1


def _ranks(ranks: Iterable[int]) -> str:
    found = sorted(ranks)
    return f"rank{'s' * (len(found) > 1)} {', '.join(map(str, found))}"


def _check_blocks(made: Collective, title: str) -> None:
    """Check that the blocks of an all_to_all have one size at both ends."""
    for i, mine in enumerate(made.parts):
        for j, theirs in enumerate(made.parts):
            if mine.call.sends and mine.call.sends[j] != theirs.call.takes[i]:
                raise CallError(
                    f"call {made.number} in {title}: both ends must name the same size, got "
                    f"{mine.call.sends[j]} elements from rank {mine.rank}, and "
                    f"{theirs.call.takes[i]} expected by rank {theirs.rank}"
                )
