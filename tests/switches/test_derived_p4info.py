"""P4Info that is made of the JSON: what p4c's own says of the same program."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from finsy import P4RegisterEntry, P4TableAction, P4TableEntry, P4TableMatch
from finsy.proto import p4i
from program_cases import BUILT, PROGRAMS

from ringleaf.core.shipped import P4INFO_SUFFIX
from ringleaf.errors import ConfigError
from ringleaf.networks.traces.entries import load_schema
from ringleaf.switches.json.program import load_source
from ringleaf.switches.p4runtime.derived import derive_p4info, p4info_file
from ringleaf.switches.p4runtime.finsy_entities import make_schema, read_p4info
from ringleaf.switches.program import Program
from ringleaf.switches.switch import Switch

EACH = [
    *(PROGRAMS / f"{name}.json" for name in ("l2l3", "controller", "externs", "stateful")),
    *(PROGRAMS / f"{name}.json" for name in ("parsers", "tables")),
    *(BUILT / f"{name}.json" for name in ("forward", "switchml-64", "router", "acl")),
]
each_program = pytest.mark.parametrize("path", EACH, ids=lambda path: path.stem)


def both(path: Path) -> tuple[Any, Any]:
    return derive_p4info(load_source(path)), read_p4info(path.with_suffix(P4INFO_SUFFIX))


def tables(info: Any, known: set[str]) -> dict[str, Any]:
    """Return all that P4Info says of tables, by names in place of numbers."""
    names = {
        item.preamble.id: item.preamble.name for item in [*info.actions, *info.action_profiles]
    }
    direct = [*info.direct_counters, *info.direct_meters]
    names |= {item.preamble.id: item.preamble.name for item in direct}
    kinds = {p4i.MatchField.OPTIONAL: p4i.MatchField.TERNARY}  # BMv2's JSON has no optional
    return {
        table.preamble.name: (
            [
                (field.name, field.bitwidth, kinds.get(field.match_type, field.match_type))
                for field in table.match_fields
            ],
            {names[ref.id] for ref in table.action_refs},
            names.get(table.const_default_action_id),
            names.get(table.implementation_id),
            {names[number] for number in table.direct_resource_ids},
            table.idle_timeout_behavior,
        )
        for table in info.tables
        if table.preamble.name in known
    }


@each_program
def test_tables_are_those_of_p4c(path: Path) -> None:
    mine, real = both(path)
    known = {table.preamble.name for table in real.tables}
    assert tables(mine, known) == tables(real, known)
    assert len(tables(mine, known)) == len(known)


@each_program
def test_actions_of_tables_are_those_of_p4c(path: Path) -> None:
    def parameters(info: Any) -> dict[str, Any]:
        return {
            action.preamble.name: [(p.id, p.name, p.bitwidth) for p in action.params]
            for action in info.actions
        }

    mine, real = map(parameters, both(path))
    assert mine == {name: real[name] for name in mine if name in real} | {
        name: []
        for name in mine
        if name not in real  # of p4c's own tables
    }


@each_program
def test_arrays_and_profiles_are_those_of_p4c(path: Path) -> None:
    def objects(info: Any) -> dict[str, Any]:
        return {
            "registers": {(item.preamble.name, item.size) for item in info.registers},
            "counters": {(item.preamble.name, item.size) for item in info.counters},
            "meters": {(item.preamble.name, item.size, item.spec.unit) for item in info.meters},
            "direct": {item.preamble.name for item in [*info.direct_counters, *info.direct_meters]},
            "profiles": {
                (item.preamble.name, item.size, item.with_selector) for item in info.action_profiles
            },
            "sets": {
                (item.preamble.name, tuple(part.bitwidth for part in item.match), item.size)
                for item in info.value_sets
            },
            "digests": {item.preamble.name for item in info.digests},
        }

    mine, real = map(objects, both(path))
    assert mine == real


def test_a_program_without_p4info_is_written_by_names(tmp_path: Path) -> None:
    path = tmp_path / "alone.json"
    shutil.copyfile(PROGRAMS / "stateful.json", path)
    program = Program.load(path)
    (register, size), *_ = [(item.name, item.size) for item in program.source.registers.values()]
    switch = Switch.alone(program, 4, "s0")

    switch.write([P4RegisterEntry(register, index=size - 1, data=1)])

    assert switch.read_register(register, size - 1) == 1
    assert load_schema(path, None).registers[register].size == size


def test_a_file_is_taken_before_the_json(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    shutil.copyfile(PROGRAMS / "stateful.json", path)
    made = p4info_file(path)
    assert made == p4info_file(path)  # it is made once
    assert made.parent != tmp_path
    assert read_p4info(made) == derive_p4info(load_source(path))

    beside = tmp_path / f"mine{P4INFO_SUFFIX}"
    beside.write_text("")
    assert p4info_file(path) == beside
    assert p4info_file(path, made) == made
    with pytest.raises(ConfigError, match="got no P4Info"):
        load_schema(path, tmp_path / "none.txtpb")


def key(name: str, number: int) -> Any:
    kind = p4i.MatchField.EXACT
    return p4i.MatchField(id=number, name=name, bitwidth=8, match_type=kind)


@pytest.mark.parametrize(
    "names",
    [
        ("hdr.ethernet.src", "hdr.ipv4.src", "meta.port"),
        ("src", "hdr.src"),
        ("hdr.a.$valid$", "hdr.b.$valid$"),
    ],
)
def test_keys_may_share_the_last_part_of_their_names(names: tuple[str, ...]) -> None:
    """finsy takes that part for another name of the key, and refuses two that are equal."""
    table = p4i.Table(
        preamble=p4i.Preamble(id=2 << 24 | 1, name="t", alias="t"),
        match_fields=[key(name, number) for number, name in enumerate(names, start=1)],
        action_refs=[p4i.ActionRef(id=1 << 24 | 1)],
        size=8,
    )
    call = p4i.Action(preamble=p4i.Preamble(id=1 << 24 | 1, name="a", alias="a"))
    schema = make_schema(p4i.P4Info(tables=[table], actions=[call]))

    fields = list(schema.tables["t"].match_fields)
    assert [field.name.replace(":", ".") for field in fields] == list(names)
    entry = P4TableEntry(
        "t", match=P4TableMatch({field.name: 7 for field in fields}), action=P4TableAction("a")
    )
    message = entry.encode(schema)
    assert [part.field_id for part in message.table_entry.match] == [*range(1, len(names) + 1)]
