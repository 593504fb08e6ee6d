"""The work of ranks as a graph, which can be written as Chakra traces and replayed.

A rank's clock is a chain: it computes between one thing that it says and the next, and goes on with
the end of calls that it waits for. A call follows the place in the chain at whose time it is made;
that may lie behind the rank's clock, as calls on other streams are made earlier.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from ringleaf.experiments.workloads.train import calls
from ringleaf.experiments.workloads.train.calls import CollectiveCall
from ringleaf.experiments.workloads.train.fabric import Answer, CallDone
from ringleaf.hosts.workload import graph as work

ASIDE = 1
"""The stream of computations that stand for the time between a rank's doing and a call aside."""

TAGS = 1 << 16
"""Tags of one group's messages; those of the next group follow."""

_KINDS = {
    calls.ALL_REDUCE: work.CalledCollective.ALLREDUCE,
    calls.REDUCE: work.CalledCollective.REDUCE,
    calls.BROADCAST: work.CalledCollective.BROADCAST,
    calls.ALL_GATHER: work.CalledCollective.ALL_GATHER,
    calls.GATHER: work.CalledCollective.GATHER,
    calls.SCATTER: work.CalledCollective.SCATTER,
    calls.REDUCE_SCATTER: work.CalledCollective.REDUCE_SCATTER,
    calls.ALL_TO_ALL: work.CalledCollective.ALL_TO_ALL,
    calls.BARRIER: work.CalledCollective.BARRIER,
}


@dataclass(slots=True)
class _Chain:
    """One rank's nodes, and the place that its clock has reached."""

    nodes: list[work.WorkNode] = field(default_factory=list)
    now_ps: int = 0
    after: tuple[int, ...] = ()  # nodes, all of which have ended now
    times_ps: list[int] = field(default_factory=list)  # of places so far
    places: list[tuple[int, ...]] = field(default_factory=list)  # by time, what goes before
    called: dict[int, tuple[int, ...]] = field(default_factory=dict)  # calls -> nodes
    ended: dict[int, int] = field(default_factory=dict)  # calls that are waited for -> end
    waiting: tuple[int, frozenset[int], bool] | None = None  # since when, for which; quietly
    ends: dict[int, tuple[int, ...]] = field(default_factory=dict)  # by time, what ended then

    def add(self, node: work.WorkNode) -> int:
        """Add a node, with the number that it gets; return the number."""
        number = len(self.nodes)
        self.nodes.append(replace(node, id=number))
        return number

    def reach(self, now_ps: int) -> None:
        """Compute until a time."""
        if now_ps > self.now_ps:
            duration_ps = now_ps - self.now_ps
            node = work.WorkNode(0, work.NodeKind.COMPUTE, "compute", duration_ps, after=self.after)
            self.move(now_ps, (self.add(node),))

    def move(self, now_ps: int, after: tuple[int, ...]) -> None:
        """Be at a time, at which nodes have ended."""
        self.now_ps, self.after = now_ps, after
        self.times_ps.append(now_ps)
        self.places.append(after)

    def before(self, at_ps: int) -> tuple[int, ...]:
        """Return the nodes behind which something that begins at a time is."""
        if at_ps == self.now_ps:
            return self.after
        if at_ps in self.ends:
            return self.ends[at_ps]
        place = bisect_right(self.times_ps, at_ps) - 1
        since_ps, after = (self.times_ps[place], self.places[place]) if place >= 0 else (0, ())
        if at_ps > since_ps:
            wait = work.WorkNode(0, work.NodeKind.COMPUTE, "aside", at_ps - since_ps, stream=ASIDE)
            after = (self.add(replace(wait, after=after)),)
        return after


