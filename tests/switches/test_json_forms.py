"""Today's programs, given older forms, make the same code; what BMv2 refuses is refused."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hand_json import Json, action, do, field, program, state, table, value, write
from hypothesis import given, settings
from hypothesis import strategies as st
from program_cases import BUILT, PROGRAMS

from ringleaf.errors import ConfigError
from ringleaf.switches.generate.module import generate
from ringleaf.switches.json.program import load_source, parse_source

NAMES = ("l2l3", "rounds", "tables", "externs", "controller", "parsers", "stacks", "checksums")


@cache
def document(name: str) -> str:
    folder = BUILT if name == "forward" else PROGRAMS
    return (folder / f"{name}.json").read_text()


def code_of(data: Json) -> str:
    return generate(parse_source(json.dumps(data).encode(), Path("x.json"))).text


@cache
def code(name: str) -> str:
    return code_of(json.loads(document(name)))


# Older forms, each as a change that leaves a program's meaning as it is.


def without_meta(data: Json) -> None:
    del data["__meta__"]


def without_empty_sections(data: Json) -> None:
    for name in [name for name, section in data.items() if section == []]:
        del data[name]


def without_errors(data: Json) -> None:
    """Leave the errors out where they are numbered as BMv2 numbers its own."""
    if [number for _, number in data["errors"]] == list(range(7)):
        del data["errors"]


def _used(data: Json, name: str) -> bool:
    return f'"standard_metadata", "{name}"' in json.dumps(
        {key: part for key, part in data.items() if key != "field_aliases"}
    )


def without_unused_fields(data: Json) -> None:
    """Leave out the fields of `standard_metadata` that compilers before 2020 did not write."""
    gone = [name for name in ("priority", "mcast_grp", "egress_rid") if not _used(data, name)]
    if any(p["op"].startswith("mark_to_drop") for a in data["actions"] for p in a["primitives"]):
        gone = [name for name in gone if name != "mcast_grp"]
    for kind in data["header_types"]:
        if kind["name"] == "standard_metadata":
            kind["fields"] = [item for item in kind["fields"] if item[0] not in gone]
    data["field_aliases"] = [item for item in data["field_aliases"] if item[1][1] not in gone]


def in_intrinsic_metadata(data: Json) -> None:
    """Declare times and queues as P4_14 did, in headers of their own."""
    moved = {tuple(to): tuple(name.split(".")) for name, to in data["field_aliases"]}
    moved = {to: at for to, at in moved.items() if to[1] != "mcast_grp"}  # mark_to_drop has it
    standard = next(h for h in data["header_types"] if h["name"] == "standard_metadata")
    found: dict[str, list[Any]] = {}
    for item in [item for item in standard["fields"] if (standard["name"], item[0]) in moved]:
        standard["fields"].remove(item)
        found.setdefault(moved[standard["name"], item[0]][0], []).append(item)
    for name, fields in found.items():
        number = max(h["id"] for h in data["headers"]) + 1
        data["header_types"].append({"name": name, "id": 1000 + number, "fields": fields})
        data["headers"].append({"name": name, "id": number, "header_type": name, "metadata": True})
    data["field_aliases"] = [item for item in data["field_aliases"] if tuple(item[1]) not in moved]
    _rename(data, moved)


def _rename(part: Any, moved: dict[Any, Any]) -> None:
    if isinstance(part, dict):
        for key in ("value", "target", "result_target"):
            names = part.get(key)
            if isinstance(names, list) and len(names) == 2 and isinstance(names[0], str):
                part[key] = list(moved.get(tuple(names), names))
        for inner in part.values():
            _rename(inner, moved)
    elif isinstance(part, list):
        for inner in part:
            _rename(inner, moved)


def leave_out(items: list[Json], *keys: str) -> None:
    """Leave out members of these names that are false, empty or null."""
    for item in items:
        for key in keys:
            if item.get(key) in (False, [], None):
                item.pop(key, None)


def without_defaults(data: Json) -> None:
    """Leave out what BMv2 takes for false, empty or nothing."""
    leave_out(data["counter_arrays"] + data["meter_arrays"], "is_direct")
    leave_out(data["headers"], "metadata")
    leave_out(data["actions"], "primitives", "runtime_data")
    for parser in data["parsers"]:
        leave_out(parser["parse_states"], "parser_ops", "transition_key", "transitions")
        for each in parser["parse_states"]:
            leave_out(each.get("transitions", []), "mask", "next_state")
    for pipeline in data["pipelines"]:
        leave_out(pipeline["tables"], "with_counters", "support_timeout", "direct_meters", "key")
        leave_out(pipeline.get("action_calls", []), "next_node")
        leave_out([pipeline], "init_table", "tables", "action_profiles", "conditionals")


def with_profiles_in_tables(data: Json) -> None:
    for pipeline in data["pipelines"]:
        profiles = {item["name"]: item for item in pipeline["action_profiles"]}
        tables = pipeline["tables"]
        users = [each["action_profile"] for each in tables if "action_profile" in each]
        for each in tables:
            name = each.get("action_profile")
            if name is None or users.count(name) > 1:
                continue
            each["act_prof_name"] = each.pop("action_profile")
            each["max_size"] = profiles[name]["max_size"]
            if "selector" in profiles[name]:
                each["selector"] = profiles[name]["selector"]
            pipeline["action_profiles"].remove(profiles[name])


def with_old_primitives(data: Json) -> None:
    names = {"assign": "modify_field", "assign_header": "copy_header"}
    for each in data["actions"]:
        for primitive in each["primitives"]:
            primitive["op"] = names.get(primitive["op"], primitive["op"])


def without_sources(data: Json) -> None:
    """Forget files' names alone, which makes a place of `line` only."""
    for each in data["deparsers"]:
        each.get("source_info", {}).pop("filename", None)


