"""Fields of P4_14 that are `saturating`: a value beyond their range becomes the nearest in it.

What is assigned to them is cast, as p4c writes it for P4_16's saturating arithmetic.
Source: behavioral-model `include/bm/bm_sim/fields.h`, `Field::export_bytes`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ringleaf.switches.json.validity import WRITERS, bodies, inner

Json = dict[str, Any]

_ASSIGNING = ("assign", "modify_field", "set")


def cast_saturating(data: Json, refuse: Callable[..., Exception]) -> None:
    """Change a document so that no field is declared to be saturating.

    Raises:
        ConfigError: If such a field is an element's of a stack, or is written otherwise than by an
            assignment.
    """
    kinds = _take_out(data)
    if not kinds:
        return
    for stack in data["header_stacks"]:
        if stack["header_type"] in kinds:
            raise refuse("saturating fields of a stack are not supported", stack["name"], stack)
    types = {item["name"]: item["header_type"] for item in data["headers"]}
    for primitive in (inner(each) for body in bodies(data) for each in body):
        at = WRITERS.get(primitive["op"])
        target = {} if at is None else primitive["parameters"][at]
        if target.get("type") != "field" or not isinstance(target["value"][0], str):
            continue
        header, field = target["value"]
        cast = kinds.get(types.get(header, ""), {}).get(field)
        if cast is None:
            continue
        if primitive["op"] not in _ASSIGNING or primitive["parameters"][1]["type"] == "lookahead":
            raise refuse(
                f"{primitive['op']} of a saturating field is not supported", field, primitive
            )
        width = {"type": "hexstr", "value": hex(cast["bits"])}
        value = {"op": cast["op"], "left": primitive["parameters"][1], "right": width}
        whole = {"type": "expression", "value": value}
        primitive["parameters"][1] = {"type": "expression", "value": whole}


def _take_out(data: Json) -> dict[str, dict[str, Json]]:
    """Take the word out of all declarations; return casts by header types and their fields."""
    kinds: dict[str, dict[str, Json]] = {}
    for kind in data["header_types"]:
        for item in kind["fields"]:
            if len(item) > 3 and item.pop():
                cast = {"op": "sat_cast" if item[2] else "usat_cast", "bits": item[1]}
                kinds.setdefault(kind["name"], {})[item[0]] = cast
    return kinds
