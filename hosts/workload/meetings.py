"""Meetings of ranks: which nodes of different ranks belong together, and whether all can run.

Collectives of a group meet in program order: the first call of each of its ranks, the second, and
so on, as MPI and NCCL have it. Messages meet by sender, receiver and tag, in program order. So all
meetings are known before anything runs, and a graph that could wait forever is refused.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ringleaf.errors import ConfigError
from ringleaf.hosts.workload.graph import ROOTED, Call, Graph, Kind, Node

MOST_BYTES = 1 << 36
"""The most bytes that a rank brings to a meeting; a network would send more for days."""

MOST_PS = 10**18
"""The longest time of all computations together, 11 days: times fit into 64 bits."""

SHOWN = 6
"""The most nodes of a cycle that a message names."""


@dataclass(frozen=True, slots=True)
class Meeting:
    """A collective, or a message from the first of two ranks to the second.

    Attributes:
        call: The collective; None: a message.
        ranks: The ranks that take part, in the order of their group.
        places: By rank that takes part, the place of its node among its rank's nodes.
        size_bytes: Bytes that each rank brings in; the message's length.
        root: The place of the root among `ranks`.
        group: The place of its group among the graph's; -1: a message.
        label: The traffic that it belongs to.
        name: The first rank's name of it.
    """

    call: Call | None
    ranks: tuple[int, ...]
    places: tuple[int, ...]
    size_bytes: int
    root: int = 0
    group: int = -1
    label: str = ""
    name: str = ""

    @property
    def is_alone(self) -> bool:
        """Whether there is nobody to exchange anything with."""
        return len(self.ranks) == 1


Places = tuple[tuple[tuple[int, ...], ...], ...]
"""By rank and place of a node, the places of others."""


@dataclass(frozen=True, slots=True)
class Matched:
    """A graph whose nodes are matched; none of them would wait forever.

    Attributes:
        graph: The graph.
        meetings: All collectives and messages.
        meeting_of: By rank and place of a node, the number of its meeting; -1: it computes.
        after: By rank and place of a node, the places of the nodes that must have ended before it.
        begun: Likewise, of those that must have begun.
    """

    graph: Graph
    meetings: tuple[Meeting, ...]
    meeting_of: tuple[tuple[int, ...], ...]
    after: Places
    begun: Places


def match(graph: Graph) -> Matched:
    """Match the nodes of all ranks.

    Raises:
        ConfigError: If a node is used twice or missing, names a rank or group that there is not,
            meets no other node, or one that doesn't fit, or if nodes wait for each other in a
            circle; the message names file, rank and node.
    """
    places = [_places(graph, rank) for rank in range(len(graph.ranks))]
    _check_nodes(graph)
    meetings = (*_collectives(graph), *_messages(graph))
    of = [[-1] * len(work.nodes) for work in graph.ranks]
    for number, meeting in enumerate(meetings):
        for rank, place in zip(meeting.ranks, meeting.places, strict=True):
            of[rank][place] = number
    after, begun = (tuple(each[kind] for each in places) for kind in (0, 1))
    matched = Matched(graph, meetings, tuple(map(tuple, of)), after, begun)
    _check_order(matched)
    return matched


def _places(graph: Graph, rank: int) -> tuple[tuple[tuple[int, ...], ...], ...]:
    """Return, by node of a rank, the places of nodes that must have ended, and have begun."""
    nodes = graph.ranks[rank].nodes
    place = {node.id: number for number, node in enumerate(nodes)}
    if len(place) < len(nodes):
        twice = next(node for number, node in enumerate(nodes) if place[node.id] != number)
        raise ConfigError(f"{graph.place(rank, twice)}: its number must be unique, got it twice")
    try:
        return (
            tuple(tuple(sorted({place[each] for each in node.after})) for node in nodes),
            tuple(tuple(sorted({place[each] for each in node.begun})) for node in nodes),
        )
    except KeyError:
        needs = ((node, each) for node in nodes for each in (*node.after, *node.begun))
        node, lost = next((node, each) for node, each in needs if each not in place)
        raise ConfigError(
            f"{graph.place(rank, node)}: depends on a node that is not there, got {lost}"
        ) from None


def _check_nodes(graph: Graph) -> None:
    """Check what nodes say of themselves: ranks, groups and sizes."""
    count = len(graph.ranks)
    members = [frozenset(group.ranks) for group in graph.groups]
    for group, ranks in zip(graph.groups, members, strict=True):
        if not ranks or len(ranks) < len(group.ranks) or not ranks <= set(range(count)):
            raise ConfigError(
                f"{graph.name}: group {group.name!r}: ranks must differ and be below {count}, "
                f"got {_few(group.ranks)}"
            )
    total_ps = 0
    for rank, node in graph.nodes():
        total_ps += node.duration_ps
        if not 0 <= node.duration_ps <= MOST_PS or total_ps > MOST_PS:
            raise ConfigError(
                f"{graph.place(rank, node)}: computations must take {MOST_PS} ps at most together, "
                f"and none less than 0, got {node.duration_ps} ps"
            )
        if not 0 <= node.size_bytes <= MOST_BYTES:
            raise ConfigError(
                f"{graph.place(rank, node)}: must have 0 to {MOST_BYTES} bytes, got "
                f"{node.size_bytes}"
            )
        if node.kind is Kind.COLLECTIVE:
            _check_call(graph, rank, node, members)
        elif node.kind is not Kind.COMPUTE and (not 0 <= node.peer < count or node.peer == rank):
            raise ConfigError(
                f"{graph.place(rank, node)}: its peer must be another of {count} ranks, "
                f"got {node.peer}"
            )


def _check_call(graph: Graph, rank: int, node: Node, members: Sequence[frozenset[int]]) -> None:
    where = graph.place(rank, node)
    if node.call is None or not 0 <= node.group < len(members):
        raise ConfigError(f"{where}: must have a collective and a group, got group {node.group}")
    name = graph.groups[node.group].name
    if rank not in members[node.group]:
        raise ConfigError(f"{where}: the rank must be in group {name!r} that it calls, it is not")
    if node.call in ROOTED and node.root not in members[node.group]:
        raise ConfigError(f"{where}: its root must be in group {name!r}, got rank {node.root}")


def _collectives(graph: Graph) -> Iterator[Meeting]:
    """Yield the collectives of all groups, in the order of calls."""
    calls: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    for rank, work in enumerate(graph.ranks):
        for place, node in enumerate(work.nodes):
            if node.kind is Kind.COLLECTIVE:
                calls[node.group, rank].append(place)
    for number, group in enumerate(graph.groups):
        counts = [len(calls[number, rank]) for rank in group.ranks]
        for turn in range(min(counts)):
            yield _collective(graph, group.ranks, [calls[number, r][turn] for r in group.ranks])
        if max(counts) > min(counts):
            _refuse_count(graph, number, counts, calls)


def _collective(graph: Graph, ranks: tuple[int, ...], places: Sequence[int]) -> Meeting:
    """Return the meeting of one call of each rank, which must be alike."""
    nodes = [graph.ranks[rank].nodes[place] for rank, place in zip(ranks, places, strict=True)]
    first = nodes[0]
    assert first.call is not None
    wanted = _called(first)
    for rank, node in zip(ranks, nodes, strict=True):
        if _called(node) != wanted:
            raise ConfigError(
                f"{graph.place(rank, node)}: must be the same call in group "
                f"{graph.groups[node.group].name!r} as {_said(first)} of "
                f"{graph.place(ranks[0], first)}, got {_said(node)}"
            )
    root = ranks.index(first.root) if first.call in ROOTED else 0
    return Meeting(
        first.call,
        ranks,
        tuple(places),
        first.size_bytes,
        root,
        first.group,
        graph.label_of(first),
        first.name,
    )


def _called(node: Node) -> tuple[Call | None, int, int]:
    return node.call, node.size_bytes, node.root if node.call in ROOTED else 0


def _said(node: Node) -> str:
    assert node.call is not None
    root = f" with root {node.root}" if node.call in ROOTED else ""
    return f"{node.call.value} of {node.size_bytes} bytes{root}"


def _refuse_count(
    graph: Graph,
    number: int,
    counts: Sequence[int],
    calls: Mapping[tuple[int, int], Sequence[int]],
) -> None:
    group = graph.groups[number]
    least, most = min(counts), max(counts)
    waiting = group.ranks[counts.index(most)]
    missing = group.ranks[counts.index(least)]
    node = graph.ranks[waiting].nodes[calls[number, waiting][least]]
    raise ConfigError(
        f"{graph.place(waiting, node)}: call {least + 1} in group {group.name!r} must have one on "
        f"each of its ranks, got {least} calls of rank {missing}{_of_file(graph, missing)}"
    )


def _of_file(graph: Graph, rank: int) -> str:
    source = graph.ranks[rank].source
    return f" ({source})" if source else ""


def _messages(graph: Graph) -> Iterator[Meeting]:
    """Yield all messages: by sender, receiver and tag, in program order."""
    ends: dict[tuple[int, int, int], tuple[list[int], list[int]]] = {}
    for rank, work in enumerate(graph.ranks):
        for place, node in enumerate(work.nodes):
            if node.kind is Kind.SEND:
                ends.setdefault((rank, node.peer, node.tag), ([], []))[0].append(place)
            elif node.kind is Kind.RECEIVE:
                ends.setdefault((node.peer, rank, node.tag), ([], []))[1].append(place)
    for (source, target, tag), (sends, receives) in ends.items():
        for places in zip(sends, receives, strict=False):
            yield _message(graph, (source, target), places)
        for rank, more, fewer in ((source, sends, receives), (target, receives, sends)):
            if len(more) > len(fewer):
                node = graph.ranks[rank].nodes[more[len(fewer)]]
                peer = target if rank == source else source
                wanted = "receive it" if rank == source else "send it"
                raise ConfigError(
                    f"{graph.place(rank, node)}: rank {peer}{_of_file(graph, peer)} must "
                    f"{wanted}, got no such node with tag {tag}"
                )


def _message(graph: Graph, ranks: tuple[int, int], places: tuple[int, int]) -> Meeting:
    send, receive = (
        graph.ranks[rank].nodes[place] for rank, place in zip(ranks, places, strict=True)
    )
    if send.size_bytes != receive.size_bytes:
        raise ConfigError(
            f"{graph.place(ranks[1], receive)}: must be as long as its message, "
            f"{send.size_bytes} bytes of {graph.place(ranks[0], send)}, got {receive.size_bytes}"
        )
    label = graph.label_of(send)
    return Meeting(None, ranks, places, send.size_bytes, label=label, name=send.name)


def _vertices(matched: Matched) -> list[list[int]]:
    """Return, by rank and place, the number of each node; those that meet have one together."""
    total = len(matched.meetings)
    found: list[list[int]] = []
    for meetings in matched.meeting_of:
        numbers = range(total, total + len(meetings))
        total += len(meetings)
        found.append([own if met < 0 else met for own, met in zip(numbers, meetings, strict=True)])
    return found


def _needs(matched: Matched) -> Places:
    """Return the places of all nodes that each node waits for in any way."""
    if not any(map(any, matched.begun)):
        return matched.after
    return tuple(
        tuple(ended + begun for ended, begun in zip(*ranks, strict=True))
        for ranks in zip(matched.after, matched.begun, strict=True)
    )


def _check_order(matched: Matched) -> None:
    """Check that no node waits for itself, through nodes of any rank.

    A node that waits for another's begin is taken to wait for its end, so that a few graphs are
    refused which would end.
    """
    numbers = _vertices(matched)
    count = len(matched.meetings) + sum(map(len, numbers))
    before = [0] * count
    then: list[list[int]] = [[] for _ in range(count)]
    for own, all_after in zip(numbers, _needs(matched), strict=True):
        for here, after in zip(own, all_after, strict=True):
            before[here] += len(after)
            for each in after:
                then[own[each]].append(here)
    ready = [number for number, left in enumerate(before) if not left]
    while ready:
        for number in then[ready.pop()]:
            before[number] -= 1
            if not before[number]:
                ready.append(number)
    if any(before):
        _refuse_circle(matched, numbers, before)


def _refuse_circle(matched: Matched, numbers: list[list[int]], before: Sequence[int]) -> None:
    """Name the nodes of a circle: follow what waits to what it waits for, until one comes again."""
    graph = matched.graph
    waits: dict[int, tuple[int, int, int]] = {}  # number -> its rank and place; what it waits for
    for rank, (own, all_after) in enumerate(zip(numbers, _needs(matched), strict=True)):
        for place, after in enumerate(all_after):
            for each in after:
                if before[own[each]]:
                    waits.setdefault(own[place], (rank, place, own[each]))
    here = next(iter(waits))
    seen: dict[int, int] = {}
    while here not in seen:
        seen[here] = len(seen)
        here = waits[here][2]
    circle = [number for number, turn in seen.items() if turn >= seen[here]]
    ends = [(waits[each][0], graph.ranks[waits[each][0]].nodes[waits[each][1]]) for each in circle]
    others = "; ".join(f"rank {rank}, node {node.id}" for rank, node in ends[1:SHOWN]) or "itself"
    more = f" and {len(ends) - SHOWN} more" if len(ends) > SHOWN else ""
    raise ConfigError(
        f"{graph.place(*ends[0])}: nodes must not wait for each other in a circle, got it "
        f"waiting for {others}{more}; remove a dependency"
    )


def _few(ranks: Sequence[int]) -> str:
    shown = ", ".join(map(str, ranks[:8]))
    return f"{shown}, ..." if len(ranks) > 8 else shown or "none"
