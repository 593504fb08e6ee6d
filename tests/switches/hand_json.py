"""A small program as BMv2 JSON, written by hand, for tests that give it older forms.

Its packets have two bytes, `op.a` and `op.b`. One action, whose primitives a test gives, is called
in ingress; another in egress. Packets leave by the port that they came by, unless they say so.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Json = dict[str, Any]

REQUIRED = (
    *(
        ["_padding", 5, False],
        ["ingress_port", 9, False],
        ["egress_spec", 9, False],
        ["egress_port", 9, False],
    ),
    *(["instance_type", 32, False], ["packet_length", 32, False]),
)


def field(header: str, name: str) -> Json:
    return {"type": "field", "value": [header, name]}


def value(number: int) -> Json:
    return {"type": "hexstr", "value": hex(number)}


def header(name: str) -> Json:
    return {"type": "header", "value": name}


def expression(op: str, left: Json | None, right: Json) -> Json:
    return {"type": "expression", "value": {"op": op, "left": left, "right": right}}


def operand(whole: Json) -> Json:
    """Return an expression as a primitive or the parser takes it, which wraps it once more."""
    return {"type": "expression", "value": whole}


def do(op: str, *parameters: Json) -> Json:
    return {"op": op, "parameters": list(parameters)}


def action(number: int, name: str, *primitives: Json) -> Json:
    """Return an action; BMv2's command line, unlike BMv2 itself, needs its `runtime_data`."""
    return {"name": name, "id": number, "runtime_data": [], "primitives": list(primitives)}


A, B = field("op", "a"), field("op", "b")
SPEC, PORT = field("standard_metadata", "egress_spec"), field("standard_metadata", "ingress_port")
BACK = do("assign", SPEC, PORT)


def program(*primitives: Json, egress: tuple[Json, ...] = ()) -> Json:
    """Return a program with no more than `simple_switch` needs, as old as can be."""
    return {
        "header_types": [
            {"name": "standard_metadata_t", "id": 0, "fields": [list(item) for item in REQUIRED]},
            {"name": "op_t", "id": 1, "fields": [["a", 8], ["b", 8]]},
        ],
        "headers": [
            {
                "name": "standard_metadata",
                "id": 0,
                "header_type": "standard_metadata_t",
                "metadata": True,
            },
            {"name": "op", "id": 1, "header_type": "op_t"},
        ],
        "parsers": [
            {
                "name": "parser",
                "id": 0,
                "init_state": "start",
                "parse_states": [
                    {
                        "name": "start",
                        "id": 0,
                        "parser_ops": [do("extract", {"type": "regular", "value": "op"})],
                    }
                ],
            }
        ],
        "deparsers": [{"name": "deparser", "id": 0, "order": ["op"]}],
        "actions": [
            action(0, "in", BACK, *primitives),
            action(1, "out", *egress),
        ],
        "pipelines": [
            {
                "name": name,
                "id": number,
                "init_table": call,
                "tables": [],  # for BMv2's command line, too
                "action_calls": [{"name": call, "id": number, "action_id": number}],
            }
            for number, (name, call) in enumerate((("ingress", "do_in"), ("egress", "do_out")))
        ],
    }


def metadata(data: Json, name: str, *fields: list[Any]) -> None:
    """Add a header of metadata to a program."""
    number = len(data["headers"])
    data["header_types"].append({"name": f"{name}_t", "id": number, "fields": list(fields)})
    data["headers"].append(
        {"name": name, "id": number, "header_type": f"{name}_t", "metadata": True}
    )


def state(data: Json) -> Json:
    """Return the parser's only state."""
    found: Json = data["parsers"][0]["parse_states"][0]
    return found


def standard(data: Json, *fields: list[Any]) -> None:
    """Add fields to the standard metadata."""
    data["header_types"][0]["fields"] += fields


def table(data: Json, name: str, actions: list[int], **members: Any) -> None:
    """Put a table before the action of ingress; after each action, that one is next."""
    table_of(data, 0, name, actions, **members)


def table_of(data: Json, pipeline: int, name: str, actions: list[int], **members: Any) -> None:
    """Put a table before the action of a pipeline."""
    after = data["pipelines"][pipeline]["init_table"]
    names = {action["id"]: action["name"] for action in data["actions"]}
    data["pipelines"][pipeline] |= {
        "init_table": name,
        "tables": [
            {
                "name": name,
                "id": 0,
                "type": "simple",
                "match_type": "exact",
                "max_size": 16,
                "action_ids": actions,
                "actions": [names[number] for number in actions],  # for BMv2's command line, too
                "next_tables": {names[number]: after for number in actions},
                "support_timeout": False,  # for BMv2's command line, too
                **members,
            }
        ],
    }


def write(folder: Path, data: Json) -> Path:
    path = folder / "hand.json"
    path.write_text(json.dumps(data))
    return path
