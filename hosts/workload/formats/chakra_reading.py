"""Chakra execution traces, read into graphs of work.

Data dependencies hold. Control dependencies hold, too, as far as they can: traces of PyTorch name
callers by them, which the converter may have dropped, or which wait for what they call. Those are
passed over, as Chakra's own feeder does with all of them, and counted.

The host's call of a collective or message (`is_cpu_op`, and nothing about ranks or sizes) is a
computation of the host; the kernel, a node of its own, communicates.

Source:
    MLCommons Chakra, schema 1.0; its feeder, and ASTRA-sim 2's workload layer.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from math import nan
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from google.protobuf.unknown_fields import UnknownFieldSet  # type: ignore[import-untyped]

from ringleaf.core.files import CHAKRA_JSON, CHAKRA_PRINTED, kind_of
from ringleaf.core.units import PS_PER_S, PS_PER_US, format_count, is_whole
from ringleaf.errors import ConfigError
from ringleaf.hosts.workload.formats import chakra_json, schema
from ringleaf.hosts.workload.formats.chakra import (
    CALLS,
    COLLECTIVE,
    CPU_STREAM,
    EVERYBODY,
    INVALID,
    LOAD,
    MEMORY_STREAM,
    METADATA,
    NOTHING_STREAM,
    RECEIVE,
    SEND,
    STORE,
)
from ringleaf.hosts.workload.formats.framing import read_frames
from ringleaf.hosts.workload.graph import (
    LONGEST_NAME,
    MOST_RANKS,
    ROOTED,
    CalledCollective,
    CallGroup,
    NodeKind,
    RankWork,
    WorkNode,
)

_KINDS = {SEND: NodeKind.SEND, RECEIVE: NodeKind.RECEIVE, COLLECTIVE: NodeKind.COLLECTIVE}

MOST_OPS = 1 << 64  # of a node

_COLLECTIVES = (
    *("ALL_REDUCE", "REDUCE", "ALL_GATHER", "GATHER", "SCATTER", "BROADCAST"),
    *("ALL_TO_ALL", "REDUCE_SCATTER", "REDUCE_SCATTER_BLOCK", "BARRIER"),
)
"""The names of each `comm_type`."""

_OLDER_ATTRIBUTE = 11
"""The field of attributes of the schema until October 2023, in et_def/et_def.proto."""

_TELLING = {SEND: "comm_dst", RECEIVE: "comm_src", COLLECTIVE: "comm_type"}
"""The attribute without which a node on the host's processor is a computation."""


@dataclass(slots=True)
class Passed:
    """Counts of what is read otherwise than it stands, for one line to people.

    Attributes:
        missing: Control dependencies on nodes that are not there.
        circles: Control dependencies that would have nodes wait for themselves.
        calls: Calls by the host that are computations.
        starts: Nodes that say when they started.
        timeless: Computations of so many operations, whose time nobody says.
        timed: Computations of so many operations, whose time follows from the rate.
        loads: Loads and stores of so many bytes, whose time nobody says.
    """

    missing: int = 0
    circles: int = 0
    calls: int = 0
    starts: int = 0
    timeless: int = 0
    timed: int = 0
    loads: int = 0

    def notes(self, flops: float | None) -> Iterator[str]:
        """Yield lines on what there is of it, with the rate that was asked for."""
        facts = (
            ("left out", self.missing, "ctrl_dep", "on nodes that the trace lacks"),
            ("left out", self.circles, "ctrl_dep", "by which nodes wait for themselves"),
            ("not used", self.starts, "start time", "(nodes begin when nothing keeps them)"),
            (
                *("in no time", self.timeless, "computation"),
                "with num_ops and no duration: say the rate as flops",
            ),
            ("in no time", self.loads, "load/store node", "without a duration, of whatever size"),
            (
                *("computations of hosts", self.calls, "call"),
                "of collectives or messages by hosts",
            ),
        )
        for what, count, noun, more in facts:
            if count:
                yield f"{what}: {format_count(count, noun)} {more}"
        if flops and not self.timed:
            yield "without effect here: flops (no computation has num_ops and no duration)"


def read_messages(path: Path) -> list[Any]:
    """Return the nodes of one rank's file, as protobuf has them.

    Raises:
        ConfigError: If the file can't be read, or is no trace.
    """
    kind = kind_of(path)
    if path.suffix == ".json" or kind in (CHAKRA_JSON, CHAKRA_PRINTED):
        return chakra_json.read_messages(path)
    if kind:
        raise ConfigError(f"{path}: must be a Chakra trace, got {kind}")
    frames = read_frames(path)
    first = next(frames, None)
    if first is None:
        raise ConfigError(f"{path}: must begin with its metadata, got an empty file")
    nodes = [_parse(schema.Node, path, *first)] if _is_node(first[1]) else []
    if not nodes:
        _check_metadata(path, *first)
    nodes += [_parse(schema.Node, path, at, data) for at, data in frames]
    if nodes and _OLDER_ATTRIBUTE in {each.field_number for each in UnknownFieldSet(nodes[0])}:
        raise ConfigError(
            f"{path}: must be of schema 1.0, got nodes of before October 2023; convert it again"
        )
    return nodes


