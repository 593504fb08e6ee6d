"""Graphs of work made by hand, and by hypothesis, and a replay on a network without time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st

from ringleaf.core.units import FOREVER_PS
from ringleaf.hosts.workload.graph import (
    CalledCollective,
    CallGroup,
    Graph,
    NodeKind,
    RankWork,
    WorkNode,
)
from ringleaf.hosts.workload.matched import Matched, MatchedWork
from ringleaf.hosts.workload.replay import WorkReplay


def graph(*ranks: Sequence[WorkNode], groups: Sequence[tuple[int, ...]] = ()) -> Graph:
    """A graph whose ranks come from files `0.et`, `1.et` and so on; groups are g0, g1, ..."""
    works = tuple(RankWork(tuple(nodes), f"{rank}.et") for rank, nodes in enumerate(ranks))
    return Graph("hand", works, tuple(CallGroup(f"g{i}", each) for i, each in enumerate(groups)))


def compute(number: int, time_ps: int, *after: int, stream: int = 0) -> WorkNode:
    return WorkNode(number, NodeKind.COMPUTE, duration_ps=time_ps, stream=stream, after=after)


def call(
    number: int, what: CalledCollective, size: int, *after: int, group: int = 0, root: int = 0
) -> WorkNode:
    return WorkNode(
        number, NodeKind.COLLECTIVE, size_bytes=size, call=what, group=group, root=root, after=after
    )


def send(number: int, peer: int, size: int, *after: int, tag: int = 0) -> WorkNode:
    return WorkNode(number, NodeKind.SEND, size_bytes=size, peer=peer, tag=tag, after=after)


def receive(number: int, peer: int, size: int, *after: int, tag: int = 0) -> WorkNode:
    return WorkNode(number, NodeKind.RECEIVE, size_bytes=size, peer=peer, tag=tag, after=after)


def play(
    matched: Matched, takes_ps: Callable[[MatchedWork], int] = lambda meeting: 0
) -> WorkReplay:
    """Replay a graph; each meeting begins when its last rank arrives, and takes a given time."""
    replay = WorkReplay(matched)
    under_way: dict[int, int] = {}
    replay.start(0)
    while replay.left:
        for number in replay.take_ready():
            begin_ps = replay.arrival_ps(number)
            replay.begin(number, begin_ps)
            under_way[number] = begin_ps + takes_ps(matched.meetings[number])
        first = min(under_way, key=lambda number: (under_way[number], number), default=None)
        next_ps = replay.next_ps()
        assert first is not None or next_ps < FOREVER_PS, "a replay must not wait for nothing"
        if first is not None and under_way[first] <= next_ps:
            replay.finish(first, under_way.pop(first))
        else:
            replay.reach(next_ps)
    return replay


@st.composite
def graphs(draw: st.DrawFn, *, collectives: bool = True) -> Graph:
    """Graphs that make sense: all ranks have what happens in the order in which it is drawn."""
    count = draw(st.integers(1, 5))
    everybody = range(count)
    members = st.lists(st.sampled_from(everybody), min_size=1, max_size=count, unique=True)
    groups = draw(st.lists(members.map(tuple), max_size=3)) if collectives else []
    nodes: list[list[WorkNode]] = [[] for _ in everybody]
    size = st.integers(0, 1 << 36)

    def after(rank: int) -> tuple[int, ...]:
        known = range(len(nodes[rank]))
        chosen = draw(st.lists(st.sampled_from(known), max_size=3, unique=True)) if known else []
        return tuple(3 * each for each in chosen)

    def add(rank: int, kind: NodeKind, **more: object) -> None:
        number = 3 * len(nodes[rank])
        name = draw(st.text(max_size=4))
        found = WorkNode(number, kind, name, after=after(rank), **more)  # type: ignore[arg-type]
        nodes[rank].append(found)

    kinds = ["compute"] + ["message"] * (count > 1) + ["call"] * bool(groups)
    for _ in range(draw(st.integers(1, 12))):
        kind = draw(st.sampled_from(kinds))
        if kind == "compute":
            stream = draw(st.sampled_from((0, 0, -1, -2, 7)))
            add(
                draw(st.sampled_from(everybody)),
                NodeKind.COMPUTE,
                duration_ps=draw(st.integers(0, 10**13)),
                stream=stream,
            )
        elif kind == "message":
            one, other = draw(st.permutations(everybody))[:2]
            about = {"size_bytes": draw(size), "tag": draw(st.integers(0, 2**31 - 1))}
            add(one, NodeKind.SEND, peer=other, **about)
            add(other, NodeKind.RECEIVE, peer=one, **about)
        else:
            group = draw(st.integers(0, len(groups) - 1))
            what = draw(st.sampled_from(CalledCollective))
            rooted = what in (
                CalledCollective.REDUCE,
                CalledCollective.BROADCAST,
                CalledCollective.GATHER,
                CalledCollective.SCATTER,
            )
            told: dict[str, Any] = {
                "call": what,
                "group": group,
                "size_bytes": 0 if what is CalledCollective.BARRIER else draw(size),
                "root": draw(st.sampled_from(groups[group])) if rooted else 0,
                "label": draw(st.sampled_from(("", "tp"))),
            }
            for rank in groups[group]:
                add(rank, NodeKind.COLLECTIVE, **told)
    works = tuple(RankWork(tuple(each)) for each in nodes)
    named = tuple(CallGroup(f"g{i}", ranks) for i, ranks in enumerate(groups))
    return Graph("drawn", works, named)
