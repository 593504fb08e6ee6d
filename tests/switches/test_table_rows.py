"""Tables filled by columns are those that P4Runtime fills entry by entry, errors included."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import finsy as fy
import numpy as np
import pytest
from finsy.p4schema import P4MatchType
from finsy.proto import p4r
from hypothesis import given
from hypothesis import strategies as st
from program_cases import BUILT, PROGRAMS

from ringleaf.errors import ConfigError
from ringleaf.switches.control.hashed import lay_groups
from ringleaf.switches.engine.lookup import GROUP_KEYS, KEYS, MIX, RANK
from ringleaf.switches.engine.updates import DELETE, INSERT, MODIFY
from ringleaf.switches.p4runtime.table_rows import TableRows, entities_of
from ringleaf.switches.program import Program
from ringleaf.switches.switch import Switch

NAMES = ["controller", "l2l3", "prefixes", "tables"]
Draw = Callable[..., Any]


@cache
def program(name: str) -> Program:
    return Program.load(PROGRAMS / f"{name}.json")


@cache
def schema(name: str) -> fy.P4Schema:
    return fy.P4Schema(PROGRAMS / f"{name}.p4info.txtpb")


def make_switch(name: str) -> Switch:
    return Switch.alone(program(name), ports=4, name="s1")


def words(values: list[int]) -> Any:
    return np.array(values, np.uint64)


def column(draw: Draw, field: Any, count: int) -> tuple[Any, ...]:
    """Columns of one key: few values, so that some entries are equal; rarely one is too large."""
    bits = min(field.bitwidth, 63)
    full = (1 << bits) - 1
    whole = st.integers(0, full) if draw(st.booleans()) else st.integers(0, min(full, 2))
    if draw(st.integers(0, 29)) == 0:
        whole = st.integers(0, 2 * full)
    if field.match_type is P4MatchType.LPM:
        most = bits + (draw(st.integers(0, 9)) == 0)
        lengths = [draw(st.integers(0, most)) for _ in range(count)]
        masks = [full << max(field.bitwidth - length, 0) & full for length in lengths]
        values = [draw(whole) & mask for mask in masks]
        return words(values), words(lengths)
    values = [draw(whole) for _ in range(count)]
    if field.match_type in (P4MatchType.EXACT, P4MatchType.OPTIONAL):
        return (words(values),)
    others = [draw(st.sampled_from([full, full >> 1, 0, 1])) for _ in range(count)]
    if field.match_type is P4MatchType.TERNARY and draw(st.integers(0, 9)):
        values = [value & other for value, other in zip(values, others, strict=True)]
    return words(values), words(others)


@st.composite
def table_rows(draw: Draw, name: str) -> TableRows:
    table = draw(st.sampled_from(list(schema(name).tables)))
    count = draw(st.integers(0, 12))
    match = {
        field.alias: column(draw, field, count)
        for field in table.match_fields
        if field.match_type is P4MatchType.EXACT or draw(st.integers(0, 5))
    }
    kinds = draw(st.lists(st.sampled_from(list(table.actions)), min_size=1, max_size=3))
    calls = tuple(
        (action.alias, tuple(draw(st.permutations([param.name for param in action.params]))))
        for action in kinds
    )
    most = max(len(parameters) for _, parameters in calls)
    is_ranked = any(field.match_type.name in RANKED for field in table.match_fields)
    least = int(is_ranked and draw(st.integers(0, 9)) > 0)
    priorities = st.integers(least, 3 * is_ranked)
    return TableRows(
        table.alias,
        match,
        calls,
        np.array([draw(st.integers(0, len(calls) - 1)) for _ in range(count)], np.int64),
        words([draw(st.integers(0, 127)) for _ in range(count * most)]).reshape(count, most),
        np.array([draw(priorities) for _ in range(count)], np.int64),
    )


RANKED = ("TERNARY", "RANGE", "OPTIONAL")


def memory(switch: Switch) -> list[bytes]:
    """Return the arrays of a switch's arena, but for where they lie."""
    arena = switch.store.arena
    arrays = (arena.words, arena.fields, arena.lanes, arena.bytes, arena.memory)
    return [array.tobytes() for array in arrays]


