"""PSA programs as BMv2 JSON, for what p4c does not compile, or says in too many lines.

The form is that of p4c's `backends/bmv2/psa_switch`. Packets have one header, `h`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ringleaf.switches.json.program import load_source
from ringleaf.switches.program import Program

Json = dict[str, Any]

INGRESS_IN, INGRESS_OUT = "psa_ingress_input_metadata", "psa_ingress_output_metadata"
EGRESS_IN, EGRESS_OUT = "psa_egress_input_metadata", "psa_egress_output_metadata"


def field(header: str, name: str) -> Json:
    return {"type": "field", "value": [header, name]}


def number(value: int) -> Json:
    return {"type": "hexstr", "value": hex(value)}


def call(op: str, *parameters: Json) -> Json:
    return {"op": op, "parameters": list(parameters)}


def assign(header: str, name: str, value: Json) -> Json:
    return call("assign", field(header, name), value)


def extern(name: str) -> Json:
    return {"type": "extern", "value": name}


def listed(*fields: Json) -> Json:
    return {"type": "field_list", "value": list(fields)}


SEND_TO_3 = [
    assign(INGRESS_OUT, "drop", number(0)),
    assign(INGRESS_OUT, "egress_port", number(3)),
]


def program_json(
    fields: Mapping[str, int],
    *,
    parser: Sequence[Json] = (),
    ingress: Sequence[Json] = (),
    ingress_deparser: Sequence[Json] = (),
    egress: Sequence[Json] = (),
    egress_deparser: Sequence[Json] = (),
    externs: Mapping[str, str] | None = None,
    **sections: Any,
) -> Json:
    """Return a program that sends all packets to port 3, and runs these primitives.

    Args:
        fields: The bits of the fields of `h`.
        parser: Primitives of the ingress parser.
        ingress: Primitives of ingress.
        ingress_deparser: Primitives of its deparser.
        egress: Primitives of egress.
        egress_deparser: Primitives of its deparser.
        externs: The types of the extern instances, by name.
        sections: Further sections of the JSON.
    """
    actions = [_action(0, [*SEND_TO_3, *ingress]), _action(1, egress)]
    return {
        "__meta__": {"version": [2, 23]},
        "header_types": [
            {"name": "h_t", "id": 0, "fields": [[name, n, False] for name, n in fields.items()]}
        ],
        "headers": [{"name": "h", "id": 0, "header_type": "h_t", "metadata": False}],
        "errors": [["NoError", 0], ["PacketTooShort", 1], ["Own", 9]],
        "parsers": [_parser(0, "ingress", parser), _parser(1, "egress", ())],
        "deparsers": [
            {
                "name": "ingress_deparser",
                "id": 0,
                "order": ["h"],
                "primitives": list(ingress_deparser),
            },
            {
                "name": "egress_deparser",
                "id": 1,
                "order": ["h"],
                "primitives": list(egress_deparser),
            },
        ],
        "actions": actions,
        "pipelines": [_pipeline("ingress", 0), _pipeline("egress", 1)],
        "extern_instances": [
            {"name": name, "id": i, "type": kind}
            for i, (name, kind) in enumerate((externs or {}).items())
        ],
        **{key: [] for key in ("register_arrays", "counter_arrays", "calculations", "checksums")},
        "field_lists": [],
        **sections,
    }


def _action(index: int, primitives: Sequence[Json]) -> Json:
    return {
        "name": f"a{index}",
        "id": index,
        "runtime_data": [],
        "primitives": list(primitives),
    }


def _parser(index: int, stage: str, primitives: Sequence[Json]) -> Json:
    extract = {"op": "extract", "parameters": [{"type": "regular", "value": "h"}]}
    others = [{"op": "primitive", "parameters": [primitive]} for primitive in primitives]
    end = {"type": "default", "value": None, "mask": None, "next_state": None}
    state = {
        "name": "start",
        "id": 0,
        "parser_ops": [extract, *others],
        "transition_key": [],
        "transitions": [end],
    }
    return {"name": f"{stage}_parser", "id": index, "init_state": "start", "parse_states": [state]}


def _pipeline(stage: str, action: int) -> Json:
    node = {"name": f"go_{stage}", "id": action, "action_id": action, "next_node": None}
    return {
        "name": stage,
        "id": action,
        "init_table": node["name"],
        "tables": [],
        "conditionals": [],
        "action_calls": [node],
    }


def load(path: Path, data: Json) -> Program:
    """Return the program, written to a file."""
    import json

    path.write_text(json.dumps(data))
    assert load_source(path).architecture.name == "PSA"
    return Program.load(path)
