"""P4Info that is none: what the hostile soak has found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from finsy.proto import p4i
from google.protobuf import json_format, text_format  # type: ignore[import-untyped]

from ringleaf.errors import ConfigError
from ringleaf.experiments.programs.matching import table_entry
from ringleaf.networks.traces.entries import load_schema, read_request
from ringleaf.switches.p4runtime.derived import p4info_file
from ringleaf.switches.p4runtime.finsy_entities import Encoder, read_p4info

DEEP = b"unknown {" * 3000
TOO_GREAT = b"device_id: 4722366482869645213695 arch: 1 pkg_info { arch: 2 }"
BINARY = b"\xff"
WITHOUT_TYPE = 'registers { preamble { id: 3 name: "r" } size: 8 }'


@pytest.mark.parametrize("between", ["", ".p4"])
@pytest.mark.parametrize("form", ["txtpb", "txt", "json", "bin"])
def test_p4info_of_any_form_beside_a_program_is_its(
    form: str, between: str, tmp_path: Path
) -> None:
    """P4's tutorials have `basic.p4.p4info.txtpb` beside `basic.json`; its ids count."""
    beside = tmp_path / f"my{between}.p4info.{form}"
    message = text_format.Parse(
        'tables { preamble { id: 33554439 name: "t" alias: "t" } size: 8 }', p4i.P4Info()
    )
    if form == "bin":
        beside.write_bytes(message.SerializeToString())
    else:
        write = json_format.MessageToJson if form == "json" else text_format.MessageToString
        beside.write_text(write(message))
    assert read_p4info(p4info_file(tmp_path / "my.json")) == message
    assert [table.id for table in load_schema(tmp_path / "my.json", None).tables] == [33554439]


@pytest.mark.parametrize(("name", "form"), [("x.json", "JSON"), ("x.bin", "bytes"), ("x", "text")])
def test_broken_p4info_is_named_by_its_form(name: str, form: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"[\x0b\xff")
    with pytest.raises(ConfigError, match=f"not P4Info as {form}"):
        read_p4info(tmp_path / name)


def test_an_action_profile_of_no_table_is_left_out(tmp_path: Path) -> None:
    """p4c writes one for an action selector that no table uses."""
    path = tmp_path / "info.txtpb"
    path.write_text('action_profiles { preamble { id: 285212673 name: "a" alias: "a" } size: 8 }')
    assert not list(load_schema(path, path).action_profiles)


def test_aliases_that_are_missing_are_those_of_p4c(tmp_path: Path) -> None:
    """The shortest ends that are unique among the objects of a kind (P4Runtime 1.4, 6.1)."""
    path = tmp_path / "info.txtpb"
    preambles = enumerate(("I.one.t", "I.two.t", "E.u"), start=33554433)
    path.write_text(
        "".join(f'tables {{ preamble {{ id: {i} name: "{n}" }} size: 8 }}' for i, n in preambles)
    )
    assert [each.alias for each in load_schema(path, path).tables] == ["one.t", "two.t", "u"]


@pytest.mark.parametrize("text", [DEEP, TOO_GREAT, BINARY])
def test_what_protobuf_cannot_read_is_refused(text: bytes, tmp_path: Path) -> None:
    path = tmp_path / "broken.txtpb"
    path.write_bytes(text)
    with pytest.raises(ConfigError, match="not P4Info as text"):
        read_p4info(path)
    with pytest.raises(ConfigError, match="not P4Info as text"):
        load_schema(path, path)
    with pytest.raises(ConfigError, match=r"not a p4\.v1\.WriteRequest as text"):
        read_request(path)


def test_a_register_has_a_type(tmp_path: Path) -> None:
    path = tmp_path / "info.txtpb"
    path.write_text(WITHOUT_TYPE)
    with pytest.raises(
        ConfigError, match=r"x\.json: not P4Info that p4c writes, got unknown type_spec"
    ):
        Encoder(read_p4info(path), "x.json")


def test_digests_may_have_errors_and_enumerations(tmp_path: Path) -> None:
    """BMv2 keeps both as numbers of 32 bits (p4c: `error` and `enum` are fields of 32)."""
    path = tmp_path / "info.txtpb"
    members = [
        'members { name: "why" type_spec { error { } } }',
        'members { name: "kind" type_spec { enum { name: "Kind" } } }',
        'members { name: "both" type_spec { tuple { members { error { } } } } }',
    ]
    path.write_text(
        f'type_info {{ structs {{ key: "told" value {{ {" ".join(members)} }} }} '
        'enums { key: "Kind" value { members { name: "A" } } } error { members: "NoError" } }'
        'actions { preamble { id: 16777217 name: "a" alias: "a" } '
        'params { id: 1 name: "kind" type_name { name: "Kind" } } }'
        'digests { preamble { id: 385875969 name: "d" alias: "d" } '
        'type_spec { struct { name: "told" } } }'
    )
    [digest] = load_schema(path, path).digests
    assert [str(each) for each in digest.type_spec.members.values()]
    widths = [
        each.bitwidth for each in digest.type_spec.members.values() if hasattr(each, "bitwidth")
    ]
    assert widths == [32, 32]
    [action] = load_schema(path, path).actions
    assert [each.bitwidth for each in action.params] == [32]


def _info(keys: list[str], actions: list[tuple[str, str]], path: Path) -> Any:
    """Return the schema of a table with such keys, and actions of such names and aliases."""
    numbered = list(enumerate(actions, start=16777217))
    path.write_text(
        'tables { preamble { id: 33554433 name: "I.t" alias: "t" } size: 8 '
        + " ".join(
            f'match_fields {{ id: {at} name: "{key}" bitwidth: 8 match_type: EXACT }}'
            for at, key in enumerate(keys, start=1)
        )
        + " ".join(f"action_refs {{ id: {number} }}" for number, _ in numbered)
        + "}"
        + " ".join(
            f'actions {{ preamble {{ id: {number} name: "{name}" alias: "{alias}" }} }}'
            for number, (name, alias) in numbered
        )
    )
    return load_schema(path, path)


def test_keys_may_share_more_than_their_last_part(tmp_path: Path) -> None:
    """As a stack of header unions has them: `hdr.u[0].byte.x`, `hdr.u[1].byte.x`."""
    keys = ["hdr.u[0].byte.x", "hdr.u[1].byte.x", "hdr.u[1].y", "x"]
    schema = _info(keys, [("I.a", "a")], tmp_path / "info.txtpb")
    [table] = schema.tables
    assert [each.name.replace(":", ".") for each in table.match_fields] == keys
    entry = table_entry(
        "x", schema, "t", action="a", arguments=[], keys=dict(zip(keys, range(4), strict=True))
    )
    assert len(entry.encode(schema).table_entry.match) == 4


def test_actions_may_have_a_long_alias_or_another_ones_end(tmp_path: Path) -> None:
    """As p4c names them where two controls have one of a type, or an action is outside, too."""
    names = ["I.sub.act", "set", "I.set", "I.drop"]
    schema = _info(["x"], [(name, name) for name in names], tmp_path / "info.txtpb")
    for number, name in enumerate(names, start=16777217):
        entry = table_entry("x", schema, "t", action=name, arguments=[], keys=[1])
        assert entry.encode(schema).table_entry.action.action.action_id == number
    [table] = schema.tables
    assert table.actions["drop"].name == "I.drop"  # as finsy has it
