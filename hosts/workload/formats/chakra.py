"""Chakra execution traces, read into graphs of work and written from them.

A trace has a file per rank: a `GlobalMetadata`, then `Node`s, each after its length. Groups are in
a JSON file beside it, as ASTRA-sim has them: names of process groups, and their ranks.

What a node needs beyond the schema is in attributes that other tools pass over: `duration_ps`,
`stream`, `label` and `root_rank`. Control and data dependencies mean the same.

Source:
    MLCommons Chakra, schema 1.0, and the attributes of its generator and feeder.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

from ringleaf.errors import ConfigError
from ringleaf.hosts.workload.formats import schema
from ringleaf.hosts.workload.formats.framing import frame, read_frames
from ringleaf.hosts.workload.graph import (
    LONGEST_NAME,
    ROOTED,
    Call,
    CallGroup,
    Graph,
    Kind,
    Node,
    RankWork,
)
from ringleaf.hosts.workload.replay import Times
from ringleaf.units import PS_PER_S, PS_PER_US

VERSION = "1.0.0"

METADATA, LOAD, STORE, COMPUTE, SEND, RECEIVE, COLLECTIVE = range(1, 8)
"""The types of nodes; 0 is invalid."""

CALLS = (
    *(Call.ALLREDUCE, Call.REDUCE, Call.ALL_GATHER, Call.GATHER, Call.SCATTER, Call.BROADCAST),
    *(Call.ALL_TO_ALL, Call.REDUCE_SCATTER, Call.REDUCE_SCATTER, Call.BARRIER),
)
"""The call of each `comm_type`; a reduce-scatter has two."""

CPU_STREAM = -1
MEMORY_STREAM = -2
"""The streams of nodes on the host's processor, and of those that load or store."""

EVERYBODY = "world"
"""The name of the group of all ranks, which collectives without `pg_name` call."""

_KINDS = {SEND: Kind.SEND, RECEIVE: Kind.RECEIVE, COLLECTIVE: Kind.COLLECTIVE}


def read_rank(
    path: Path, rank: int, groups: Mapping[str, int], flops: float | None = None
) -> RankWork:
    """Return the nodes of one rank's file.

    Args:
        path: The file.
        rank: Its rank.
        groups: The place of each group among the graph's, by name; `EVERYBODY` among them.
        flops: Operations per second, for computations with `num_ops` and no duration; None: such
            take no time.

    Raises:
        ConfigError: If the file can't be read, is no trace, or a node lacks something.
    """
    frames = read_frames(path)
    first = next(frames, None)
    if first is None:
        raise ConfigError(f"{path}: must begin with its metadata, got an empty file")
    version = _parse(schema.GlobalMetadata, path, *first).version
    if version and version.partition(".")[0] not in ("0", "1"):
        raise ConfigError(f"{path}: must be of schema 1.0, got {version!r}")
    reader = _Reader(path, rank, groups, flops)
    return RankWork(
        tuple(reader.node(_parse(schema.Node, path, at, data)) for at, data in frames), str(path)
    )


def _parse(kind: Any, path: Path, at: int, data: bytes) -> Any:
    found = kind()
    try:
        found.ParseFromString(data)
    except DecodeError as error:
        name = kind.DESCRIPTOR.name
        raise ConfigError(
            f"{path}: byte {at}: must be a {name} of {len(data)} bytes, got something else; the "
            "file is damaged, or is no Chakra trace"
        ) from error
    return found


