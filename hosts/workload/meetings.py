"""Meetings of ranks: which nodes of different ranks belong together, and whether all can run.

Collectives of a group meet in program order: the first call of each of its ranks, the second, and
so on, as MPI and NCCL have it. Messages meet by sender, receiver and tag, in program order. That is
the order of nodes, but a node that waits for a later one comes after it. So all meetings are known
before anything runs, and a graph that could wait forever is refused.

An eager message leaves when its sender has reached it, and waits for its receiver where it arrives;
a longer one leaves when both have reached it (a rendezvous).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from ringleaf.core.units import format_count
from ringleaf.errors import ConfigError
from ringleaf.hosts.workload.graph import ROOTED, CalledCollective, Graph, NodeKind, WorkNode
from ringleaf.hosts.workload.matched import Matched, MatchedWork, PlacesOfRank
from ringleaf.hosts.workload.order import check_order, program_order

MOST_BYTES = 1 << 36
"""The most bytes that a rank brings to a meeting; a network would send more for days."""

MOST_PS = 10**18
"""The longest time of all computations together, 11 days: times fit into 64 bits."""


def match(graph: Graph, eager_bytes: int | None = None) -> Matched:
    """Match the nodes of all ranks.

    Args:
        graph: The graph.
        eager_bytes: The longest message that is eager; None: all are.

    Raises:
        ConfigError: If a node is used twice or missing, names a rank or group that there is not,
            meets no other node, or one that doesn't fit, or if nodes wait for each other in a
            circle; the message names file, rank and node.
    """
    places = [_places(graph, rank) for rank in range(len(graph.ranks))]
    _check_nodes(graph)
    most = MOST_BYTES if eager_bytes is None else eager_bytes
    orders = [program_order(*each) for each in places]
    meetings = (*_collectives(graph, orders), *_messages(graph, orders, most))
    of = [[-1] * len(work.nodes) for work in graph.ranks]
    for number, meeting in enumerate(meetings):
        for rank, place in zip(meeting.ranks, meeting.places, strict=True):
            of[rank][place] = number
    after, begun = (tuple(each[kind] for each in places) for kind in (0, 1))
    matched = Matched(graph, meetings, tuple(map(tuple, of)), after, begun)
    check_order(matched)
    return matched


def _places(graph: Graph, rank: int) -> tuple[PlacesOfRank, PlacesOfRank]:
    """Return, by node of a rank, the places of nodes that must have ended, and have begun."""
    nodes = graph.ranks[rank].nodes
    place = {node.id: number for number, node in enumerate(nodes)}
    if len(place) < len(nodes):
        twice = next(node for number, node in enumerate(nodes) if place[node.id] != number)
        raise ConfigError(f"{graph.place(rank, twice)}: its number must be unique, got it twice")
    try:
        return (
            tuple(_in_order(place, node.after) for node in nodes),
            tuple(_in_order(place, node.begun) for node in nodes),
        )
    except KeyError:
        needs = ((node, each) for node in nodes for each in (*node.after, *node.begun))
        node, lost = next((node, each) for node, each in needs if each not in place)
        raise ConfigError(
            f"{graph.place(rank, node)}: depends on a node that is not there, got {lost}"
        ) from None


def _in_order(place: Mapping[int, int], numbers: tuple[int, ...]) -> tuple[int, ...]:
    """Return the places of nodes, each once, in order; most nodes name one or none."""
    if len(numbers) <= 1:
        return tuple([place[each] for each in numbers])
    return tuple(sorted({place[each] for each in numbers}))


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
        if node.kind is NodeKind.COLLECTIVE:
            _check_call(graph, rank, node, members)
        elif node.kind is not NodeKind.COMPUTE and (
            not 0 <= node.peer < count or node.peer == rank
        ):
            raise ConfigError(
                f"{graph.place(rank, node)}: its peer must be another of "
                f"{format_count(count, 'rank')}, got {node.peer}"
            )


def _check_call(graph: Graph, rank: int, node: WorkNode, members: Sequence[frozenset[int]]) -> None:
    where = graph.place(rank, node)
    if node.call is None or not 0 <= node.group < len(members):
        raise ConfigError(f"{where}: must have a collective and a group, got group {node.group}")
    name = graph.groups[node.group].name
    if rank not in members[node.group]:
        raise ConfigError(f"{where}: the rank must be in group {name!r} that it calls, it is not")
    if node.call in ROOTED and node.root not in members[node.group]:
        raise ConfigError(f"{where}: its root must be in group {name!r}, got rank {node.root}")


def _collectives(graph: Graph, orders: Sequence[Sequence[int]]) -> Iterator[MatchedWork]:
    """Yield the collectives of all groups, in the order of calls."""
    calls: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    for rank, (work, order) in enumerate(zip(graph.ranks, orders, strict=True)):
        for place in order:
            node = work.nodes[place]
            if node.kind is NodeKind.COLLECTIVE:
                calls[node.group, rank].append(place)
    for number, group in enumerate(graph.groups):
        counts = [len(calls[number, rank]) for rank in group.ranks]
        for turn in range(min(counts)):
            yield _collective(graph, group.ranks, [calls[number, r][turn] for r in group.ranks])
        if max(counts) > min(counts):
            _refuse_count(graph, number, counts, calls)


def _collective(graph: Graph, ranks: tuple[int, ...], places: Sequence[int]) -> MatchedWork:
    """Return the meeting of one call of each rank, which must be alike."""
    nodes = [graph.ranks[rank].nodes[place] for rank, place in zip(ranks, places, strict=True)]
    first = nodes[0]
    assert first.call is not None
    call = _called(first)
    for rank, node in zip(ranks, nodes, strict=True):
        if _called(node) != call:
            raise ConfigError(
                f"{graph.place(rank, node)}: must be the same call in group "
                f"{graph.groups[node.group].name!r} as {_describe(first)} of "
                f"{graph.place(ranks[0], first)}, got {_describe(node)}"
            )
    root = ranks.index(first.root) if first.call in ROOTED else 0
    return MatchedWork(
        first.call,
        ranks,
        tuple(places),
        first.size_bytes,
        root,
        first.group,
        graph.label_of(first),
        first.name,
    )


def _called(node: WorkNode) -> tuple[CalledCollective | None, int, int]:
    return node.call, node.size_bytes, node.root if node.call in ROOTED else 0


def _describe(node: WorkNode) -> str:
    assert node.call is not None
    root = f" with root {node.root}" if node.call in ROOTED else ""
    return f"{node.call.value} of {format_count(node.size_bytes, 'byte')}{root}"


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
        f"each of its ranks, got {format_count(least, 'call')} of rank "
        f"{missing}{_of_file(graph, missing)}"
    )


def _of_file(graph: Graph, rank: int) -> str:
    source = graph.ranks[rank].source
    return f" ({source})" if source else ""


def _messages(
    graph: Graph, orders: Sequence[Sequence[int]], eager_bytes: int
) -> Iterator[MatchedWork]:
    """Yield all messages: by sender, receiver and tag, in program order."""
    ends: dict[tuple[int, int, int], tuple[list[int], list[int]]] = {}
    for rank, (work, order) in enumerate(zip(graph.ranks, orders, strict=True)):
        for place in order:
            node = work.nodes[place]
            if node.kind is NodeKind.SEND:
                ends.setdefault((rank, node.peer, node.tag), ([], []))[0].append(place)
            elif node.kind is NodeKind.RECEIVE:
                ends.setdefault((node.peer, rank, node.tag), ([], []))[1].append(place)
    for (source, target, tag), (sends, receives) in ends.items():
        for places in zip(sends, receives, strict=False):
            yield _message(graph, (source, target), places, eager_bytes)
        for rank, more, fewer in ((source, sends, receives), (target, receives, sends)):
            if len(more) > len(fewer):
                node = graph.ranks[rank].nodes[more[len(fewer)]]
                peer = target if rank == source else source
                action = "receive it" if rank == source else "send it"
                raise ConfigError(
                    f"{graph.place(rank, node)}: rank {peer}{_of_file(graph, peer)} must "
                    f"{action}, got no such node with tag {tag}"
                )


def _message(
    graph: Graph, ranks: tuple[int, int], places: tuple[int, int], eager_bytes: int
) -> MatchedWork:
    send, receive = (
        graph.ranks[rank].nodes[place] for rank, place in zip(ranks, places, strict=True)
    )
    if receive.size_bytes < send.size_bytes:  # a longer one is a buffer, as in MPI
        raise ConfigError(
            f"{graph.place(ranks[1], receive)}: must be as long as its message or longer, "
            f"{format_count(send.size_bytes, 'byte')} of {graph.place(ranks[0], send)}, got "
            f"{receive.size_bytes}"
        )
    label = graph.label_of(send)
    size = send.size_bytes
    is_eager = size <= eager_bytes
    return MatchedWork(None, ranks, places, size, label=label, name=send.name, is_eager=is_eager)


def _few(ranks: Sequence[int]) -> str:
    shown = ", ".join(map(str, ranks[:8]))
    return f"{shown}, ..." if len(ranks) > 8 else shown or "none"
