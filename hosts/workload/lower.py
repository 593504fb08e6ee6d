"""Lowering: collectives replaced by the messages of an algorithm's schedule."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import replace

from ringleaf.collectives.rows import AGGREGATE, COPY
from ringleaf.collectives.schedule import Schedule, chunk_ranges
from ringleaf.errors import ConfigError
from ringleaf.hosts.workload.graph import Graph, NodeKind, RankWork, WorkNode
from ringleaf.hosts.workload.matched import Matched, MatchedWork

JOIN_STREAM = 255
"""The stream of the computations that stand for the end of a collective, and take no time."""

ScheduleFor = Callable[[MatchedWork, int], Schedule]


def lower(
    matched: Matched,
    elements_of: Callable[[MatchedWork], int],
    schedule_for: ScheduleFor,
    item: int,
) -> Graph:
    """Return a graph of computations and messages only.

    A message leaves when all those have come from which its chunks have their contents. A
    collective's own node becomes a computation without duration, which waits for its messages.
    What is added up takes no time.

    Args:
        matched: The graph.
        elements_of: Returns the elements of each rank's tensor in a meeting.
        schedule_for: Returns the schedule of a meeting for so many elements.
        item: Bytes of an element.

    Raises:
        ConfigError: If switches add up, as their packets are no messages between ranks.
    """
    lowering = _Lowering(matched)
    known: dict[tuple[object, ...], Schedule] = {}
    for number, meeting in enumerate(matched.meetings):
        if meeting.call is None:
            continue
        elements = elements_of(meeting)
        key = meeting.call, len(meeting.ranks), meeting.root, elements
        if key not in known:
            known[key] = schedule_for(meeting, elements)
        lowering.replace(number, known[key], elements, item)
    return lowering.graph()


class _Writes:
    """The receives that each chunk of each place has its contents from.

    What is copied to a chunk replaces what was there; what is added does not. Rows of one step read
    the contents from before it.
    """

    def __init__(self) -> None:
        self._step = -1
        self._before: dict[tuple[int, int], set[int]] = {}
        self._of_step: list[tuple[tuple[int, int], int, Set[int]]] = []

    def begin(self, step: int) -> None:
        """Go on to a row of this step."""
        if step == self._step:
            return
        for where, op, receives in self._of_step:
            if op == COPY:
                self._before[where] = set(receives)
            else:
                self._before.setdefault(where, set()).update(receives)
        self._step, self._of_step = step, []

    def needs(self, place: int, chunks: Iterable[int]) -> set[int]:
        """Return the receives that chunks need, by steps before this one."""
        return set().union(*(self._before.get((place, chunk), ()) for chunk in chunks))

    def add(self, place: int, chunk: int, op: int, receives: Set[int]) -> None:
        """Note what a row of this step writes."""
        self._of_step.append(((place, chunk), op, receives))


class _Lowering:
    """The nodes of all ranks, with numbers beyond those of the graph for new ones."""

    def __init__(self, matched: Matched) -> None:
        self._matched = matched
        ranks = matched.graph.ranks
        self._nodes = [{node.id: node for node in work.nodes} for work in ranks]
        self._next = [max(nodes, default=-1) + 1 for nodes in self._nodes]
        self._new: list[dict[int, list[WorkNode]]] = [
            {} for _ in ranks
        ]  # by the collective's number
        self._tag = max((node.tag for _, node in matched.graph.nodes()), default=0) + 1

    def replace(self, number: int, schedule: Schedule, elements: int, item: int) -> None:
        """Put messages in place of a collective's nodes."""
        graph, meeting = self._matched.graph, self._matched.meetings[number]
        calls = [
            graph.ranks[rank].nodes[place]
            for rank, place in zip(meeting.ranks, meeting.places, strict=True)
        ]
        columns = schedule.columns
        if (columns.op == AGGREGATE).any():
            raise ConfigError(
                f"{graph.place(meeting.ranks[0], calls[0])}: must be done by hosts, got "
                f"{schedule.algorithm!r}; take an algorithm of hosts"
            )
        edges = [start for start, _ in chunk_ranges(elements, schedule.chunks)] + [elements]
        rows = zip(
            *(each.tolist() for each in (columns.step, columns.src, columns.dst)),
            *(each.tolist() for each in (columns.start, columns.stop, columns.op)),
            strict=True,
        )
        writes = _Writes()
        for step, src, dst, start, stop, op in rows:
            writes.begin(step)
            size = (edges[stop] - edges[start]) * item
            if not size:
                continue
            source, target = src % schedule.nodes, dst % schedule.nodes
            if source == target:  # from one layer of its memory to another
                for chunk in range(start, stop):
                    writes.add(dst, chunk, op, writes.needs(src, (chunk,)))
                continue
            needs = writes.needs(src, range(start, stop))
            ends = meeting.ranks[source], meeting.ranks[target]
            self._add(ends[0], calls[source], NodeKind.SEND, ends[1], size, number, sorted(needs))
            came = self._add(ends[1], calls[target], NodeKind.RECEIVE, ends[0], size, number, ())
            for chunk in range(start, stop):
                writes.add(dst, chunk, op, {came})

    def _add(
        self,
        rank: int,
        call: WorkNode,
        kind: NodeKind,
        peer: int,
        size: int,
        number: int,
        after: Sequence[int],
    ) -> int:
        label = self._matched.meetings[number].label
        node = WorkNode(
            self._next[rank],
            kind,
            call.name,
            size_bytes=size,
            peer=peer,
            tag=self._tag + number,
            label=label,
            after=(*call.after, *after),
            begun=call.begun,
        )
        self._next[rank] += 1
        self._new[rank].setdefault(call.id, []).append(node)
        return node.id

    def graph(self) -> Graph:
        """Return the graph with all new nodes before the ones that wait for them."""
        graph = self._matched.graph
        ranks = tuple(
            RankWork(tuple(self._work(rank, work)), work.source)
            for rank, work in enumerate(graph.ranks)
        )
        return Graph(graph.name, ranks)

    def _work(self, rank: int, work: RankWork) -> list[WorkNode]:
        nodes: list[WorkNode] = []
        for node in work.nodes:
            if node.kind is not NodeKind.COLLECTIVE:
                nodes.append(node)
                continue
            messages = self._new[rank].get(node.id, [])
            nodes += messages
            joined = (*node.after, *(each.id for each in messages))
            nodes.append(
                replace(
                    WorkNode(node.id, NodeKind.COMPUTE, node.name, stream=JOIN_STREAM),
                    after=tuple(dict.fromkeys(joined)),
                    begun=node.begun,
                )
            )
        return nodes