FORMS: tuple[Callable[[Json], None], ...] = (
    *(without_meta, without_errors, without_unused_fields, with_profiles_in_tables),
    *(with_old_primitives, without_sources, without_defaults, without_empty_sections),
)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(NAMES), st.sets(st.sampled_from(range(len(FORMS))), min_size=1))
def test_older_forms_make_the_same_code(name: str, chosen: set[int]) -> None:
    data = json.loads(document(name))
    for number in sorted(chosen):
        FORMS[number](data)

    assert code_of(data) == code(name)


@pytest.mark.parametrize("name", [*NAMES, "forward"])
def test_headers_of_the_switchs_own_make_the_same_code(name: str) -> None:
    data = json.loads(document(name))
    in_intrinsic_metadata(data)

    assert any(item["name"] == "intrinsic_metadata" for item in data["headers"])
    assert code_of(data) == code(name)


@settings(max_examples=20, deadline=None)
@given(st.permutations(range(1, 8)))
def test_errors_have_the_documents_numbers(numbers: list[int]) -> None:
    data = json.loads(document("parsers"))
    names = [name for name, _ in data["errors"]]
    data["errors"] = [[name, number] for name, number in zip(names, numbers, strict=False)]

    errors = parse_source(json.dumps(data).encode(), Path("x.json")).errors

    assert errors == dict(zip(names, numbers, strict=False))
    assert len(errors) == 7


# What BMv2 refuses.


def twice(section: str, **changed: Any) -> Callable[[Json], None]:
    """Add a copy of a section's first object, with other members."""

    def change(data: Json) -> None:
        data[section].append(copy.deepcopy(data[section][0]) | changed)

    return change


def arrays(data: Json) -> None:
    array = {"name": "a", "id": 0, "size": 4, "bitwidth": 8, "type": "bytes", "is_direct": False}
    for section in ("register_arrays", "counter_arrays", "meter_arrays"):
        data[section] = [dict(array)]
    data["calculations"] = [{"name": "a", "id": 0, "algo": "crc16", "input": []}]
    data["field_lists"] = [{"name": "a", "id": 1, "elements": []}]
    data["learn_lists"] = [{"name": "a", "id": 1, "elements": []}]
    data["parse_vsets"] = [{"name": "a", "id": 0, "compressed_bitwidth": 8}]


def both(*changes: Callable[[Json], None]) -> Callable[[Json], None]:
    def change(data: Json) -> None:
        for each in changes:
            each(data)

    return change


def of_table(**members: Any) -> Callable[[Json], None]:
    return lambda data: table(data, "t", [0], **members)


def same_name(data: Json) -> None:
    data["actions"].append(action(2, "in"))
    table(data, "t", [0, 2])


