"""Desks: each team's queue of meetings, and all that it needs for them, made before time begins."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple

from ringleaf.collectives.schedule import Schedule
from ringleaf.core.tensors import Array, ElementType
from ringleaf.hosts.workload.matched import Matched, MatchedWork
from ringleaf.hosts.workload.slowness import Slowness
from ringleaf.networks.endpoints.endpoints import Endpoints
from ringleaf.networks.endpoints.kit import Kit, SchedulePlan

MOST_ABREAST = 128
"""The most messages that one rank has under way to another on one queue pair; more wait."""

ABREAST_BYTES = 64 << 20
"""Bytes of messages of one size under way, of which two may be more; each has memory."""

Key = tuple[object, ...]
"""All that the schedule of a meeting depends on."""


def usual_form(meeting: MatchedWork) -> Key:
    """Return what the schedule of a meeting depends on, wherever its ranks are."""
    return meeting.call, len(meeting.ranks), meeting.root


class RankTeam(NamedTuple):
    """Ranks that meet again and again."""

    group: int  # of the graph; -1: the second of two ranks receives from the first
    ranks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Score:
    """The way in which a matched graph is played.

    Args:
        matched: The graph.
        elements_of: Returns the elements of each rank's tensor in a meeting, at least 1.
        schedule_for: Returns the schedule of a meeting for so many elements.
        dtype: Type of the elements.
        queue_pairs: Queue pairs for the messages from one rank to another. On a single one they go
            one after the other, without credit; else each that is under way has one of its own, and
            others wait.
        until_acked: Whether a message is on the wire until it is acknowledged, as a flow is; else
            until its last byte is there.
        slowness: The times at which ranks compute more slowly.
        form_of: Returns all that the schedule of a meeting depends on, besides its elements.
    """

    matched: Matched
    elements_of: Callable[[MatchedWork], int]
    schedule_for: Callable[[MatchedWork, int], Schedule]
    dtype: ElementType
    queue_pairs: int = 1
    until_acked: bool = False
    slowness: Slowness | None = None
    form_of: Callable[[MatchedWork], Key] = usual_form


def find_teams(matched: Matched) -> list[RankTeam]:
    """Return the teams of all meetings; a network needs a group for each, in this order."""
    return list(dict.fromkeys(team_of(each) for each in matched.meetings if not each.is_alone))


def team_of(meeting: MatchedWork) -> RankTeam:
    """Return the team of a meeting."""
    return RankTeam(meeting.group, meeting.ranks)


@dataclass(slots=True)
class Desk:
    """A team's queue of meetings, and its kit."""

    kit: Kit[Key]
    free: dict[Key, list[int]]
    """The channels that a meeting may have; several keys may share a list."""
    waiting: deque[int] = field(default_factory=deque)
    under_way: dict[int, tuple[int, list[Array]]] = field(default_factory=dict)
    """By channel, the number and the tensors of a meeting."""

    def has_room(self, key: Key) -> bool:
        """Return whether a meeting may be under way, too."""
        return bool(self.free[key]) and len(self.under_way) < MOST_ABREAST


def make_desks(
    endpoints: Endpoints,
    score: Score,
    teams: Sequence[RankTeam],
    meetings: Sequence[tuple[Key, int]],
) -> list[Desk]:
    """Make the queue pairs and the memory of all meetings; alike ones share schedules.

    Args:
        endpoints: The network's hosts, idle.
        score: The graph, and the way in which it is played.
        teams: All teams, each of which is a group of the network.
        meetings: By the graph's meeting, its key and the elements of each rank's tensor.
    """
    desks = []
    for place, (team, needs) in enumerate(_survey(score, teams, meetings).items()):
        are_messages = team.group < 0
        is_shared = are_messages and score.queue_pairs == 1
        counts = Counter(key for key, _ in needs.pieces)
        if is_shared:
            free = _share(counts, {key: needs.bytes_of(key, score.dtype) for key in counts})
        else:
            free = _divide(counts, score.queue_pairs if are_messages else 1)
        kit = Kit(
            endpoints,
            place,
            needs.courses,
            [elements for _, elements in needs.pieces],
            score.dtype,
            channels=len(channels_of(free.values())),
            used={key: tuple(each) for key, each in free.items()},
            shares=is_shared,
            eager=are_messages,
            renewed=score.until_acked and not is_shared,
        )
        desks.append(Desk(kit, free))
    endpoints.memory.make_room(sum(desk.kit.total_bytes for desk in desks))
    for desk in desks:
        desk.kit.settle()
    return desks


@dataclass(slots=True)
class _Needs:
    """The meetings of a team: their courses by key, and each one's key and elements."""

    courses: dict[Key, SchedulePlan] = field(default_factory=dict)
    pieces: list[tuple[Key, int]] = field(default_factory=list)

    def bytes_of(self, key: Key, dtype: ElementType) -> int:
        """Return the bytes of a tensor of a meeting."""
        return self.courses[key].elements * dtype.itemsize


def _survey(
    score: Score, teams: Sequence[RankTeam], meetings: Sequence[tuple[Key, int]]
) -> dict[RankTeam, _Needs]:
    """Return what each team needs, in their order."""
    known: dict[Key, SchedulePlan] = {}
    by_team = {team: _Needs() for team in teams}
    for meeting, (key, elements) in zip(score.matched.meetings, meetings, strict=True):
        if meeting.is_alone:
            continue
        if key not in known:
            known[key] = SchedulePlan.of(score.schedule_for(meeting, elements), elements)
        needs = by_team[team_of(meeting)]
        needs.courses[key] = known[key]
        needs.pieces.append((key, elements))
    return by_team


def channels_of(lists: Iterable[Sequence[int]]) -> set[int]:
    """Return all channels of some lists."""
    return {channel for each in lists for channel in each}


def _share(counts: Counter[Key], sizes_bytes: Mapping[Key, int]) -> dict[Key, list[int]]:
    """Return channels for messages on one queue pair, each for messages of one key."""
    numbers = count()
    most = {key: max(2, ABREAST_BYTES // size) for key, size in sizes_bytes.items()}
    return {
        key: [next(numbers) for _ in range(min(number, MOST_ABREAST, most[key]))]
        for key, number in counts.items()
    }


def _divide(counts: Counter[Key], queue_pairs: int) -> dict[Key, list[int]]:
    """Return channels that each have a queue pair, for meetings of any key."""
    every = list(reversed(range(min(queue_pairs, counts.total()))))
    return dict.fromkeys(counts, every)
