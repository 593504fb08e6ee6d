"""P4Info that is none: what the hostile soak has found."""

from __future__ import annotations

from pathlib import Path

import pytest
from finsy.proto import p4i
from google.protobuf import json_format, text_format  # type: ignore[import-untyped]

from ringleaf.errors import ConfigError
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