REFUSED: dict[str, tuple[Callable[[Json], None], str]] = {
    "parsers": (twice("parsers"), "two parsers have one number, got 0"),
    "parsers of one name": (twice("parsers", id=1), "two parsers have one name, got 'parser'"),
    "deparsers": (twice("deparsers", id=1), "two deparsers have one name"),
    "states": (
        lambda d: d["parsers"][0]["parse_states"].append({"name": "start", "id": 1}),
        "two parser states have one name, got 'start'",
    ),
    "states of one number": (
        lambda d: d["parsers"][0]["parse_states"].append({"name": "other", "id": 0}),
        "two parser states have one number, got 0",
    ),
    "actions": (twice("actions", name="x"), "two actions have one number, got 0"),
    "headers": (twice("headers", id=7), "two headers have one name, got 'standard_metadata'"),
    "types": (twice("header_types", id=7), "two header types have one name"),
    "registers": (both(arrays, twice("register_arrays", id=1)), "two registers have one name"),
    "register numbers": (
        both(arrays, twice("register_arrays", name="b")),
        "two registers have one number",
    ),
    "counters": (both(arrays, twice("counter_arrays", id=1)), "two counters have one name"),
    "meters": (both(arrays, twice("meter_arrays", name="b")), "two meters have one number"),
    "calculations": (both(arrays, twice("calculations", id=1)), "two calculations have one name"),
    "field lists": (both(arrays, twice("field_lists")), "two field lists have one number"),
    "digests": (both(arrays, twice("learn_lists")), "two digests have one number"),
    "value sets": (both(arrays, twice("parse_vsets", id=1)), "two value sets have one name"),
    "nodes": (
        both(
            of_table(),
            lambda d: d["pipelines"][1]["action_calls"].append(
                {"name": "t", "id": 5, "action_id": 1}
            ),
        ),
        "two tables or conditions have one name, got 't'",
    ),
    "pipelines": (twice("pipelines", id=9), "two pipelines have one name, got 'ingress'"),
    "errors": (
        lambda d: d.update(errors=[["A", 1], ["B", 1]]),
        "errors must have names and numbers of their own",
    ),
    "actions of a table": (same_name, "actions of t share a name, got 'in'"),
    "next tables": (of_table(next_tables={}), r"next_tables of t must have \['in'\]"),
    "hit alone": (
        of_table(next_tables={"__HIT__": "do_in"}),
        r"must have \['__HIT__', '__MISS__'\], got \['__MISS__'\]",
    ),
    "two lpm": (
        of_table(key=[{"match_type": "lpm", "target": ["op", "a"]}] * 2),
        "a table has one lpm key at most, got 't'",
    ),
    "no profile": (of_table(type="indirect"), "needs an action profile, got 't'"),
    "no default data": (of_table(default_entry={"action_id": 0}), "needs action_data, got 't'"),
    "no direct meter": (of_table(direct_meters="m"), "direct meter that there is, got 'm'"),
    "no way on": (
        lambda d: d["pipelines"][0].update(
            conditionals=[{"name": "c", "id": 0, "expression": {"type": "bool", "value": True}}]
        ),
        "a condition must say what is next, got 'c'",
    ),
    "another parser": (
        lambda d: d["parsers"][0].update(name="mine"),
        r"parsers must have one named 'parser', got \['mine'\]",
    ),
    "no egress": (lambda d: d["pipelines"].pop(), r"must have one named 'egress'"),
    "required field": (
        lambda d: d["header_types"][0]["fields"].pop(),
        "simple_switch needs fields .* got 'packet_length'",
    ),
    "a short select value": (
        lambda d: state(d).update(
            transition_key=[field("op", "a"), field("op", "b")],
            transitions=[{"value": "0x01", "next_state": None}],
        ),
        "a select value or mask must have 2 bytes, as its key, got '0x01'",
    ),
    "a long mask": (
        lambda d: state(d).update(
            transition_key=[field("op", "a")],
            transitions=[{"value": "0x01", "mask": "0xffff", "next_state": None}],
        ),
        "must have 1 byte, as its key, got '0xffff'",
    ),
    "unknown error": (
        lambda d: state(d)["parser_ops"].append(
            {"op": "verify", "parameters": [{"type": "bool", "value": True}, 77]}
        ),
        "verify names an error that there is not, got 77",
    ),
}


def test_the_program_that_is_spoilt_is_sound(tmp_path: Path) -> None:
    data = program()
    arrays(data)
    table(data, "t", [0])
    assert load_source(write(tmp_path, data)).first_state == "start"


@pytest.mark.parametrize("name", REFUSED)
def test_what_bmv2_refuses_is_refused(name: str, tmp_path: Path) -> None:
    change, message = REFUSED[name]
    data = program()
    change(data)
    with pytest.raises(ConfigError, match=message):
        load_source(write(tmp_path, data))


def test_validity_of_a_stacks_header_is_not_assigned(tmp_path: Path) -> None:
    data = program(do("assign", field("op", "$valid$"), value(0)))
    data["header_stacks"] = [{"name": "s", "id": 0, "header_type": "op_t", "header_ids": [1]}]
    with pytest.raises(ConfigError, match="stack's or union's header is assigned, got 'op'"):
        load_source(write(tmp_path, data))


def test_another_parser_may_be_beside_it(tmp_path: Path) -> None:
    data = program()
    data["parsers"].insert(0, {"name": "other", "id": 1, "init_state": None})
    assert list(load_source(write(tmp_path, data)).states) == ["start"]


def test_a_value_set_may_be_looked_up_by_keys_cut_otherwise(tmp_path: Path) -> None:
    data = program()
    data["header_types"][1]["fields"] = [["a", 3], ["b", 5], ["c", 8]]
    data["parse_vsets"] = [{"name": "v", "id": 0, "compressed_bitwidth": 8}]
    cut = [field("op", "a"), field("op", "b")]
    to_v = {"type": "parse_vset", "value": "v", "next_state": None}
    state(data).update(transition_key=[field("op", "c")], transitions=[to_v | {"next_state": "x"}])
    second = {"name": "x", "id": 1, "transition_key": cut, "transitions": [to_v]}
    data["parsers"][0]["parse_states"].append(second)
    assert load_source(write(tmp_path, data)).value_sets["v"].widths == (8,)

    data["parsers"][0]["parse_states"][1]["transition_key"] = cut[:1]
    with pytest.raises(ConfigError, match="a value set with two kinds of key"):
        load_source(write(tmp_path, data))
