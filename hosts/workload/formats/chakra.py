"""Chakra execution traces: their terms, and files written from graphs of work.

A trace has a file per rank: a `GlobalMetadata`, then `Node`s, each after its length. Groups are in
a JSON file beside it, as ASTRA-sim has them: names of process groups, and their ranks.

What a node needs beyond the schema is in attributes that other tools pass over: `duration_ps`,
`stream`, `label` and `root_rank`. `chakra_reading` has the way back.

Source:
    MLCommons Chakra, schema 1.0, and the attributes of its generator and feeder.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ringleaf.core.units import PS_PER_US
from ringleaf.errors import ConfigError
from ringleaf.hosts.workload.formats import schema
from ringleaf.hosts.workload.formats.framing import frame
from ringleaf.hosts.workload.graph import (
    ROOTED,
    CalledCollective,
    CallGroup,
    Graph,
    NodeKind,
    WorkNode,
)
from ringleaf.hosts.workload.replay import NodeTimes

VERSION = "1.0.0"

LAST_TAG = (1 << 31) - 1
"""The largest tag of a message, which has 32 bits."""

INVALID, METADATA, LOAD, STORE, COMPUTE, SEND, RECEIVE, COLLECTIVE = range(8)
"""The types of nodes; an invalid one does nothing, as ASTRA-sim has it."""

CALLS = (
    *(
        CalledCollective.ALLREDUCE,
        CalledCollective.REDUCE,
        CalledCollective.ALL_GATHER,
        CalledCollective.GATHER,
        CalledCollective.SCATTER,
        CalledCollective.BROADCAST,
    ),
    *(
        CalledCollective.ALL_TO_ALL,
        CalledCollective.REDUCE_SCATTER,
        CalledCollective.REDUCE_SCATTER,
        CalledCollective.BARRIER,
    ),
)
"""The call of each `comm_type`; a reduce-scatter has two."""

CPU_STREAM = -1
MEMORY_STREAM = -2
NOTHING_STREAM = -3
"""The streams of nodes on the host's processor, of those that load or store, and of those that do
nothing."""

EVERYBODY = "world"
"""The name of the group of all ranks, which collectives without `pg_name` call."""


def write_rank(
    graph: Graph, rank: int, times: Sequence[NodeTimes] | None = None
) -> Iterator[bytes]:
    """Yield the bytes of a rank's file, message by message.

    Args:
        graph: The graph.
        rank: The rank.
        times: The times of its nodes in a replay; None: it has not been replayed.

    Raises:
        ConfigError: If a node waits for the begin of another, which Chakra has no word for, or has
            a tag of more than 32 bits.
    """
    metadata = schema.GlobalMetadata(version=VERSION)
    yield frame(metadata.SerializeToString())
    for place, node in enumerate(graph.ranks[rank].nodes):
        if node.begun:
            raise ConfigError(
                f"{graph.place(rank, node)}: Chakra's nodes wait for ends, got one that waits for "
                "a begin"
            )
        message = _message_of(graph, rank, node)
        if times is not None:
            _add_times(message, node, times[place])
        yield frame(message.SerializeToString())


def _message_of(graph: Graph, rank: int, node: WorkNode) -> Any:
    message = schema.Node(id=node.id, name=node.name, data_deps=node.after)
    if node.kind is NodeKind.COMPUTE:
        message.type = {MEMORY_STREAM: LOAD, NOTHING_STREAM: INVALID}.get(node.stream, COMPUTE)
        message.duration_micros = round(node.duration_ps / PS_PER_US)
        _add(message, "is_cpu_op", bool_val=node.stream == CPU_STREAM)
        _add(message, "duration_ps", int64_val=node.duration_ps)
        if node.stream not in (0, CPU_STREAM, MEMORY_STREAM, NOTHING_STREAM):
            _add(message, "stream", int64_val=node.stream)
    else:
        _add(message, "is_cpu_op", bool_val=False)
        _add(message, "comm_size", int64_val=node.size_bytes)
        if node.kind is NodeKind.COLLECTIVE:
            assert node.call is not None
            message.type = COLLECTIVE
            _add(message, "comm_type", int64_val=CALLS.index(node.call))
            _add(message, "pg_name", string_val=graph.groups[node.group].name)
            if node.call in ROOTED:
                _add(message, "root_rank", int64_val=node.root)
        else:
            is_send = node.kind is NodeKind.SEND
            if not -LAST_TAG <= node.tag <= LAST_TAG:
                raise ConfigError(
                    f"{graph.place(rank, node)}: Chakra's tags are {LAST_TAG} at most, got "
                    f"{node.tag}; take a smaller one, or write GOAL"
                )
            message.type = SEND if is_send else RECEIVE
            _add(message, "comm_src", int32_val=rank if is_send else node.peer)
            _add(message, "comm_dst", int32_val=node.peer if is_send else rank)
            _add(message, "comm_tag", int32_val=node.tag)
    if node.label:
        _add(message, "label", string_val=node.label)
    return message


def _add_times(message: Any, node: WorkNode, times: NodeTimes) -> None:
    """Note when a node ran in a replay; a meeting's duration is its time on the wire."""
    message.start_time_micros = times.start_ps // PS_PER_US
    if node.kind is not NodeKind.COMPUTE:
        message.duration_micros = round((times.end_ps - times.start_ps) / PS_PER_US)


def _add(message: Any, name: str, **value: Any) -> None:
    message.attr.append(schema.AttributeProto(name=name, **value))


def groups_of(
    lists: Mapping[str, Sequence[tuple[int, ...]]], ranks: int
) -> list[tuple[str, CallGroup]]:
    """Return the groups of a graph after what files call them: those of files, and of everybody.

    Groups of one name have their first rank in their own.
    """
    groups = []
    for name, lists_of_ranks in lists.items():
        for members in lists_of_ranks:
            own = name if len(lists_of_ranks) == 1 else f"{name}_{members[0]}"
            while own != name and own in lists:
                own += "_"
            groups.append((name, CallGroup(own, members)))
    if EVERYBODY not in lists:
        groups.append((EVERYBODY, CallGroup(EVERYBODY, tuple(range(ranks)))))
    return groups
