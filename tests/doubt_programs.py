"""Small programs in BMv2's JSON whose decisions may be in doubt: by a missing header, by time.

All of them parse header `e`: a byte `a` and 16 bits `t`; a packet of one or two bytes has none.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Json = dict[str, Any]

ARP = 0x0806

_STANDARD = {
    **{"ingress_port": 9, "egress_spec": 9, "egress_port": 9, "instance_type": 32},
    **{"packet_length": 32, "enq_timestamp": 32, "enq_qdepth": 19, "deq_timedelta": 32},
    **{"deq_qdepth": 19, "ingress_global_timestamp": 48, "egress_global_timestamp": 48},
    **{"mcast_grp": 16, "egress_rid": 16, "checksum_error": 1, "parser_error": 32},
    **{"priority": 3, "_padding": 3},
}
_ALIASES = {
    **dict.fromkeys(
        ("enq_timestamp", "enq_qdepth", "deq_timedelta", "deq_qdepth"), "queueing_metadata"
    ),
    **dict.fromkeys(
        (
            "ingress_global_timestamp",
            "egress_global_timestamp",
            "mcast_grp",
            "egress_rid",
            "priority",
        ),
        "intrinsic_metadata",
    ),
}
"""By these names, which p4c writes, BMv2 finds fields that it sets itself."""

_NONE = (
    *("header_stacks", "header_union_types", "header_unions", "header_union_stacks", "enums"),
    *("field_lists", "errors", "parse_vsets", "meter_arrays", "counter_arrays", "calculations"),
    *("learn_lists", "checksums", "force_arith", "extern_instances"),
)


def field(header: str, name: str) -> Json:
    return {"type": "field", "value": [header, name]}


def number(value: int) -> Json:
    return {"type": "hexstr", "value": hex(value)}


def op(name: str, left: Json | None, right: Json) -> Json:
    return {"type": "expression", "value": {"op": name, "left": left, "right": right}}


def valid(header: str) -> Json:
    return op("d2b", None, field(header, "$valid$"))


def step(name: str, *parameters: Json) -> Json:
    return {"op": name, "parameters": list(parameters)}


def assign(target: Json, value: Json) -> Json:
    return step("assign", target, value)


T, COPY, PORT = field("e", "t"), field("scalars", "copy"), field("standard_metadata", "egress_spec")
CELLS = {"type": "register_array", "value": "cells"}
TO_4 = (assign(PORT, number(4)),)


def table(name: str, key: list[Json], action: str, after: str | None = None) -> Json:
    """Return a table of one action, which is its default if there is no key."""
    default = {"default_entry": {"action_id": 0, "action_const": True, "action_data": []}}
    default["default_entry"]["action_entry_const"] = True
    kinds = [part["match_type"] for part in key]
    kind = "ternary" if "ternary" in kinds else "exact"
    return {
        **{"name": name, "id": 0, "key": key, "match_type": kind, "type": "simple"},
        **{"max_size": 16, "with_counters": False, "support_timeout": False},
        **{"direct_meters": None, "action_ids": [0], "actions": [action]},
        **{"base_default_next": after, "next_tables": {action: after}},
        **({} if key else default),
    }


def write(
    folder: Path,
    *,
    before: tuple[Json, ...] = (),
    condition: Json | None = None,
    key: list[Json] | None = None,
    states: list[Json] | None = None,
    last: tuple[Json, ...] = (),
    emitted: tuple[str, ...] = ("e",),
) -> Path:
    """Write a program: steps `before`; then, if so, to port 4; and steps of egress at the `last`.

    Args:
        folder: Where to.
        before: The first steps of ingress.
        condition: What must hold for port 4; nothing if there is none.
        key: The key by which a table, if there is one, has port 4.
        states: The parser's states, if it does more than to extract `e`.
        last: The steps of egress.
        emitted: The headers that leave.
    """
    bodies = {"first": before, "to_4": TO_4, "egress": last}
    actions = [
        {"name": name, "id": number, "runtime_data": [], "primitives": list(steps)}
        for number, (name, steps) in enumerate(bodies.items())
    ]
    tables = [table("t_first", [], "first", "if" if condition else "t_to_4")]
    tables += [table("t_to_4", key or [], "to_4")]
    tables[1]["action_ids"], egress = [1], table("t_egress", [], "egress")
    for own, number_ in ((tables[1], 1), (egress, 2)):
        own["id"], own["action_ids"] = number_, [number_]
        if "default_entry" in own:
            own["default_entry"]["action_id"] = number_
    test = {"name": "if", "id": 0, "true_next": "t_to_4", "false_next": None}
    ingress = {"name": "ingress", "id": 0, "init_table": "t_first", "tables": tables}
    ingress["conditionals"] = [test | {"expression": condition}] if condition else []
    types = {
        "scalars_0": [
            ["copy", 16, False],
            ["time", 48, False],
            ["flag", 1, False],
            ["_p", 7, False],
        ],
        "standard": [[name, width, False] for name, width in _STANDARD.items()],
        "e_t": [["a", 8, False], ["t", 16, False]],
        "f_t": [["x", 48, False]],
    }
    instances = {"scalars": "scalars_0", "standard_metadata": "standard", "e": "e_t", "f": "f_t"}
    program = {
        **{name: [] for name in _NONE},
        "field_aliases": [
            [f"{holder}.{name}", ["standard_metadata", name]] for name, holder in _ALIASES.items()
        ],
        "__meta__": {"version": [2, 23], "compiler": "none"},
        "header_types": [
            {"name": name, "id": i, "fields": fields}
            for i, (name, fields) in enumerate(types.items())
        ],
        "headers": [
            {"name": name, "id": i, "header_type": kind, "metadata": kind in list(types)[:2]}
            for i, (name, kind) in enumerate(instances.items())
        ],
        "register_arrays": [{"name": "cells", "id": 0, "size": 4, "bitwidth": 48}],
        "parsers": [
            {
                **{"name": "parser", "id": 0, "init_state": "start"},
                "parse_states": [
                    one | {"id": i}
                    for i, one in enumerate(states or [state("start", (extract("e"),))])
                ],
            }
        ],
        "deparsers": [{"name": "deparser", "id": 0, "order": list(emitted), "primitives": []}],
        "actions": actions,
        "pipelines": [
            ingress,
            {
                **{"name": "egress", "id": 1, "init_table": "t_egress", "tables": [egress]},
                "conditionals": [],
            },
        ],
    }
    path = folder / "doubt.json"
    path.write_text(json.dumps(program))
    return path


def extract(header: str) -> Json:
    return step("extract", {"type": "regular", "value": header})


def state(name: str, ops: tuple[Json, ...], key: Json | None = None, **targets: str | None) -> Json:
    """Return a parser state; targets are named `x` and all bytes of the value, or `default`."""
    transitions = [
        {"type": "hexstr", "value": f"0x{value[1:]}", "mask": None, "next_state": target}
        for value, target in targets.items()
        if value != "default"
    ]
    default = {"type": "default", "value": None, "mask": None}
    return {
        **{"name": name, "parser_ops": list(ops)},
        "transition_key": [key] if key else [],
        "transitions": [*transitions, default | {"next_state": targets.get("default")}],
    }


def key(target: Json, kind: str = "exact") -> Json:
    return {
        **{"match_type": kind, "name": target["value"][1], "target": target["value"]},
        "mask": None,
    }