class GrowingTrace:
    """The graph of what ranks do, as it grows.

    Args:
        ranks: The number of ranks.
        item_bytes: Returns the size of an element of a type.
    """

    def __init__(self, ranks: int, item_bytes: Callable[[str], int]) -> None:
        self._chains = [_Chain() for _ in range(ranks)]
        self._item_bytes = item_bytes
        self._groups: dict[str, tuple[int, ...]] = {}

    def join(self, group: str, members: Sequence[int]) -> None:
        """Take note of a process group."""
        self._groups.setdefault(group, tuple(members))

    def call(
        self, rank: int, number: int, group: str, call: CollectiveCall, times_ps: tuple[int, int]
    ) -> None:
        """Take note of a call, with the time for which it is made, and the rank's clock."""
        at_ps, now_ps = times_ps
        chain = self._chains[rank]
        chain.reach(now_ps)
        members = self._groups[group]
        if len(members) > 1:
            before = chain.before(at_ps)
            nodes = self._nodes(rank, group, members, call)
            chain.called[number] = tuple(chain.add(replace(each, after=before)) for each in nodes)

    def wait(self, rank: int, numbers: Iterable[int], now_ps: int, *, quietly: bool) -> None:
        """Take note that a rank waits for calls; quietly: its clock does not."""
        chain = self._chains[rank]
        chain.reach(now_ps)
        chain.waiting = now_ps, frozenset(numbers), quietly

    def answer(self, answer: Answer) -> None:
        """Take note of what a rank is told."""
        chain = self._chains[answer.rank]
        if isinstance(answer, CallDone):
            self._end(chain, answer)
        elif chain.waiting is not None:
            since_ps, numbers, quietly = chain.waiting
            chain.waiting = None
            over = sorted(numbers & chain.ended.keys())
            if not quietly and over:
                now_ps = max(since_ps, *(chain.ended.pop(number) for number in over))
                nodes = [node for number in over for node in chain.called.pop(number)]
                chain.move(now_ps, tuple(dict.fromkeys((*chain.after, *nodes))))

    def end(self, rank: int, now_ps: int) -> None:
        """Take note that a rank has ended."""
        self._chains[rank].reach(now_ps)

    def graph(self, name: str) -> work.Graph:
        """Return the graph so far."""
        groups = tuple(
            work.CallGroup(title, members)
            for title, members in zip(self._titles(), self._groups.values(), strict=True)
        )
        ranks = tuple(work.RankWork(tuple(chain.nodes)) for chain in self._chains)
        return work.Graph(name, ranks, groups)

    def _titles(self) -> list[str]:
        """Return names of groups, which differ."""
        titles: list[str] = []
        for members in self._groups.values():
            everybody = len(members) == len(self._chains)
            title = "world" if everybody else "ranks-" + "-".join(map(str, members))
            alike = sum(each.partition("~")[0] == title for each in titles)
            titles.append(f"{title}~{alike + 1}" if alike else title)
        return titles

    def _end(self, chain: _Chain, done: CallDone) -> None:
        if not chain.called.get(done.number):
            return
        places = chain.called[done.number]
        chain.ended[done.number] = done.now_ps
        chain.ends[done.now_ps] = places
        for place in places if done.source >= 0 else ():
            node = chain.nodes[place]
            members = [*self._groups.values()][node.tag // TAGS]
            if node.kind is work.NodeKind.RECEIVE:
                chain.nodes[place] = replace(node, peer=members[done.source])

    def _nodes(
        self, rank: int, group: str, members: tuple[int, ...], call: CollectiveCall
    ) -> list[work.WorkNode]:
        """Return the nodes of a call, without what goes before it.

        An all-to-all of uneven parts, for which there is no word, is messages. What a rank sends
        to itself is nothing.
        """
        if call.kind in calls.PAIRED and call.root != calls.ANY and members[call.root] == rank:
            return []
        if call.kind == calls.ALL_TO_ALL and len({*call.sends, *call.takes}) > 1:
            tag = (1 + [*self._groups].index(group)) * TAGS - 1
            item = self._item_bytes(call.dtype)
            return [
                work.WorkNode(0, kind, str(call), size_bytes=count * item, peer=peer, tag=tag)
                for kind, counts in (
                    (work.NodeKind.SEND, call.sends),
                    (work.NodeKind.RECEIVE, call.takes),
                )
                for peer, count in zip(members, counts, strict=True)
                if count and peer != rank
            ]
        return [self._node(group, members, call)]

    def _node(self, group: str, members: tuple[int, ...], call: CollectiveCall) -> work.WorkNode:
        """Return the one node of a call."""
        place = [*self._groups].index(group)
        size = call.count * self._item_bytes(call.dtype)
        if call.kind in calls.PAIRED:
            kind = work.NodeKind.SEND if call.kind == calls.SEND else work.NodeKind.RECEIVE
            peer = members[call.root] if call.root != calls.ANY else -1
            tag = place * TAGS + call.tag % (TAGS - 1)
            return work.WorkNode(0, kind, str(call), size_bytes=size, peer=peer, tag=tag)
        if call.kind in (calls.REDUCE_SCATTER, calls.SCATTER):
            size *= len(members)
        if call.kind == calls.ALL_TO_ALL:
            size = sum(call.sends) * self._item_bytes(call.dtype)
        if call.kind == calls.BARRIER:
            size = 0
        return work.WorkNode(
            0,
            work.NodeKind.COLLECTIVE,
            str(call),
            size_bytes=size,
            call=_KINDS[call.kind],
            group=place,
            root=members[call.root] if work.ROOTED.count(_KINDS[call.kind]) else 0,
        )
