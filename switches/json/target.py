"""The fields by which a program and `simple_switch` talk, put where the engine has them.

`simple_switch` names most of them as P4_14 does: `intrinsic_metadata.mcast_grp`. p4c's JSON says
by aliases that these are fields of `standard_metadata`; older programs declare the headers
`intrinsic_metadata` and `queueing_metadata`. A field that the switch does not find is without
effect. In the engine, all are fields of `standard_metadata`, and all are there.
Source: behavioral-model `targets/simple_switch/simple_switch.cpp`; `src/bm_sim/phv.cpp`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ringleaf.switches.engine.layout import DROP_PORT
from ringleaf.switches.source import STANDARD

Json = dict[str, Any]
Name = tuple[str, str]  # of a header and its field

REQUIRED = ("ingress_port", "packet_length", "instance_type", "egress_spec", "egress_port")

_OWN = {"parser_error": 32, "checksum_error": 1}
"""Fields that the switch looks for in `standard_metadata` itself, with v1model's bits."""

_INTRINSIC = {
    "ingress_global_timestamp": 48,
    "egress_global_timestamp": 48,
    "mcast_grp": 16,
    "egress_rid": 16,
    "priority": 3,
}
_QUEUEING = {"enq_timestamp": 32, "enq_qdepth": 19, "deq_timedelta": 32, "deq_qdepth": 19}
"""These are set only if all are there."""

_HOLDER = {
    **dict.fromkeys(_INTRINSIC, "intrinsic_metadata"),
    **dict.fromkeys(_QUEUEING, "queueing_metadata"),
}
"""The headers in which the switch looks for these fields."""

_QUEUE = ("queueing_metadata", "qid")  # for which v1model has no field

_PLAIN = " (of the program alone)"  # ends the name of a field that the switch does not know


def place_fields(data: Json, refuse: Callable[..., Exception]) -> None:
    """Change a document so that the switch's fields are in `standard_metadata`.

    Args:
        data: The document, whose sections are all there.
        refuse: Makes the error of what is wrong, the value, and the part of the document.

    Raises:
        ConfigError: If a field is not there without which `simple_switch` refuses the program.
    """
    aliases: dict[Any, Any] = {
        tuple(name.split(".", 1)): tuple(to) for name, to in data["field_aliases"]
    }
    _replace([data["parsers"], data["calculations"]], aliases)  # BMv2 knows them there alone
    moves: dict[Name, Name] = {}
    fields = _Fields(data)
    for name in REQUIRED:
        if fields.width((STANDARD, name)) is None:
            raise refuse("simple_switch needs fields of standard_metadata that there are not", name)
    by_name = _switch_fields(fields, aliases)
    for name, width in {**_OWN, **_INTRINSIC, **_QUEUEING, "qid": 0}.items():
        place = (STANDARD, name)
        at = by_name.get(name)
        have = None if at is None else fields.width(at)
        if at == place and have is not None:
            continue
        if fields.width(place) is not None:
            fields.rename(place, name + _PLAIN)
            moves[place] = (STANDARD, name + _PLAIN)
        if have or width:
            fields.add(place, have or width)
        if at is not None and have is not None:
            moves[at] = place
    _replace(data, moves)
    if by_name["mcast_grp"] in moves or (STANDARD, "mcast_grp") in moves:
        _mark_plainly(data, moves.get((STANDARD, "mcast_grp")))


def _switch_fields(fields: _Fields, aliases: Mapping[Name, Name]) -> dict[str, Name]:
    """Return the fields that the switch finds, which may be absent, by their engine's names."""
    by_name = {name: (STANDARD, name) for name in _OWN}
    places = {name: (holder, name) for name, holder in _HOLDER.items()}
    by_name |= {name: aliases.get(places[name], places[name]) for name in _INTRINSIC}
    queueing = {name: aliases.get(places[name], places[name]) for name in _QUEUEING}
    if all(fields.width(at) is not None for at in queueing.values()):
        by_name |= queueing | {"qid": _QUEUE}
    return by_name


class _Fields:
    """The fields of a document's headers; that of `standard_metadata` may be changed."""

    def __init__(self, data: Json) -> None:
        types = {item["name"]: item["fields"] for item in data["header_types"]}
        self._fields = {item["name"]: types[item["header_type"]] for item in data["headers"]}

    def width(self, name: Name) -> int | None:
        """Return a field's bits; None if it is not there."""
        header, field = name
        widths = {item[0]: item[1] for item in self._fields.get(header, ())}
        return widths.get(field)

    def add(self, name: Name, width: int) -> None:
        """Add an unsigned field to a header."""
        self._fields[name[0]].append([name[1], width, False])

    def rename(self, name: Name, to: str) -> None:
        """Give a field another name; its place stays."""
        for item in self._fields[name[0]]:
            if item[0] == name[1]:
                item[0] = to


def _replace(data: Any, moves: Mapping[Any, Any]) -> None:
    """Let all references to fields that have moved name their new places."""
    for item, key in references(data):
        header, field = item[key]
        if (header, field) in moves:
            if key == "target" and "match_type" in item:
                item.setdefault("name", f"{header}.{field}")
            item[key] = list(moves[header, field])


def references(data: Any) -> Iterator[tuple[Json, str]]:
    """Yield each object that names a field, with the key of the pair of names."""
    waiting = [data]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            keys = ["target", "result_target"]
            if item.get("type") == "field":
                keys.append("value")
            for key in keys:
                value = item.get(key)
                if isinstance(value, list) and [type(part) for part in value] == [str, str]:
                    yield item, key
            waiting += item.values()
        elif isinstance(item, list):
            waiting += item


def _mark_plainly(data: Json, group: Name | None) -> None:
    """Write `mark_to_drop` out, where it does not reset the group that the switch takes."""
    values = {(STANDARD, "egress_spec"): DROP_PORT}
    if group is not None:
        values[group] = 0
    for action in data["actions"]:
        action["primitives"] = [
            part
            for primitive in action["primitives"]
            for part in (
                [_assignment(primitive, at, value) for at, value in values.items()]
                if primitive["op"] == "mark_to_drop"
                else [primitive]
            )
        ]


def _assignment(primitive: Json, at: Name, value: int) -> Json:
    target = {"type": "field", "value": list(at)}
    return {
        **primitive,
        "op": "assign",
        "parameters": [target, {"type": "hexstr", "value": hex(value)}],
    }