def read(switch: Switch) -> list[Any]:
    """All entries of all tables, as P4Runtime reads them, with all that belongs to them."""
    asked = p4r.TableEntry()
    for part in (asked.counter_data, asked.meter_config, asked.time_since_last_hit):
        part.SetInParent()
    defaults = p4r.TableEntry(is_default_action=True)
    wanted = [p4r.Entity(table_entry=each) for each in (asked, defaults)]
    return [found for each in wanted for found in switch.entities.read(each)]


def outcome(act: Callable[[], None]) -> str:
    try:
        act()
    except ConfigError as error:
        return f"{error.code} {error}"
    return "done"


@given(st.data(), st.sampled_from(NAMES))
def test_rows_do_the_same_as_their_entities(data: st.DataObject, name: str) -> None:
    items = data.draw(st.lists(table_rows(name), max_size=4))
    columns, messages = make_switch(name), make_switch(name)

    told = outcome(partial(columns.write, items))

    assert told == outcome(partial(messages.write, entities_of(items)))
    assert memory(columns) == memory(messages)
    assert read(columns) == read(messages)
    for table in schema(name).tables:
        if table.name in program(name).schema.tables_by_name:
            assert columns.entries(table.name) == messages.entries(table.name)


@given(st.data(), st.sampled_from(NAMES))
def test_entries_that_came_as_rows_can_be_changed(data: st.DataObject, name: str) -> None:
    items = data.draw(st.lists(table_rows(name), min_size=1, max_size=3))
    switches = [make_switch(name), make_switch(name)]
    outcome(partial(switches[0].write, items))
    outcome(partial(switches[1].write, entities_of(items)))
    present = [entity.table_entry for entity in read(switches[1])]
    present = [entry for entry in present if not entry.is_default_action and not entry.is_const]
    if not present:
        return
    for _ in range(3):
        entry = p4r.TableEntry()
        entry.CopyFrom(data.draw(st.sampled_from(present)))
        entry.controller_metadata = 7
        if entry.HasField("counter_data"):
            entry.counter_data.packet_count = 5
        entry.ClearField("meter_config")
        entry.ClearField("time_since_last_hit")
        act = partial(change, data.draw(st.sampled_from([INSERT, MODIFY, DELETE])), entry)
        done = [outcome(partial(act, switch)) for switch in switches]
        assert done[0] == done[1]
    more = data.draw(table_rows(name))
    done = [outcome(partial(switch.write, more)) for switch in switches]
    assert done[0] == done[1]
    assert memory(switches[0]) == memory(switches[1])
    assert read(switches[0]) == read(switches[1])


def change(verb: str, entry: Any, switch: Switch) -> None:
    switch.now_ps += 1000
    switch.entities.write(verb, p4r.Entity(table_entry=entry))
    switch.commit()


def exact_rows(count: int) -> TableRows:
    return TableRows(
        "macs",
        {"mac": (np.arange(count, dtype=np.uint64),)},
        (("to_port", ("port",)),),
        np.zeros(count, np.int64),
        np.full((count, 1), 2, np.uint64),
    )


def test_rows_that_fit_need_no_messages() -> None:
    switch = make_switch("l2l3")
    switch.entities.write = None  # type: ignore[assignment,method-assign]

    switch.write([exact_rows(1000)])

    assert len(switch.entries("SwitchIngress.macs")) == 1000


def test_rows_come_after_entries_that_came_one_by_one() -> None:
    switch = make_switch("l2l3")
    *_, last = exact_rows(9).entities()

    switch.write([last])
    switch.write([exact_rows(3)])

    macs = [entry.match[0][0] for entry in switch.entries("SwitchIngress.macs")]
    assert macs == [8, 0, 1, 2]


