"""Calls of ranks meet: those that belong together become collectives, which wait for their turn.

A collective is ready when the last of its ranks has called it, and the one before it in its group
is over, as on a CUDA stream: calls of one group take place one after the other, those of different
groups side by side. Messages between two ranks of a group are such a row of their own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from ringleaf.core.units import format_count
from ringleaf.experiments.workloads.train.calls import ANY, PAIRED, SEND
from ringleaf.experiments.workloads.train.parts import CallError, MatchedCalls, RankCall

WORLD = "world"


@dataclass(slots=True)
class _Group:
    members: tuple[int, ...]
    calls_of: dict[int, int] = field(default_factory=dict)  # by rank, calls so far
    gathering: dict[int, dict[int, RankCall]] = field(default_factory=dict)  # by number, then rank


@dataclass(slots=True)
class _Stream:
    """Collectives that take place one after the other."""

    waiting: deque[MatchedCalls] = field(default_factory=deque)
    busy: bool = False
    begun: int = 0


_Key = tuple[str, int, int]  # of a stream: group, and the ranks of a message, or -1


class GroupMeetings:
    """The groups of ranks, and their calls that are not over.

    Args:
        ranks: The number of ranks.
    """

    def __init__(self, ranks: int) -> None:
        self._ranks = ranks
        self._groups: dict[str, _Group] = {}
        self._streams: dict[_Key, _Stream] = {}
        self._under_way: dict[_Key, MatchedCalls] = {}
        self._sends: dict[tuple[str, int], list[RankCall]] = {}  # by group and receiver, in order
        self._receives: dict[tuple[str, int], list[RankCall]] = {}

    def join(self, rank: int, group: str, members: Sequence[int]) -> None:
        """Take note that a rank knows a process group.

        Raises:
            CallError: If another rank has the group with other members.
        """
        known = self._groups.setdefault(group, _Group(tuple(members)))
        if known.members != tuple(members):
            raise CallError(
                f"rank {rank}: group {group!r} must have the ranks that it has elsewhere, "
                f"{list(known.members)}, got {list(members)}"
            )

    def call(self, name: str, part: RankCall) -> None:
        """Take a rank's call in a group.

        Raises:
            CallError: If it does not fit the calls of other ranks.
        """
        group = self._groups.get(name)
        if group is None or part.rank not in group.members:
            raise CallError(
                f"rank {part.rank}: {part.call} in a group that it has not joined, got {name!r}"
            )
        if part.call.kind in PAIRED:
            self._post(name, group, part)
        else:
            self._gather(name, group, part)

    def title(self, group: str) -> str:
        """Return a group for people: `world`, or its ranks."""
        members = self._groups[group].members
        if len(members) == self._ranks:
            return WORLD
        return f"ranks {','.join(map(str, members))}"

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

    @property
    def is_idle(self) -> bool:
        """Whether no collective is under way."""
        return not self._under_way

    def starts(self) -> Iterator[tuple[int, _Key]]:
        """Yield the times from which on collectives may begin, each with its place."""
        for key, stream in self._streams.items():
            if stream.waiting and not stream.busy:
                yield stream.waiting[0].start_ps, key

    def ready(self, now_ps: int) -> Iterator[MatchedCalls]:
        """Yield the collectives that may begin now, those that were called first before others."""
        for start_ps, key in sorted(self.starts()):
            if start_ps <= now_ps:
                yield self._streams[key].waiting[0]

    def begin(self, collective: MatchedCalls) -> None:
        """Take note that a collective that is ready has begun."""
        key = _key(collective)
        stream = self._streams[key]
        assert stream.waiting[0] is collective
        stream.waiting.popleft()
        stream.busy = True
        self._under_way[key] = collective

    def finish(self, collective: MatchedCalls) -> None:
        """Take note that a collective is over."""
        key = _key(collective)
        assert self._under_way.pop(key) is collective
        self._streams[key].busy = False

    def source(self, collective: MatchedCalls) -> int:
        """Return the rank of the group that a message comes from, or -1."""
        if collective.call.kind not in PAIRED:
            return -1
        return self._groups[collective.group].members.index(collective.members[0])

    def gaps(self) -> Iterator[str]:
        """Yield lines, for people, on calls that not all ranks have made."""
        for name, group in self._groups.items():
            for number, parts in sorted(group.gathering.items()):
                gone = [rank for rank in group.members if rank not in parts]
                first = next(iter(parts.values()))
                yield (
                    f"  call {number} in {self.title(name)}, {first.call}, was made by "
                    f"{_ranks(parts)}, and not by {_ranks(gone)}"
                )
        for table, what in ((self._sends, "received"), (self._receives, "sent")):
            for (name, _), posted in table.items():
                for part in posted:
                    yield f"  {part.call} of rank {part.rank} in {self.title(name)} is not {what}"

    # Inside.

    def _gather(self, name: str, group: _Group, part: RankCall) -> None:
        number = group.calls_of.get(part.rank, 0)
        group.calls_of[part.rank] = number + 1
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

    def _post(self, name: str, group: _Group, part: RankCall) -> None:
        """Keep a send or a receive until both ends are there."""
        peer, size = part.call.root, len(group.members)
        if peer != ANY and not 0 <= peer < size:
            raise CallError(
                f"rank {part.rank}: peer must be one of {format_count(size, 'rank')}, got "
                f"{part.call}"
            )
        if part.call.kind == SEND:
            self._sends.setdefault((name, group.members[peer]), []).append(part)
        else:
            self._receives.setdefault((name, part.rank), []).append(part)

    def _fits(self, group: str, send: RankCall, receive: RankCall) -> bool:
        members = self._groups[group].members
        peer = receive.call.root
        return send.call.tag == receive.call.tag and (peer == ANY or members[peer] == send.rank)

    def _pair(self, group: str, send: RankCall, receive: RankCall) -> None:
        ours, theirs = send.call, receive.call
        if (ours.dtype, ours.count) != (theirs.dtype, theirs.count):
            raise CallError(
                f"message in {self.title(group)}: both ranks must name the same tensor, got {ours} "
                f"from rank {send.rank} and {theirs} from rank {receive.rank}"
            )
        self._line_up(group, (send.rank, receive.rank), [send, receive], 0)

    def _line_up(
        self, group: str, ranks: Sequence[int], parts: Sequence[RankCall], number: int
    ) -> None:
        start_ps = max(part.clock_ps for part in parts)
        matched = MatchedCalls(group, tuple(ranks), tuple(parts), number, start_ps)
        _check_blocks(matched, self.title(group))
        self._streams.setdefault(_key(matched), _Stream()).waiting.append(matched)


def _key(collective: MatchedCalls) -> _Key:
    if collective.call.kind in PAIRED:
        sender, receiver = collective.members
        return collective.group, sender, receiver
    return collective.group, -1, -1


def _ranks(ranks: Iterable[int]) -> str:
    numbers = sorted(ranks)
    return f"rank{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers))}"


def _check_blocks(matched: MatchedCalls, title: str) -> None:
    """Check that the blocks of an all_to_all have one size at both ends."""
    for i, mine in enumerate(matched.parts):
        for j, theirs in enumerate(matched.parts):
            if mine.call.sends and mine.call.sends[j] != theirs.call.takes[i]:
                raise CallError(
                    f"call {matched.number} in {title}: both ends must name the same size, got "
                    f"{format_count(mine.call.sends[j], 'element')} from rank {mine.rank}, and "
                    f"{theirs.call.takes[i]} expected by rank {theirs.rank}"
                )
