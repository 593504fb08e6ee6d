"""Assignments to `$valid$`, as p4c of 2018 wrote them for parts of headers.

In BMv2 a header has a flag, by which it is deparsed and which the operation `valid` reads, and a
hidden field of the same name, which programs read and write. Whatever makes a header valid or
invalid sets both; an assignment sets the field alone. So a header whose field is assigned gets
another field, which stands for it, and the flag stays with the header.
Source: behavioral-model `src/bm_sim/headers.cpp`, `Header::mark_valid`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ringleaf.switches.json.target import references
from ringleaf.switches.source import VALID

Json = dict[str, Any]

SHOWN = "validity as assigned"  # the header of the hidden fields that are assigned

WRITERS = {
    **dict.fromkeys(("assign", "modify_field", "set", "register_read"), 0),
    **dict.fromkeys(("modify_field_with_hash_based_offset", "modify_field_rng_uniform"), 0),
    "execute_meter": 2,
}
"""Primitives that write a field, and the position of it."""


def split_validity(data: Json, refuse: Callable[..., Exception]) -> None:
    """Change a document so that no `$valid$` is assigned.

    Raises:
        ConfigError: If the header is an element of a stack or a member of a union, whose validity
            others change as well.
    """
    assigned = dict.fromkeys(
        primitive["parameters"][at]["value"][0]
        for primitives in bodies(data)
        for primitive in map(inner, primitives)
        if (at := WRITERS.get(primitive["op"])) is not None
        and _is_validity(primitive["parameters"][at : at + 1])
    )
    if not assigned:
        return
    numbers = {item["name"]: item["id"] for item in data["headers"]}
    members = {
        number
        for section in ("header_stacks", "header_unions")
        for item in data[section]
        for number in item["header_ids"]
    }
    for name in assigned:
        if numbers[name] in members:
            raise refuse("the validity of a stack's or union's header is assigned", name)
    for item, key in references(data):
        if item[key][1] == VALID and item[key][0] in assigned:
            item[key] = [SHOWN, item[key][0]]
    for primitives in bodies(data):
        primitives[:] = [part for each in primitives for part in _with_shown(each, assigned)]
    fields = [[name, 1, False] for name in assigned]
    if len(fields) % 8:  # a header has whole bytes
        fields.append(["", 8 - len(fields) % 8, False])
    number = max(numbers.values()) + 1
    data["header_types"].append({"name": SHOWN, "id": -1, "fields": fields})
    header = {"name": SHOWN, "id": number, "header_type": SHOWN, "metadata": False}
    data["headers"].append(header)


def bodies(data: Json) -> Iterator[list[Json]]:
    """Return all lists of primitives in a document: those of actions and of parser states."""
    for action in data["actions"]:
        yield action["primitives"]
    for parser in data["parsers"]:
        for state in parser["parse_states"]:
            yield state["parser_ops"]


def inner(primitive: Json) -> Json:
    """Return the primitive inside a parser's operation, or the operation itself."""
    own: Json = primitive["parameters"][0] if primitive["op"] == "primitive" else primitive
    return own


def _is_validity(parameters: list[Json]) -> bool:
    return [item.get("value", ())[1:] for item in parameters if item["type"] == "field"] == [
        [VALID]
    ]


def _with_shown(primitive: Json, assigned: dict[str, None]) -> Iterator[Json]:
    """Yield a primitive, and the assignment that keeps a header's hidden field in step."""
    yield primitive
    own = inner(primitive)
    if not own["parameters"] or own["parameters"][0].get("value") not in list(assigned):
        return
    name = own["parameters"][0]["value"]
    shown: Json = {"type": "field", "value": [SHOWN, name]}
    value: Json
    match own["op"]:
        case "extract" | "extract_VL":
            value = {"type": "hexstr", "value": "0x1"}
        case "add_header" | "add_header_fast" | "remove_header":
            value = {"type": "hexstr", "value": hex(own["op"] != "remove_header")}
        case "assign_header":
            value = {"type": "field", "value": [name, VALID]}
        case _:
            return
    in_parser = own is not primitive or own["op"].startswith("extract")
    yield {"op": "set" if in_parser else "assign", "parameters": [shown, value]}