def test_a_journal_has_every_entry() -> None:
    switch = make_switch("l2l3")
    switch.entities.journal = []

    switch.write([exact_rows(3)])

    assert [update.entity.table_entry for update in switch.entities.journal] == [
        entity.encode_entry(schema("l2l3")) for entity in exact_rows(3).entities()
    ]


def test_too_many_rows_fill_the_table_before_they_are_refused() -> None:
    switch = make_switch("l2l3")

    with pytest.raises(
        ConfigError, match=r"s1: table 'SwitchIngress\.macs': table is full, got entry 1025"
    ):
        switch.write([exact_rows(1030)])

    assert len(switch.entries("SwitchIngress.macs")) == 1024


def test_a_row_without_keys_is_the_default_action() -> None:
    """By hand: of two actions, the second in the JSON takes three parameters, in another order."""
    switch = Switch.alone(Program.load(BUILT / "forward.json"), ports=4, name="s1")
    call = ("mark_between", ("last", "least", "full"))
    arguments = words([7, 2, 9]).reshape(1, 3)
    row = TableRows("ecn_threshold", {}, (call,), np.zeros(1, np.int64), arguments)
    (table,) = (
        each
        for each in switch.program.schema.tables.values()
        if each.name.endswith("ecn_threshold")
    )
    (entity,) = row.entities()

    switch.write([row])

    entry = switch.default_entry(table.name)
    assert table.actions[entry.action].preamble.alias == "mark_between"
    assert entry.arguments == (2, 9, 7)
    assert entity == fy.P4TableEntry(
        "ecn_threshold",
        action=fy.P4TableAction("mark_between", least=2, full=9, last=7),
        is_default_action=True,
    )
    assert "encoder" not in vars(switch.program)  # no message was made


def test_a_default_action_that_does_not_fit_is_refused_as_its_entity_is() -> None:
    columns, messages = (
        Switch.alone(Program.load(BUILT / "forward.json"), ports=4, name="s1") for _ in range(2)
    )
    call = ("mark_from", ("threshold",))
    row = TableRows("ecn_threshold", {}, (call,), np.zeros(1, np.int64), words([1 << 40])[:, None])

    told = outcome(partial(columns.write, [row]))

    assert told != "done"
    assert told == outcome(partial(messages.write, entities_of([row])))


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 40)), min_size=1, max_size=60))
def test_rows_lie_where_one_after_the_other_would_put_them(pairs: list[tuple[int, int]]) -> None:
    """Masks and keys of one word; each row has its number as its last word."""
    rows = np.array([(9, 0, 0, key, i) for i, (_, key) in enumerate(pairs)], np.uint64)
    masks = np.array([[group] for group, _ in pairs], np.uint64)
    assert rows[0, RANK] == 9
    assert KEYS == 3

    count, image, places = lay_groups(rows, masks, start=100)

    at = count * (GROUP_KEYS + 1)
    for number, group in enumerate(dict.fromkeys(group for group, _ in pairs)):
        own = list(dict.fromkeys(key for of, key in pairs if of == group))
        slots = 2
        while slots < 2 * [of for of, _ in pairs].count(group):
            slots *= 2
        table: list[int | None] = [None] * slots
        for key in own:
            mixed = key * MIX % (1 << 64)
            slot = (mixed ^ mixed >> 32) % slots
            while table[slot] is not None:
                slot = (slot + 1) % slots
            table[slot] = pairs.index((group, key))
        found = image[at : at + 5 * slots].reshape(slots, 5)
        assert [int(row[4]) if row[RANK] else None for row in found] == table
        head = image[number * (GROUP_KEYS + 1) :][: GROUP_KEYS + 1]
        assert head.tolist() == [9, slots - 1, 100 + at, group]
        at += 5 * slots
    assert image.size == at
    firsts = [pairs.index(pair) == number for number, pair in enumerate(pairs)]
    assert (places >= 0).tolist() == firsts
    for number in np.flatnonzero(firsts).tolist():
        assert image[places[number] - 100 :][:5].tolist() == rows[number].tolist()
