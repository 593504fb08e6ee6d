"""Entries of tables in the forms in which people have them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from finsy import (
    P4CloneSessionEntry,
    P4MulticastGroupEntry,
    P4TableAction,
    P4TableEntry,
    P4TableMatch,
)
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.errors import ConfigError, RingleafError
from ringleaf.experiments.programs import commands, runtime_json
from ringleaf.experiments.programs.control import open_control, read_write_request
from ringleaf.networks.traces.entries import load_schema
from ringleaf.topologies.registry import build

ROOT = Path(__file__).resolve().parents[3]
BASIC = ROOT / "examples" / "p4" / "build" / "basic.json"
SCHEMA = load_schema(BASIC, None)
FORWARD_SCHEMA = load_schema(ROOT / "p4" / "build" / "forward.json", None)
GRAPH = build("leafspine,leaves=2,spines=1,hosts=2")

ROUTE = P4TableEntry(
    "MyIngress.ipv4_lpm",
    match=P4TableMatch({"hdr.ipv4.dst": ("10.0.1.0", 24)}),
    action=P4TableAction("MyIngress.ipv4_forward", dst_mac="00:00:00:00:00:07", port=2),
)


def encoded(entities: Any, schema: Any = SCHEMA) -> list[str]:
    return [str(entity.encode(schema)) for entity in entities]


def test_commands_are_entries() -> None:
    text = """
    # routes
    table_set_default ipv4_lpm drop
    table_add MyIngress.ipv4_lpm ipv4_forward 10.0.1.0/24 => 00:00:00:00:00:07 2  # a comment
    mc_mgrp_create 5
    mc_node_create 9 1 2
    mc_node_create 8 3
    mc_node_associate 5 1
    mc_node_associate 5 0
    mirroring_add 7 4
    """
    default = P4TableEntry(
        "MyIngress.ipv4_lpm", action=P4TableAction("MyIngress.drop"), is_default_action=True
    )
    group = P4MulticastGroupEntry(5, replicas=[(3, 8), (1, 9), (2, 9)])
    session = P4CloneSessionEntry(7, replicas=[(4, 0)])
    assert encoded(commands.read(text, "s0.txt", SCHEMA)) == encoded(
        [group, session, default, ROUTE]
    )


def test_the_tutorials_json_has_the_same_entries() -> None:
    text = """{"target": "bmv2", "table_entries": [
      {"table": "MyIngress.ipv4_lpm", "match": {"hdr.ipv4.dst": ["10.0.1.0", 24]},
       "action_name": "MyIngress.ipv4_forward",
       "action_params": {"dst_mac": "00:00:00:00:00:07", "port": 2}}],
     "multicast_group_entries": [
      {"multicast_group_id": 5, "replicas": [{"egress_port": 3, "instance": 8}]}]}"""
    group = P4MulticastGroupEntry(5, replicas=[(3, 8)])
    assert encoded(runtime_json.read(text, "s0.json", SCHEMA)) == encoded([group, ROUTE])


def test_the_tutorials_json_has_clone_sessions_that_cut() -> None:
    text = """{"clone_session_entries": [
      {"clone_session_id": 5, "replicas": [{"egress_port": 3, "instance": 1}]},
      {"clone_session_id": 6, "packet_length_bytes": 60,
       "replicas": [{"egress_port": 2, "instance": 1}]}]}"""
    sessions = [
        P4CloneSessionEntry(5, replicas=[(3, 1)]),
        P4CloneSessionEntry(6, replicas=[(2, 1)], packet_length_bytes=60),
    ]
    assert encoded(runtime_json.read(text, "s0.json", SCHEMA)) == encoded(sessions)


def _rows(name: str, *rows: dict[str, Any]) -> str:
    return json.dumps({"target": "bmv2", name: rows})


ROW = {
    "table": "MyIngress.ipv4_lpm",
    "match": {"hdr.ipv4.dst": ["10.0.1.0", 24]},
    "action_name": "MyIngress.drop",
}
GROUP = {"multicast_group_id": 5, "replicas": [{"egress_port": 1, "instance": 1}]}
SESSION = {"clone_session_id": 5, "replicas": [{"egress_port": 1}]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            _rows("table_entries", ROW, ROW | {"action_param": {}}),
            r"table_entries\[1\]: unknown name, got 'action_param'; did you mean 'action_params'",
        ),
        (
            _rows("clone_session_entries", SESSION | {"packet_length": 64}),
            r"clone_session_entries\[0\]: unknown name, got 'packet_length'; did you mean",
        ),
        (
            _rows("multicast_group_entries", GROUP | {"replicas": [{"egress_port": 1, "rid": 2}]}),
            r"multicast_group_entries\[0\]: unknown name, got 'rid'",
        ),
        (
            _rows("multicast_group_entries", GROUP | {"multicast_group_id": "5"}),
            r"multicast_group_entries\[0\]: multicast_group_id must be a whole number, got '5'",
        ),
        (
            '{"table_entries": [],\n "table_entries": []}',
            r"line 1: a name must be there once, got 'table_entries' twice",
        ),
        (_rows("table_entries", ROW, ROW), r"\[1\]: must be there once, got the same as .*\[0\];"),
        (_rows("multicast_group_entries", GROUP, GROUP), r"\[1\]: must be there once"),
        (
            _rows("table_entries", ROW | {"priority": 3}),
            r"\[0\]: table 'MyIngress.ipv4_lpm' has no priorities, got 3",
        ),
        (
            _rows("multicast_group_entries", GROUP | {"replicas": [{"egress_port": 9}]}),
            r"multicast_group_entries\[0\]: ports of s0 are 1 to 3, got 9",
        ),
    ],
)
def test_the_tutorials_json_is_checked(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "s0-runtime.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message):
        open_control(path, BASIC).entities(GRAPH, "s0")


def test_the_tutorials_json_may_have_remarks() -> None:
    row = ROW | {"_why": "the first", "comment": "of two"}
    [entry] = runtime_json.read(_rows("table_entries", row), "s0.json", SCHEMA)
    assert entry.match == {"hdr.ipv4.dst": ("10.0.1.0", 24)}


TABLES_SCHEMA = load_schema(ROOT / "tests" / "switches" / "programs" / "tables.json", None)


def _range_row(match: dict[str, Any]) -> str:
    row = {"table": "range_table", "match": match, "action_name": "NoAction", "priority": 1}
    return _rows("table_entries", row)


@pytest.mark.parametrize(
    ("pair", "expected"),
    [([0, 0xFFFF], None), ([0, "0xfffe"], (0, 0xFFFE)), ([7, 7], (7, 7))],
)
def test_a_range_of_all_values_matches_anything(pair: list[Any], expected: Any) -> None:
    text = _range_row({"hdr.key.port": pair, "hdr.key.kind": 1})
    [entry] = runtime_json.read(text, "s0.json", TABLES_SCHEMA)
    assert entry.match.get("hdr.key.port") == expected


@pytest.mark.parametrize(
    ("match", "message"),
    [
        (
            {"hdr.key.port": [9, 7], "hdr.key.kind": 1},
            r"\[0\]: key 'hdr.key.port' must have its least value first, got '9->7'",
        ),
        ({"hdr.key.port": [7, 9]}, r"\[0\]: key 'hdr.key.kind' is matched exactly, got no value"),
        (
            {"hdr.key.port": [1, 2, 3], "hdr.key.kind": 1},
            r"must be two values of 16 bits and -> between them, got '1->2->3'",
        ),
    ],
)
def test_ranges_that_are_none(match: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        runtime_json.read(_range_row(match), "s0.json", TABLES_SCHEMA)


def test_entries_with_ranges_need_a_priority() -> None:
    row = {"table": "range_table", "match": {"hdr.key.kind": 1}, "action_name": "NoAction"}
    with pytest.raises(ConfigError, match=r"\[0\]: .*needs a priority of at least 1.*got None"):
        runtime_json.read(_rows("table_entries", row), "s0.json", TABLES_SCHEMA)
    keyless = {
        "table": "keyless_table",
        "action_name": "set_keyless",
        "action_params": {"value": 1},
    }
    with pytest.raises(ConfigError, match=r"\[0\]: entries need keys, got table 'I.keyless_table'"):
        runtime_json.read(_rows("table_entries", keyless), "s0.json", TABLES_SCHEMA)


@pytest.mark.parametrize(
    ("pair", "expected"), [([0x1F, 0x0F], (0x0F, 0x0F)), ([1, 0], None), (["0x10", 255], (16, 255))]
)
def test_bits_beside_a_mask_do_not_count(pair: list[Any], expected: Any) -> None:
    """Masked out bits of a value mean nothing, and a mask without a bit matches anything."""
    row = {
        "table": "ternary_table",
        "match": {"hdr.key.address": pair},
        "action_name": "NoAction",
        "priority": 1,
    }
    [entry] = runtime_json.read(_rows("table_entries", row), "s0.json", TABLES_SCHEMA)
    assert entry.match.get("hdr.key.address") == expected


@pytest.mark.parametrize("value", ["true", '"true"', '"True"', "false", '"false"'])
def test_a_default_action_may_be_said_by_a_text(value: str) -> None:
    text = f"""{{"table_entries": [
      {{"table": "MyIngress.ipv4_lpm", "default_action": {value}, "match": {{}},
       "action_name": "MyIngress.drop"}}]}}"""

    [entry] = runtime_json.read(text, "s0.json", SCHEMA)

    assert entry.is_default_action == ("rue" in value)


def test_text_of_p4runtime_has_the_same_entries() -> None:
    table = SCHEMA.tables["ipv4_lpm"]
    action = SCHEMA.actions["ipv4_forward"]
    text = f"""updates {{ type: INSERT entity {{ table_entry {{ table_id: {table.id}
      match {{ field_id: 1 lpm {{ value: "\\x0a\\x00\\x01\\x00" prefix_len: 24 }} }}
      action {{ action {{ action_id: {action.id}
        params {{ param_id: 1 value: "\\x07" }} params {{ param_id: 2 value: "\\x02" }} }} }}
    }} }} }}"""
    assert encoded(read_write_request(text, "s0.txtpb", SCHEMA)) == encoded([ROUTE])


def test_priorities_of_bmv2_are_turned_round() -> None:
    """BMv2's smallest number wins, P4Runtime's largest."""
    text = "table_add tensor_queues use_queue 0x40&&&0xc0 3&&&0x3f => 5 {}"
    schema = load_schema(ROOT / "p4" / "build" / "tensorexpress.json", None)
    table = next(each for each in schema.tables if each.alias == "tensor_queues")
    keys = [each.name for each in table.match_fields]
    assert len(keys) == 2
    first, later = (commands.read(text.format(number), "", schema)[0].priority for number in (1, 2))
    assert first > later > 0


def test_a_folder_has_a_file_for_each_switch(tmp_path: Path) -> None:
    line = "table_add ipv4_lpm ipv4_forward 10.0.1.0/24 => 00:00:00:00:00:07 2\n"
    (tmp_path / "s1-commands.txt").write_text(line)
    (tmp_path / "s10.txt").write_text(line + line)
    control = open_control(tmp_path, BASIC)
    graph = build("leafspine,leaves=12,spines=1,hosts=2")
    assert encoded(control.entities(graph, "s1")) == encoded([ROUTE])
    assert encoded(control.entities(graph, "s0")) == []
    (tmp_path / "s1.txt").write_text("")
    with pytest.raises(ConfigError, match=r"must have one file, got \['s1-commands.txt', 's1.txt"):
        control.entities(graph, "s1")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.txt", "table_add\n", r"a.txt:1: must be table_add TABLE ACTION"),
        ("a.txt", "\ntable_ad x\n", r"a.txt:2: no command 'table_ad'|a.txt:2: .*table_ad"),
        ("a.txt", "table_add nowhere drop 1 =>\n", r"a.txt:1: .*'nowhere'"),
        ("a.txt", "table_add ipv4_lpm drop => \n", r"a.txt:1: table ipv4_lpm has 1 key, got \[\]"),
        (
            "a.txt",
            "table_add ipv4_lpm ipv4_forward 1/8 => 3\n",
            r"a.txt:1: arguments must be \['dst_mac', 'port'\], got \['3'\]",
        ),
        ("a.txt", "mc_node_associate 1 0\n", r"a.txt:1: group must have been created"),
        ("a.txt", "mirroring_add 1\n", r"a.txt:1: must have 2 numbers, got \['1'\]"),
        ("a.txt", "mc_mgrp_create x\n", r"a.txt:1: must be a whole number, got 'x'"),
        (
            "a.txt",
            "mc_mgrp_create 1\nmc_node_create 0 1 0\nmc_node_associate 1 0\n",
            r"a.txt:2: ports of s0 are 1 to 3, got 0",
        ),
        ("a.json", "{", r"a.json line 1: not JSON"),
        ("a.json", "[]", r"a.json: must be an object"),
        ("a.json", '{"table_entries": [{}]}', r"a.json: table_entries\[0\]: KeyError: 'table'"),
        (
            "a.json",
            '{"table_entries": [{"default_action": 1, "table": "ipv4_lpm"}]}',
            r"table_entries\[0\]: default_action must be true or false, got 1",
        ),
        ("a.json", '{"table_entries": 3}', r"a.json: table_entries must be a list, got 3"),
        ("a.txtpb", "updates {", r"a.txtpb: not a WriteRequest"),
        (
            "a.txtpb",
            "updates { type: DELETE }",
            r"update 0: must be INSERT or MODIFY, got 'DELETE'",
        ),
        ("a.py", "1 / 0", r"a.py: must define entities\(graph, switch\), got ZeroDivisionError"),
        ("a.py", "x = 1", r"a.py: must define entities\(graph, switch\), got AttributeError"),
        (
            "a.py",
            "def entities(graph, switch): return [][1]",
            r"a.py: entities\(graph, 's0'\) failed, got IndexError",
        ),
        ("a.xml", "", r"control: must be a folder or end with .py"),
    ],
)
def test_what_is_wrong_is_said(name: str, text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(ConfigError, match=message):
        open_control(path, BASIC).entities(GRAPH, "s0")


def test_clones_for_ports_without_a_link_go_nowhere(tmp_path: Path) -> None:
    """BMv2 takes any port in a session; s0 has 1 to 3, and no controller at 255."""
    commanded, written = tmp_path / "a.txt", tmp_path / "a.json"
    commanded.write_text("mirroring_add 5 9\nmirroring_add 6 3\nmirroring_add 7 255\n")
    replicas = [{"egress_port": port, "instance": 1} for port in (2, 255)]
    sessions = [{"clone_session_id": 8, "replicas": replicas}]
    written.write_text(json.dumps({"clone_session_entries": sessions}))

    kept = [open_control(path, BASIC).entities(GRAPH, "s0") for path in (commanded, written)]

    assert kept == [
        [P4CloneSessionEntry(6, replicas=[(3, 0)])],
        [P4CloneSessionEntry(8, replicas=[(2, 1)])],
    ]


def test_commands_may_begin_with_a_mark_of_utf8(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes("\ufeffmirroring_add 7 1\r\n".encode())
    assert len(open_control(path, BASIC).entities(GRAPH, "s0")) == 1


@given(st.text(alphabet="table_add ipv4_lpm drop mc_node_create 0123456789./=>&:\n", max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    for read in (commands.read, runtime_json.read, read_write_request):
        try:
            read(text, "x", SCHEMA)
        except RingleafError as exc:
            said = str(exc)
            assert said.startswith("x")


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ("table_entries", "table", "match", "action_name", "action_params", "replicas")
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
def test_any_json_is_read_or_refused(document: Any) -> None:
    try:
        runtime_json.read(json.dumps(document), "x", SCHEMA)
    except RingleafError as exc:
        said = str(exc)
        assert said.startswith("x")
