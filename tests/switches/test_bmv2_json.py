"""What is no BMv2 JSON, or uses what the engine does not do, is refused by name."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from program_cases import BUILT, PROGRAMS

from ringleaf.errors import ConfigError
from ringleaf.switches.json.program import load_source
from ringleaf.switches.program import Program
from ringleaf.switches.source import Constant, FieldSource, OperationSource

Json = dict[str, Any]


def program(tmp_path: Path, change: Callable[[Json], None], name: str = "headers") -> Path:
    """Return the path of a test program whose JSON was changed."""
    data = json.loads((PROGRAMS / f"{name}.json").read_text())
    change(data)
    path = tmp_path / f"{name}.json"
    path.write_text(json.dumps(data))
    return path


def test_program_is_read_into_types() -> None:
    source = load_source(BUILT / "forward.json")

    assert list(source.headers["ports"].fields)[1].name == "dst"
    assert source.emitted == ("ethernet", "ipv4", "ports")
    tables = {table.name: table for table in source.ingress.tables}
    assert [key.kind for key in tables["Forwarding.ipv4_lpm"].keys] == ["lpm"]
    forward = next(a for a in source.actions.values() if a.name == "Forwarding.forward")
    ttl = FieldSource("ipv4", "ttl")
    assert forward.primitives[-1].parameters == (
        ttl,
        OperationSource("&", OperationSource("+", ttl, Constant(255)), Constant(255)),
    )
    assert "forwarding.p4 line" in forward.primitives[0].where


def test_select_values_are_cut_at_padded_fields() -> None:
    state = load_source(BUILT / "forward.json").states["ipv4"]

    # version_ihl (8 bits), fragment (13 bits, padded to 16) and protocol (8 bits)
    assert state.transitions[0].values == (0x45, 0, 17)
    assert state.transitions[0].masks == (0xFF, 0x1FFF, 0xFF)
    assert state.transitions[-1].values == ()


def test_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.json: can't be read: No such file"):
        Program.load(tmp_path / "none.json")


def test_text_that_is_no_json_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_text("not json")
    with pytest.raises(ConfigError, match=r"bad\.json: not JSON"):
        Program.load(path)


@pytest.mark.parametrize("text", ["{}", "[]", '{"__meta__": {"version": [2, 23]}}', "7"])
def test_json_that_is_not_of_bmv2_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "other.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"other\.json: not BMv2 JSON, got \w+ .*; compile with"):
        Program.load(path)


def set_version(data: Json) -> None:
    data["__meta__"]["version"] = [3, 0]


def add_to(section: str) -> Callable[[Json], None]:
    def change(data: Json) -> None:
        where = {"filename": "x.p4", "line": 33}
        data[section] = [{"name": "thing", "source_info": where}]

    return change


def set_table(key: str, value: object) -> Callable[[Json], None]:
    def change(data: Json) -> None:
        data["pipelines"][0]["tables"][0][key] = value

    return change


def header_type(data: Json, name: str) -> Json:
    return next(item for item in data["header_types"] if item["name"] == name)


def set_varbits(data: Json) -> None:
    tunnel = header_type(data, "tunnel_t")
    tunnel["max_length"] = 100
    for field in tunnel["fields"][:2]:
        field[1] = "*"


def set_length(data: Json) -> None:
    kind = header_type(data, "tunnel_t")
    kind["fields"].insert(0, ["options", "*"])
    kind |= {"max_length": 64, "length_exp": {"type": "local", "value": 1}}


def set_odd_header(data: Json) -> None:
    data["header_types"][3]["fields"][0][1] += 1


def add_primitive(op: str, parameters: list[Json]) -> Callable[[Json], None]:
    def change(data: Json) -> None:
        where = {"filename": "x.p4", "line": 5}
        step = {"op": op, "parameters": parameters, "source_info": where}
        data["actions"][0]["primitives"].append(step)

    return change


def in_deparser(data: Json) -> None:
    data["deparsers"][0]["primitives"] = [{"op": "assign", "parameters": []}]


def cycle(data: Json) -> None:
    tables = data["pipelines"][0]["tables"]
    action = tables[0]["actions"][0]
    tables[0]["next_tables"] = {action: tables[0]["name"]}
    data["pipelines"][0]["init_table"] = tables[0]["name"]


def varying_key(data: Json) -> None:
    key = {"match_type": "exact", "name": "s[i].a", "target": {"type": "expression"}}
    data["pipelines"][0]["tables"][0]["key"] = [key]


def stack_extract(data: Json) -> None:
    operation = {"op": "extract", "parameters": [{"type": "pile", "value": "tags"}]}
    data["parsers"][0]["parse_states"][0]["parser_ops"] = [operation]


def value_set(data: Json) -> None:
    transition = {"type": "parse_vset", "value": "set", "mask": "0x01", "next_state": None}
    data["parsers"][0]["parse_states"][0]["transitions"] = [transition]


def odd_transition(data: Json) -> None:
    data["parsers"][0]["parse_states"][0]["transitions"][0]["type"] = "odd"


def odd_key(data: Json) -> None:
    data["parsers"][0]["parse_states"][0]["transition_key"] = [{"type": "odd", "value": []}]


def stray_jump(data: Json) -> None:
    add_primitive("_jump", [{"type": "hexstr", "value": "0x63"}])(data)


FIELD = {"type": "field", "value": ["base", "kind"]}
WIDE_FIELD = {"type": "field", "value": ["i", "w"]}
FIELD_N = {"type": "field", "value": ["i", "n"]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            add_primitive("assign", [{"type": "field", "value": ["base", "nowhere"]}, FIELD]),
            "refers to what it does not have, or contradicts itself, got .*base.nowhere",
        ),
        (set_version, r"BMv2 JSON format 2 is needed, got \[3, 0\]"),
        (
            add_to("extern_instances"),
            r"extern instances are not supported, got 'thing' \(x\.p4 line 33\)",
        ),
        (set_table("type", "cuckoo"), r"table type is not supported: \w+, got 'cuckoo'"),
        (set_varbits, "a header with two varbit fields, got 'tunnel_t'"),
        (set_length, "a length must depend on fields before it, got 'tunnel_t'"),
        (set_odd_header, "header must be whole bytes"),
        (
            add_primitive("my_extern", []),
            r"primitive is not supported, got 'my_extern' \(x\.p4 line 5\)",
        ),
        (add_primitive("exit", [FIELD]), "exit takes 0 parameters, got 1"),
        (add_primitive("assign", [{"type": "hexstr", "value": "1"}, FIELD]), "assign must write"),
        (add_primitive("assign", [FIELD, {"type": "odd", "value": []}]), "kind of operand"),
        (in_deparser, "assign takes 2 parameters, got 0"),
        (varying_key, r"an element of a stack at a varying index .*, got 's\[i\]\.a'"),
        (cycle, "a pipeline with a cycle is not supported"),
        (stack_extract, "unsupported kind of extraction, got 'pile'"),
        (value_set, "a mask of a value set, got '0x01'"),
        (odd_transition, "unsupported kind of transition, got 'odd'"),
        (odd_key, "unsupported kind of select key, got 'odd'"),
        (stray_jump, "a jump to no primitive"),
    ],
)
def test_unsupported_is_refused_by_name(
    tmp_path: Path, change: Callable[[Json], None], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        Program.load(program(tmp_path, change))


def with_operation(op: str, left: Json, right: Json, target: Json) -> Callable[[Json], None]:
    operation = {"op": op, "left": left, "right": right}
    return add_primitive("assign", [target, {"type": "expression", "value": operation}])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (with_operation("@", WIDE_FIELD, FIELD_N, FIELD_N), "unsupported operation, got '@'"),
        (with_operation("==", FIELD_N, FIELD_N, FIELD_N), "unsupported operation, got '=='"),
        (with_operation("two_comp_mod", FIELD_N, FIELD_N, FIELD_N), "a width must be a constant"),
    ],
)
def test_what_is_no_arithmetic_is_refused(
    tmp_path: Path, change: Callable[[Json], None], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        Program.load(program(tmp_path, change, "expressions"))


def test_unknown_hash_is_refused_with_those_there_are(tmp_path: Path) -> None:
    def change(data: Json) -> None:
        data["calculations"][0]["algo"] = "md5"

    with pytest.raises(ConfigError, match=r"hash algorithm is not supported .*crc32.*got 'md5'"):
        Program.load(program(tmp_path, change, "stateful"))
