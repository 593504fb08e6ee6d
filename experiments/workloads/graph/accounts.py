"""Accounts of a replay: what ranks' time went into, and the times of their meetings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from ringleaf.experiments.workloads.graph.messages import bin_edges
from ringleaf.hosts.workload.graph import CalledCollective
from ringleaf.hosts.workload.matched import MatchedWork
from ringleaf.hosts.workload.replay import WorkReplay

MOST_SIZES = 40
"""The most sizes of messages that have rows of their own."""

MESSAGE = "message"
"""The call of messages, in tables."""

Span = tuple[int, int]
"""Start and end, in picoseconds."""


@dataclass(frozen=True, slots=True)
class Spending:
    """One rank's time, in picoseconds, from the start to the end of the whole iteration.

    Attributes:
        compute_ps: It computed.
        exposed_ps: It computed nothing, and took part in something that was on the wire.
        idle_ps: Neither; it waited for other ranks to arrive, or was done.
    """

    compute_ps: int
    exposed_ps: int
    idle_ps: int


@dataclass(frozen=True, slots=True)
class WorkRow:
    """All meetings of one kind; times in picoseconds of virtual time."""

    label: str  # of the traffic: tp, pp, dp
    call: str  # the collective; "message"
    algo: str
    ranks: int  # of each group
    size_bytes: int  # that each rank brings in; of messages of many sizes, at most
    count: int
    total_bytes: int  # of all meetings together
    time_ps: int  # of one on the wire, on average
    longest_ps: int
    wait_ps: int  # from the first rank's arrival to the start, on average
    exposed_ps: int  # time of a rank that has such meetings, on average: it does not compute


def length(spans: Iterable[Span]) -> int:
    """Return the time that any of these spans covers."""
    total, until = 0, 0
    for start, end in sorted(spans):
        if end > until:
            total += end - (start if start > until else until)
            until = end
    return total


def end_ps(replay: WorkReplay) -> int:
    """Return the time at which the last node ended."""
    return max((times.end_ps for ranks in replay.times for times in ranks), default=0)


def spend(replay: WorkReplay) -> list[Spending]:
    """Return what each rank's time went into."""
    whole = end_ps(replay)
    spending = []
    for rank in range(len(replay.times)):
        computing, on_wire = _spans(replay, rank)
        busy = length(computing)
        used = length(computing + [span for _, span in on_wire])
        spending.append(Spending(busy, used - busy, whole - used))
    return spending


_Kind = tuple[str, CalledCollective | None, int, int]
KindOf = Callable[[MatchedWork], _Kind]


def _kind(meeting: MatchedWork) -> _Kind:
    return meeting.label, meeting.call, len(meeting.ranks), meeting.size_bytes


def _binned(meetings: Sequence[MatchedWork]) -> KindOf:
    """Return what tells a meeting's kind: messages of many sizes are in bins of sizes."""
    sizes = np.array([each.size_bytes for each in meetings if each.call is None], np.int64)
    if len(np.unique(sizes)) <= MOST_SIZES:
        return _kind
    edges = bin_edges(sizes)

    def kind_of(meeting: MatchedWork) -> _Kind:
        label, call, ranks, size = _kind(meeting)
        if call is None:
            size = int(edges[np.searchsorted(edges, size)])
        return label, call, ranks, size

    return kind_of


def _spans(replay: WorkReplay, rank: int) -> tuple[list[Span], list[tuple[int, Span]]]:
    """Return a rank's computations, and its meetings by number."""
    computing: list[Span] = []
    on_wire: list[tuple[int, Span]] = []
    numbers = replay.matched.meeting_of[rank]
    for number, times in zip(numbers, replay.times[rank], strict=True):
        span = times.start_ps, times.end_ps
        if number >= 0:
            on_wire.append((number, span))
        elif not replay.matched.graph.are_flows:
            computing.append(span)
    return computing, on_wire


def tabulate(replay: WorkReplay, algos: dict[CalledCollective | None, str]) -> list[WorkRow]:
    """Return a row per kind of meeting, in the order in which kinds first appear.

    If messages have many sizes, they come last, by size.
    """
    kind_of = _binned(replay.matched.meetings)
    places: dict[_Kind, int] = {}
    kinds = [places.setdefault(kind_of(each), len(places)) for each in replay.matched.meetings]
    members: list[list[tuple[MatchedWork, int]]] = [[] for _ in places]
    for meeting, over_ps, kind in zip(replay.matched.meetings, replay.over_ps, kinds, strict=True):
        if not meeting.is_alone:
            members[kind].append((meeting, over_ps))
    exposed = _exposed(replay, kinds)
    rows = [
        _row(replay, kind, members[place], algos, exposed[place])
        for kind, place in places.items()
        if members[place]
    ]
    if kind_of is not _kind:
        rows.sort(key=lambda row: row.size_bytes if row.call == MESSAGE else 0)
    return rows


def _exposed(replay: WorkReplay, kinds: Sequence[int]) -> dict[int, float]:
    """Return the mean time that meetings of a kind are exposed, over the ranks that have some."""
    times: dict[int, list[int]] = {}
    for rank in range(len(replay.times)):
        computing, on_wire = _spans(replay, rank)
        busy = length(computing)
        by_kind: dict[int, list[Span]] = {}
        for number, span in on_wire:
            by_kind.setdefault(kinds[number], []).append(span)
        for kind, spans in by_kind.items():
            times.setdefault(kind, []).append(length(computing + spans) - busy)
    return {kind: fmean(values) for kind, values in times.items()}


def _arrival_ps(replay: WorkReplay, meeting: MatchedWork) -> int:
    """Return when the first rank reached a meeting; a flow's receiver is there from the start."""
    ready_ps = [
        replay.times[rank][place].ready_ps
        for rank, place in zip(meeting.ranks, meeting.places, strict=True)
    ]
    return ready_ps[0] if replay.matched.graph.are_flows else min(ready_ps)


def _row(
    replay: WorkReplay,
    kind: _Kind,
    meetings: Sequence[tuple[MatchedWork, int]],
    algos: dict[CalledCollective | None, str],
    exposed_ps: float,
) -> WorkRow:
    label, call, ranks, size_bytes = kind
    firsts = [replay.times[each.ranks[0]][each.places[0]] for each, _ in meetings]
    times = [over_ps - first.start_ps for first, (_, over_ps) in zip(firsts, meetings, strict=True)]
    waits = [
        first.start_ps - _arrival_ps(replay, meeting)
        for first, (meeting, _) in zip(firsts, meetings, strict=True)
    ]
    return WorkRow(
        label=label,
        call=call.value if call else MESSAGE,
        algo=algos[call],
        ranks=ranks,
        size_bytes=size_bytes,
        count=len(meetings),
        total_bytes=sum(each.size_bytes for each, _ in meetings),
        time_ps=round(fmean(times)),
        longest_ps=max(times),
        wait_ps=round(fmean(waits)),
        exposed_ps=round(exposed_ps),
    )