class _Reader:
    """Turns a rank's messages into nodes."""

    def __init__(
        self, path: Path, rank: int, groups: Mapping[str, int], flops: float | None
    ) -> None:
        self._path, self._rank, self._groups, self._flops = path, rank, groups, flops

    def node(self, given: Any) -> Node:
        """Return the node of a message."""
        name = f" {given.name[:LONGEST_NAME]!r}" if given.name else ""
        where = f"{self._path}: rank {self._rank}, node {given.id}{name}"
        attributes = {each.name: _value(each) for each in given.attr}
        more: dict[str, Any] = {
            "after": tuple(dict.fromkeys((*given.data_deps, *given.ctrl_deps))),
            "label": str(attributes.get("label", "")),
        }
        if given.type in _KINDS:
            make = self._call if given.type == COLLECTIVE else self._message
            more |= make(given.type, attributes, where)
        elif METADATA <= given.type <= COMPUTE:
            more |= self._computation(given, attributes, where)
        else:
            raise ConfigError(f"{where}: must have a type from 1 to 7, got {given.type}")
        return Node(given.id, _KINDS.get(given.type, Kind.COMPUTE), given.name, **more)

    def _computation(self, given: Any, attributes: Mapping[str, Any], where: str) -> dict[str, Any]:
        micros, operations = given.duration_micros, attributes.get("num_ops", 0)
        time_ps = micros * PS_PER_US
        if "duration_ps" in attributes:
            time_ps = _whole(attributes, "duration_ps", where)
        elif not micros and self._flops and isinstance(operations, int) and operations > 0:
            time_ps = round(operations / self._flops * PS_PER_S)
        if given.type in (LOAD, STORE):
            stream = MEMORY_STREAM
        elif attributes.get("is_cpu_op", False):
            stream = CPU_STREAM
        else:
            stream = _whole(attributes, "stream", where) if "stream" in attributes else 0
        return {"duration_ps": time_ps, "stream": stream}

    def _message(self, kind: int, attributes: Mapping[str, Any], where: str) -> dict[str, Any]:
        own, other = ("comm_src", "comm_dst") if kind == SEND else ("comm_dst", "comm_src")
        if attributes.get(own, self._rank) != self._rank:
            raise ConfigError(f"{where}: {own} must be its rank, got {attributes[own]!r}")
        size = "comm_size" if "comm_size" in attributes else "tensor_size"
        return {
            "peer": _whole(attributes, other, where),
            "size_bytes": _whole(attributes, size, where),
            "tag": _whole(attributes, "comm_tag", where) if "comm_tag" in attributes else 0,
        }

    def _call(self, kind: int, attributes: Mapping[str, Any], where: str) -> dict[str, Any]:
        number = _whole(attributes, "comm_type", where)
        if number not in range(len(CALLS)):
            raise ConfigError(
                f"{where}: comm_type must be from 0 to {len(CALLS) - 1}, got {number}"
            )
        name = str(attributes.get("pg_name", EVERYBODY))
        if name not in self._groups:
            known = ", ".join([*self._groups][:8])
            raise ConfigError(
                f"{where}: pg_name must be a known group, got {name!r}; known: {known}; give the "
                "file of groups"
            )
        dimensions = attributes.get("involved_dim")
        if "pg_name" not in attributes and isinstance(dimensions, list) and not all(dimensions):
            raise ConfigError(
                f"{where}: must name its group by pg_name, got involved_dim {dimensions} alone"
            )
        call = CALLS[number]
        size = _whole(attributes, "comm_size", where) if call is not Call.BARRIER else 0
        rooted = call in ROOTED and "root_rank" in attributes
        root = _whole(attributes, "root_rank", where) if rooted else 0
        return {"call": call, "group": self._groups[name], "size_bytes": size, "root": root}


def _value(attribute: Any) -> Any:
    """Return an attribute's value; of a list, its values."""
    which = attribute.WhichOneof("value")
    if which is None:
        return None
    found = getattr(attribute, which)
    return list(found.values) if which.endswith("_list") else found


def _whole(attributes: Mapping[str, Any], name: str, where: str) -> int:
    value = attributes.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        got = "none" if value is None else repr(value)
        raise ConfigError(f"{where}: must have a whole number {name}, got {got:.80}")
    return value


def write_rank(graph: Graph, rank: int, times: Sequence[Times] | None = None) -> Iterator[bytes]:
    """Yield the bytes of a rank's file, message by message.

    Args:
        graph: The graph.
        rank: The rank.
        times: The times of its nodes in a replay; None: it has not been replayed.

    Raises:
        ConfigError: If a node waits for the begin of another, which Chakra has no word for.
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


def _message_of(graph: Graph, rank: int, node: Node) -> Any:
    message = schema.Node(id=node.id, name=node.name, data_deps=node.after)
    if node.kind is Kind.COMPUTE:
        memory = node.stream == MEMORY_STREAM
        message.type = LOAD if memory else COMPUTE
        message.duration_micros = round(node.duration_ps / PS_PER_US)
        _add(message, "is_cpu_op", bool_val=node.stream == CPU_STREAM)
        _add(message, "duration_ps", int64_val=node.duration_ps)
        if node.stream > 0:
            _add(message, "stream", int64_val=node.stream)
    else:
        _add(message, "is_cpu_op", bool_val=False)
        _add(message, "comm_size", int64_val=node.size_bytes)
        if node.kind is Kind.COLLECTIVE:
            assert node.call is not None
            message.type = COLLECTIVE
            _add(message, "comm_type", int64_val=CALLS.index(node.call))
            _add(message, "pg_name", string_val=graph.groups[node.group].name)
            if node.call in ROOTED:
                _add(message, "root_rank", int64_val=node.root)
        else:
            is_send = node.kind is Kind.SEND
            message.type = SEND if is_send else RECEIVE
            _add(message, "comm_src", int32_val=rank if is_send else node.peer)
            _add(message, "comm_dst", int32_val=node.peer if is_send else rank)
            _add(message, "comm_tag", int32_val=node.tag)
    if node.label:
        _add(message, "label", string_val=node.label)
    return message


def _add_times(message: Any, node: Node, times: Times) -> None:
    """Note when a node ran in a replay; a meeting's duration is its time on the wire."""
    message.start_time_micros = times.start_ps // PS_PER_US
    if node.kind is not Kind.COMPUTE:
        message.duration_micros = round((times.end_ps - times.start_ps) / PS_PER_US)


def _add(message: Any, name: str, **value: Any) -> None:
    message.attr.append(schema.AttributeProto(name=name, **value))


def groups_of(names: Mapping[str, Sequence[int]], ranks: int) -> tuple[CallGroup, ...]:
    """Return the groups of a graph: those of a file, and that of everybody."""
    found = [CallGroup(name, tuple(members)) for name, members in names.items()]
    if EVERYBODY not in names:
        found.append(CallGroup(EVERYBODY, tuple(range(ranks))))
    return tuple(found)
