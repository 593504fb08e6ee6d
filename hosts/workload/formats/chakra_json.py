"""Chakra traces as JSON: the form that Chakra's feeder reads, and what its jsonizer prints.

    {"workload_graph": [
      {"Id": 1, "Name": "forward", "NodeType": 4, "data_deps": [], "runtime": 10,
       "is_cpu_op": false},
      {"Id": 2, "Name": "gradient", "NodeType": 7, "data_deps": [1], "comm_type": 0,
       "comm_size": 65536, "is_cpu_op": false}]}

Numbers are those of the protobuf schema; `runtime` is in microseconds. People write such files with
numbers as texts, names of types, and fields as the schema calls them, all of which are read. The
jsonizer prints one object after another, the metadata first, with the names of protobuf's JSON.

Source:
    MLCommons Chakra, src/feeder/json_node.cpp and src/jsonizer/jsonizer.py.
"""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

from google.protobuf.json_format import ParseDict, ParseError  # type: ignore[import-untyped]

from ringleaf.core.files import kind_of
from ringleaf.core.units import PS_PER_US, is_whole
from ringleaf.errors import ConfigError
from ringleaf.hosts.workload.formats import schema
from ringleaf.hosts.workload.formats.framing import once, read_text

GRAPH = "workload_graph"

DIMENSIONS = "involved_dim"
"""The only attribute that is a list."""

_SPACE = re.compile(r"\s*")

_TYPES = (
    *("INVALID_NODE", "METADATA_NODE", "MEM_LOAD_NODE", "MEM_STORE_NODE", "COMP_NODE"),
    *("COMM_SEND_NODE", "COMM_RECV_NODE", "COMM_COLL_NODE"),
)
"""The types of nodes, as protobuf's JSON names them."""

_FIELDS = {
    **dict.fromkeys(("Id", "id"), "id"),
    **dict.fromkeys(("Name", "name"), "name"),
    **dict.fromkeys(("NodeType", "node_type", "type"), "type"),
    **dict.fromkeys(("data_deps", "dataDeps"), "data_deps"),
    **dict.fromkeys(("ctrl_deps", "ctrlDeps"), "ctrl_deps"),
    **dict.fromkeys(("runtime", "duration_micros"), "duration_micros"),
    "start_time_micros": "start_time_micros",
}
"""The fields of a node by their keys; every other key is an attribute."""


def read_messages(path: Path) -> list[Any]:
    """Return the nodes of one rank's file, as protobuf has them.

    Raises:
        ConfigError: If the file can't be read, or is no such trace; the message names the node.
    """
    values = _values(path)
    first = values[0]
    if isinstance(first, dict) and isinstance(first.get(GRAPH), list):
        return [_node(f"{path}: {GRAPH} {at}", each) for at, each in enumerate(first[GRAPH])]
    if len(values) > 1 and all(isinstance(each, dict) for each in values):
        return [_printed(f"{path}: object {at}", each) for at, each in enumerate(values[1:], 2)]
    what = kind_of(path) or "something else"
    raise ConfigError(f"{path}: must be a Chakra trace with a list {GRAPH}, got {what}")


def _values(path: Path) -> list[Any]:
    """Return all values of a file, one after another."""
    text, decoder = read_text(path), json.JSONDecoder(object_pairs_hook=once)
    values: list[Any] = []
    at = _skip(text, 0)
    try:
        while at < len(text) or not values:
            value, at = decoder.raw_decode(text, at)
            values.append(value)
            at = _skip(text, at)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: must be JSON, got {str(error)!r:.80}") from error
    return values


def _skip(text: str, at: int) -> int:
    """Return the place of the next letter that is no space."""
    space = _SPACE.match(text, at)
    assert space is not None
    return space.end()


def _node(where: str, entry: Any) -> Any:
    """Return a node of the feeder's form."""
    here = entry if isinstance(entry, dict) else {}
    keys = _keys(where, here)
    if not {"id", "type"} <= keys.keys():
        raise ConfigError(f"{where}: must be a node with Id and NodeType, got {entry!r:.80}")
    attributes = [_attribute(*each) for each in entry.items() if each[0] not in _FIELDS]
    node = schema.Node(attr=[each for each in attributes if each is not None])
    for field, key in keys.items():
        value = entry[key]
        try:
            if field == "name":
                node.name = str(value)
            elif field.endswith("_deps"):
                getattr(node, field).extend(map(_number, _list(value)))
            elif field == "type" and value in _TYPES:
                node.type = _TYPES.index(value)
            elif field == "duration_micros" and _number(value) % 1:
                exact = round(Fraction(str(value)) * PS_PER_US)
                node.attr.append(schema.AttributeProto(name="duration_ps", int64_val=exact))
            else:
                setattr(node, field, _number(value))
        except (TypeError, ValueError, OverflowError) as error:
            what = "a list of whole numbers" if field.endswith("_deps") else "a whole number"
            raise ConfigError(f"{where}: {key} must be {what}, got {value!r:.80}") from error
    return node


def _keys(where: str, entry: dict[str, Any]) -> dict[str, str]:
    """Return the key of each field that a node has; several keys of one must have one value."""
    keys: dict[str, str] = {}
    for key, value in entry.items():
        if key not in _FIELDS or value is None:
            continue
        first = keys.setdefault(_FIELDS[key], key)
        if str(entry[first]) != str(value):
            raise ConfigError(
                f"{where}: {first} and {key} are one field, got {entry[first]!r:.80} and "
                f"{value!r:.80}; leave one out"
            )
    return keys


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError
    return value


def _number(value: Any) -> Any:
    """Return a number, which may be a text; one with a point that is whole is an integer."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise TypeError
    if isinstance(value, str):
        value = int(value) if is_whole(value) else float(value)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _attribute(name: str, value: Any) -> Any:
    """Return an attribute; None: its value is nothing that a node is read by."""
    kinds = {bool: "bool_val", int: "int64_val", float: "double_val", str: "string_val"}
    if type(value) is int and not -(1 << 63) <= value < 1 << 63:
        value = str(value)  # refused where it is looked at
    if type(value) in kinds:
        return schema.AttributeProto(name=name, **{kinds[type(value)]: value})
    if name == DIMENSIONS and isinstance(value, list):
        return schema.AttributeProto(name=name, bool_list={"values": map(bool, value)})
    return None


def _printed(where: str, entry: dict[str, Any]) -> Any:
    """Return a node that the jsonizer has printed."""
    kind = entry.get("type", _TYPES[0])
    if kind not in _TYPES:
        raise ConfigError(f"{where}: must have a type of a node, got {kind!r:.80}")
    try:
        return ParseDict({**entry, "type": _TYPES.index(kind)}, schema.Node())
    except ParseError as error:
        raise ConfigError(
            f"{where}: must be a node of the schema, got {str(error)!r:.120}"
        ) from error
