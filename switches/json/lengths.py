"""Headers of P4_14 that say the length of their varying field themselves, by other fields.

BMv2 computes the length while it extracts the header, from the fields before. Today the parser says
the length, so those fields are looked at before the header is extracted.
Source: behavioral-model `src/bm_sim/headers.cpp`, `Header::extract_VL`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

Json = dict[str, Any]


def spell_lengths(data: Json, refuse: Callable[..., Exception]) -> None:
    """Change a document so that no header type has a `length_exp`.

    Raises:
        ConfigError: If a length depends on a field that is not before the one it is of.
    """
    kinds = {
        kind["name"]: kind
        for kind in data["header_types"]
        if kind.get("length_exp") and any(item[1] == "*" for item in kind["fields"])
    }
    if not kinds:
        return
    names: dict[str, str] = {}
    for section in ("headers", "header_stacks"):
        names |= {item["name"]: item["header_type"] for item in data[section]}
    for parser in data["parsers"]:
        for state in parser["parse_states"]:
            ops = [list(_spelt(op, names, kinds, refuse)) for op in state["parser_ops"]]
            state["parser_ops"] = [op for each in ops for op in each]
    for name, kind in kinds.items():
        fields = [item for item in kind["fields"] if item[1] != "*"]
        number = max(item["id"] for item in data["headers"]) + 1
        data["header_types"].append({"name": _ahead(name), "id": -number, "fields": fields})
        data["headers"].append(
            {"name": _ahead(name), "id": number, "header_type": _ahead(name), "metadata": True}
        )
        kind["length_exp"] = None


def _spelt(
    op: Json, names: dict[str, str], kinds: dict[str, Json], refuse: Callable[..., Exception]
) -> Iterator[Json]:
    """Yield an operation; before an extraction of such a header, those that look at its fields."""
    kind = (
        kinds.get(names.get(op["parameters"][0].get("value"), ""))
        if op["op"] == "extract"
        else None
    )
    if kind is None:
        yield op
        return
    before: dict[int, Json] = {}  # by the field's number: where it lies
    offset = 0
    for number, (_, width, *_) in enumerate(kind["fields"]):
        if width == "*":
            break
        before[number] = {"type": "lookahead", "value": [offset, width]}
        offset += width
    used = sorted(set(_locals(kind["length_exp"])))
    for number in used:
        if number not in before:
            raise refuse("a length must depend on fields before it", kind["name"], kind)
        target = {"type": "field", "value": [_ahead(kind["name"]), kind["fields"][number][0]]}
        yield {"op": "set", "parameters": [target, before[number]]}
    length = {"type": "expression", "value": _filled(kind["length_exp"], kind)}
    yield op | {"op": "extract_VL", "parameters": [*op["parameters"], length]}


def _locals(part: Any) -> Iterator[int]:
    if isinstance(part, dict):
        if part.get("type") == "local":
            yield part["value"]
        for inner in part.values():
            yield from _locals(inner)


def _filled(part: Any, kind: Json) -> Any:
    """Return an expression with the fields that were looked at in place of the header's own."""
    if not isinstance(part, dict):
        return part
    if part.get("type") == "local":
        return {"type": "field", "value": [_ahead(kind["name"]), kind["fields"][part["value"]][0]]}
    return {key: _filled(inner, kind) for key, inner in part.items()}


def _ahead(name: str) -> str:
    return f"fields ahead of {name}"