def _is_node(data: bytes) -> bool:
    """Return whether a file's first message is a node: traces of 2023 may lack metadata.

    Metadata have no field with the number of a node's type.
    """
    try:
        return bool(schema.Node.FromString(data).type)
    except DecodeError:
        return False


def _check_metadata(path: Path, at: int, data: bytes) -> None:
    is_older = data[2:3] == b"\n"  # an attribute's name in place of a version
    metadata = _parse(schema.OlderMetadata if is_older else schema.GlobalMetadata, path, at, data)
    version = "" if is_older else metadata.version.removeprefix("v")
    if version and version.partition(".")[0] not in ("0", "1"):
        raise ConfigError(f"{path}: must be of schema 1.0, got {version!r:.80}")


def called_groups(messages: Iterable[Any]) -> set[str]:
    """Return the names of the groups that collectives are called in."""
    return {
        str(_value(each))
        for message in messages
        if message.type == COLLECTIVE
        for each in message.attr
        if each.name == "pg_name"
    }


def named_groups(messages: Iterable[Any]) -> dict[str, list[int]]:
    """Return the process groups that metadata of PyTorch tell of; one without ranks has all.

    How many these are is in metadata of newer releases only: else there are no ranks.
    """
    groups: dict[str, list[int]] = {}
    for message in messages:
        if message.type != METADATA or '"pg_name"' not in message.inputs.values:
            continue
        try:  # a list of one text, as Python prints it: ['[{"pg_name": ...}]']
            for each in json.loads(message.inputs.values[2:-2]):
                ranks = each["ranks"] or range(min(int(each.get("group_size", 0)), MOST_RANKS + 1))
                groups[str(each["pg_name"])] = [int(rank) for rank in ranks]
        except (ValueError, LookupError, TypeError, RecursionError):
            continue  # other tools' metadata: a group that is called and unknown is refused
    return groups


def read_rank(
    path: Path,
    rank: int,
    messages: Sequence[Any],
    groups: Mapping[str, tuple[int, CallGroup]],
    passed: Passed,
    flops: float | None = None,
) -> RankWork:
    """Return the nodes of one rank.

    Args:
        path: Its file.
        rank: The rank.
        messages: What `read_messages` returns for the file.
        groups: By name, the place of each group among the graph's, and the group; `EVERYBODY`
            among them.
        passed: Counts what is passed over.
        flops: Operations per second, for computations with `num_ops` and no duration; None: such
            take no time.

    Raises:
        ConfigError: If a node lacks something.
    """
    reader = _Reader(path, rank, groups, flops, passed)
    after = _dependencies(messages, passed)
    passed.starts += sum(message.start_time_micros > 0 for message in messages)
    nodes = tuple(
        reader.node(message, waits) for message, waits in zip(messages, after, strict=True)
    )
    return RankWork(nodes, str(path))


def _dependencies(messages: Sequence[Any], passed: Passed) -> list[tuple[int, ...]]:
    """Return, by node, the numbers of those that it waits for."""
    known = {message.id for message in messages}
    data = [tuple(dict.fromkeys(message.data_deps)) for message in messages]
    both = []
    for message, own in zip(messages, data, strict=True):
        there = [each for each in message.ctrl_deps if each in known]
        passed.missing += len(message.ctrl_deps) - len(there)
        others = [each for each in there if each != message.id]
        passed.circles += len(there) - len(others)
        both.append(tuple(dict.fromkeys((*own, *others))))
    ids = [message.id for message in messages]
    if both != data and _is_circular(ids, both) and not _is_circular(ids, data):
        passed.circles += sum(len(all_) - len(own) for all_, own in zip(both, data, strict=True))
        return data
    return both


def _is_circular(ids: Sequence[int], after: Sequence[tuple[int, ...]]) -> bool:
    try:
        TopologicalSorter(dict(zip(ids, after, strict=True))).prepare()
    except CycleError:
        return True
    return False


def _parse(kind: Any, path: Path, at: int, data: bytes) -> Any:
    message = kind()
    try:
        message.ParseFromString(data)
    except DecodeError as error:
        name = kind.DESCRIPTOR.name
        raise ConfigError(
            f"{path}: byte {at}: must be a {name} of {format_count(len(data), 'byte')}, got "
            "something else; the file is damaged, or is no Chakra trace"
        ) from error
    return message


class _Reader:
    """Turns a rank's messages into nodes."""

    def __init__(
        self,
        path: Path,
        rank: int,
        groups: Mapping[str, tuple[int, CallGroup]],
        flops: float | None,
        passed: Passed,
    ) -> None:
        self._path, self._rank, self._groups, self._flops = path, rank, groups, flops
        self._passed = passed

    def node(self, message: Any, after: tuple[int, ...]) -> WorkNode:
        """Return the node of a message, which waits for others."""
        name = f" {message.name[:LONGEST_NAME]!r}" if message.name else ""
        where = f"{self._path}: rank {self._rank}, node {message.id}{name}"
        attributes = {each.name: _value(each) for each in message.attr}
        more: dict[str, Any] = {"after": after, "label": str(attributes.get("label", ""))}
        kind = _KINDS.get(message.type, NodeKind.COMPUTE)
        if kind is not NodeKind.COMPUTE and _is_host_s(message.type, attributes):
            kind = NodeKind.COMPUTE
            self._passed.calls += 1
        if kind is not NodeKind.COMPUTE:
            make = self._call if message.type == COLLECTIVE else self._message
            more |= make(message.type, attributes, where)
        elif message.type == INVALID:
            more["stream"] = NOTHING_STREAM
        elif METADATA <= message.type <= COLLECTIVE:
            more |= self._computation(message, attributes, where)
        else:
            raise ConfigError(f"{where}: must have a type from 0 to 7, got {message.type}")
        return WorkNode(message.id, kind, message.name, **more)

    def _computation(
        self, message: Any, attributes: Mapping[str, Any], where: str
    ) -> dict[str, Any]:
        micros, operations = message.duration_micros, _operations(attributes.get("num_ops"))
        time_ps = micros * PS_PER_US
        if "duration_ps" in attributes:
            time_ps = _whole(attributes, "duration_ps", where)
        elif not micros and operations:
            if not 0 < operations < MOST_OPS:
                raise ConfigError(
                    f"{where}: num_ops must be from 0 to below 2^64, got "
                    f"{attributes['num_ops']!r:.40}; give duration_micros"
                )
            self._passed.timeless += self._flops is None
            self._passed.timed += self._flops is not None
            time_ps = round(operations / self._flops * PS_PER_S) if self._flops else 0
        if message.type in (LOAD, STORE):
            stream = MEMORY_STREAM
            self._passed.loads += not time_ps and bool(attributes.get("tensor_size"))
        elif _is_on_host(attributes):
            stream = CPU_STREAM
        else:
            stream = _whole(attributes, "stream", where) if "stream" in attributes else 0
        return {"duration_ps": time_ps, "stream": stream}

    def _message(self, kind: int, attributes: Mapping[str, Any], where: str) -> dict[str, Any]:
        own, other = ("comm_src", "comm_dst") if kind == SEND else ("comm_dst", "comm_src")
        if own in attributes and _whole(attributes, own, where) != self._rank:
            raise ConfigError(f"{where}: {own} must be its rank, got {attributes[own]!r}")
        size = "comm_size" if "comm_size" in attributes else "tensor_size"
        return {
            "peer": _whole(attributes, other, where),
            "size_bytes": _whole(attributes, size, where),
            "tag": _whole(attributes, "comm_tag", where) if "comm_tag" in attributes else 0,
        }

    def _call(self, kind: int, attributes: Mapping[str, Any], where: str) -> dict[str, Any]:
        number = _whole(attributes, "comm_type", where, _COLLECTIVES)
        if number not in range(len(CALLS)):
            raise ConfigError(
                f"{where}: comm_type must be from 0 to {len(CALLS) - 1}, got {number}"
            )
        name = str(attributes.get("pg_name", ""))
        if name == "" or (name == "0" and name not in self._groups):
            name = EVERYBODY  # ASTRA-sim's default group has the name 0, or none
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
        size = _whole(attributes, "comm_size", where) if call is not CalledCollective.BARRIER else 0
        place, group = self._groups[name]
        root = group.ranks[0] if call in ROOTED else 0
        if call in ROOTED and "root_rank" in attributes:
            root = _whole(attributes, "root_rank", where)
        return {"call": call, "group": place, "size_bytes": size, "root": root}


def _is_host_s(kind: int, attributes: Mapping[str, Any]) -> bool:
    """Return whether a node that communicates is only the host's call of it."""
    return _is_on_host(attributes) and _TELLING[kind] not in attributes


def _is_on_host(attributes: Mapping[str, Any]) -> bool:
    """Return whether a node is of the host's processor; writers have numbers and texts for it."""
    value = attributes.get("is_cpu_op")
    return value.lower() in ("true", "1") if isinstance(value, str) else bool(value)


def _value(attribute: Any) -> Any:
    """Return an attribute's value; of a list, its values."""
    which = attribute.WhichOneof("value")
    if which is None:
        return None
    value = getattr(attribute, which)
    return list(value.values) if which.endswith("_list") else value


def _operations(value: Any) -> float:
    """Return a number of operations, which may be a text; 0: there is none; NaN: it is not one."""
    if isinstance(value, str) and (is_whole(value) or not value):
        return int(value) if is_whole(value) else 0
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return nan
    return value if isinstance(value, (int, float)) else 0


def _whole(attributes: Mapping[str, Any], name: str, where: str, names: Sequence[str] = ()) -> int:
    """Return a whole number, which may be a text, a float, or one of these names by its place."""
    value = attributes.get(name)
    if isinstance(value, str):
        if value.upper() in names:
            return names.index(value.upper())
        value = int(value) if is_whole(value.removeprefix("-")) else value
    elif isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        got = "none" if value is None else repr(value)
        raise ConfigError(f"{where}: must have a whole number {name}, got {got:.80}")
    return value
