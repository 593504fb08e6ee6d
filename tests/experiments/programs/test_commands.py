"""BMv2's command files: what each command leaves, and which are not done."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from finsy import (
    P4ActionProfileGroup,
    P4ActionProfileMember,
    P4CloneSessionEntry,
    P4CounterData,
    P4CounterEntry,
    P4IndirectAction,
    P4Member,
    P4MeterConfig,
    P4MeterEntry,
    P4MulticastGroupEntry,
    P4RegisterEntry,
    P4TableAction,
    P4TableEntry,
    P4TableMatch,
    P4ValueSetEntry,
)
from finsy.p4entity import P4ValueSetMember
from finsy.proto import p4i
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.errors import ConfigError, RingleafError
from ringleaf.experiments.programs.arrays import LastWrites
from ringleaf.experiments.programs.commands import read
from ringleaf.experiments.programs.entries import Entries
from ringleaf.experiments.programs.replicas import ReplicaSources
from ringleaf.networks.traces.entries import load_schema
from ringleaf.switches.p4runtime.finsy_entities import make_schema
from ringleaf.switches.program import Program
from ringleaf.switches.switch import Switch

PROGRAMS = Path(__file__).parents[2] / "switches" / "programs"
CONTROLLER = load_schema(PROGRAMS / "controller.json", None)
STATEFUL = load_schema(PROGRAMS / "stateful.json", None)
EXTERNS = load_schema(PROGRAMS / "externs.json", None)
TABLES = load_schema(PROGRAMS / "tables.json", None)
PARSERS = load_schema(PROGRAMS / "parsers.json", None)


def encoded(entities: Any, schema: Any) -> list[str]:
    return [str(entity.encode(schema)) for entity in entities]


def same(text: str, schema: Any, *entities: Any) -> bool:
    return encoded(read(text, "s0.txt", schema), schema) == encoded(entities, schema)


def first(objects: Any) -> Any:
    return next(iter(objects))


def test_the_last_value_of_a_cell_counts() -> None:
    register = first(STATEFUL.registers)
    short = register.name.rpartition(".")[2]
    text = f"""
    register_write {short} 0 7
    register_write {register.name} 1 0x10
    register_write {short} 0 9
    register_read {short} 0
    """
    assert same(
        text,
        STATEFUL,
        P4RegisterEntry(register.name, index=0, data=9),
        P4RegisterEntry(register.name, index=1, data=16),
    )
    assert same(f"{text}\nregister_reset {short}", STATEFUL)


def test_registers_are_written_to_the_switch() -> None:
    switch = Switch.alone(Program.load(PROGRAMS / "stateful.json"), 4, "s0")
    register = first(STATEFUL.registers).name

    switch.write(read(f"register_write {register} 2 5", "s0.txt", STATEFUL))

    assert [switch.read_register(register, index) for index in (1, 2)] == [0, 5]


def test_rates_are_per_microsecond() -> None:
    """0.001 units per microsecond are 1000 per second."""
    meter = first(EXTERNS.meters)
    config = P4MeterConfig(cir=1000, cburst=100, pir=2000, pburst=200)
    assert same(
        f"meter_set_rates {meter.name} 1 0.001:100 0.002:200",
        EXTERNS,
        P4MeterEntry(meter.name, index=1, config=config),
    )
    assert same(
        f"meter_array_set_rates {meter.name} 0.001:100 0.002:200",
        EXTERNS,
        *(P4MeterEntry(meter.name, index=i, config=config) for i in range(meter.size)),
    )


def test_a_tables_own_meter_and_counter_are_of_its_entries() -> None:
    """As `simple_switch_CLI` has it: the index of a direct meter is an entry's number."""
    slow, fast = (
        P4MeterConfig(cir=1000 * k, cburst=100, pir=2000 * k, pburst=200) for k in (1, 1000)
    )
    count = P4CounterData(packet_count=3, byte_count=192)
    text = """
    // the switch's three entries
    table_add metered pass 1 =>
    table_add metered pass 2 =>
    meter_array_set_rates per_entry 0.001:100 0.002:200
    table_add metered pass 3 =>
    meter_set_rates I.per_entry 0 1:100 2:200
    counter_write hits 2 3 192
    table_modify metered NoAction 0 =>
    """

    def entry(key: int, action: str = "I.pass", **data: Any) -> P4TableEntry:
        match = P4TableMatch({"hdr.op.index": key})
        return P4TableEntry("I.metered", match=match, action=P4TableAction(action), **data)

    expected = (
        entry(1, "NoAction", meter_config=fast),
        entry(2, meter_config=slow),
        entry(3, meter_config=slow, counter_data=count),
    )
    assert same(text, EXTERNS, *expected)
    switch = Switch.alone(Program.load(PROGRAMS / "externs.json"), 4, "s0")
    switch.write(read(text, "s0.txt", EXTERNS))
    with pytest.raises(ConfigError, match=r":3: entry must have been created, got '0'"):
        read(
            "table_add metered pass 1 =>\ntable_delete metered 0\ncounter_write hits 0 1 1",
            "s0.txt",
            EXTERNS,
        )


def test_rates_of_entries_to_come() -> None:
    """BMv2's cells have them, whichever entry is there: seen with its `meter_array_set_rates`."""
    slow, fast = (
        P4MeterConfig(cir=1000 * k, cburst=100, pir=2000 * k, pburst=200) for k in (1, 1000)
    )
    text = """
    meter_array_set_rates per_entry 0.001:100 0.002:200
    table_add metered pass 1 =>
    table_add metered pass 2 =>
    meter_set_rates per_entry 1 1:100 2:200
    table_delete metered 0
    table_delete metered 1
    table_add metered pass 3 =>
    table_add metered pass 4 =>
    """
    assert [entry.meter_config for entry in read(text, "s0.txt", EXTERNS)] == [slow, fast]
    cleared = f"{text}table_clear metered\ntable_add metered pass 5 =>"
    assert [entry.meter_config for entry in read(cleared, "s0.txt", EXTERNS)] == [slow]
    over = f"{text}meter_array_set_rates per_entry 1:100 2:200\ntable_add metered pass 5 =>"
    assert [entry.meter_config for entry in read(over, "s0.txt", EXTERNS)] == [fast] * 3


def test_a_timeout_changes_nothing() -> None:
    """BMv2 notifies of idle entries, and keeps them."""
    entry = "table_add metered pass 1 =>\n"
    timed = read(f"{entry}table_set_timeout metered 0 500", "s0.txt", EXTERNS)
    assert encoded(timed, EXTERNS) == encoded(read(entry, "s0.txt", EXTERNS), EXTERNS)
    with pytest.raises(ConfigError, match="must be a whole number, got 'soon'"):
        read(f"{entry}table_set_timeout metered 0 soon", "s0.txt", EXTERNS)


def test_counters_and_value_sets() -> None:
    counter = first(STATEFUL.counters)
    data = P4CounterData(packet_count=3, byte_count=192)
    assert same(
        f"counter_reset {counter.name}\ncounter_write {counter.name} 1 3 192",
        STATEFUL,
        P4CounterEntry(counter.name, index=1, data=data),
    )
    members = [P4ValueSetMember(value) for value in (7, 9)]
    assert same(
        "pvs_add ports 7\npvs_add ports 8\npvs_add ports 0x9\npvs_remove ports 8",
        PARSERS,
        P4ValueSetEntry("P.ports", members=members),
    )
    assert same("pvs_add ports 7\npvs_clear ports", PARSERS, P4ValueSetEntry("P.ports", members=[]))


def test_groups_and_sessions() -> None:
    text = """
    mirroring_add_mc 5 1
    mirroring_add 6 3
    mirroring_add 7 1
    mirroring_delete 7
    mc_mgrp_create 1
    mc_mgrp_create 2
    mc_node_create 9 1 2 |
    mc_node_create 8 3
    mc_node_associate 1 0
    mc_node_associate 2 1
    mc_node_dissociate 2 1
    mc_node_associate 1 1
    mc_node_update 1 4
    mc_mgrp_destroy 2
    """
    members = [(1, 9), (2, 9), (4, 8)]
    assert same(
        text,
        CONTROLLER,
        P4MulticastGroupEntry(1, replicas=members),
        P4CloneSessionEntry(5, replicas=members),  # the group as it is in the end
        P4CloneSessionEntry(6, replicas=[(3, 0)]),
    )


def test_an_empty_line_repeats_the_command_before_it() -> None:
    """As `simple_switch_CLI` was seen to: the second node of port 1 has number 1.

    A comment is a command, if not one that BMv2 knows, and what BMv2 refuses the second time, or
    does alike, changes nothing.
    """
    text = "mc_mgrp_create 1\n\nmc_node_create 7 1{}mc_node_create 8 2\nmc_node_associate 1 1\n\n"
    for between in ("\n\n", "\n \t\n"):
        assert same(text.format(between), CONTROLLER, P4MulticastGroupEntry(1, replicas=[(1, 7)]))
    for between in ("\n", "\n# two\n\n", "\n// two\n\n", "\nmc_dump\n\n"):
        assert same(text.format(between), CONTROLLER, P4MulticastGroupEntry(1, replicas=[(2, 8)]))
    members = read("act_prof_create_member plain I.forward 4\n\n\n", "s0.txt", CONTROLLER)
    assert [each.member_id for each in members] == [1, 2, 3]
    entry = "table_add metered pass 1 =>\n"
    assert len(read(f"\n{entry}\n\n", "s0.txt", EXTERNS)) == 1


def test_a_node_is_in_one_group() -> None:
    """BMv2 refuses the second, and lets a destroyed group keep its nodes (`simple_pre.cpp`)."""
    start = "mc_mgrp_create 1\nmc_mgrp_create 2\nmc_node_create 7 1\nmc_node_associate 1 0\n"
    for line in ("mc_node_associate 2 0", "mc_mgrp_destroy 1\nmc_node_associate 2 0"):
        with pytest.raises(
            ConfigError, match="in one group, as in BMv2, got node 0 for group 2, w"
        ):
            read(start + line, "s0.txt", CONTROLLER)
    groups = P4MulticastGroupEntry(1, replicas=[]), P4MulticastGroupEntry(2, replicas=[(1, 7)])
    moved = "mc_node_dissociate 1 0\nmc_node_associate 2 0"
    assert same(start + moved, CONTROLLER, *groups)
    again = "mc_node_destroy 0\nmc_node_create 7 1\nmc_node_associate 2 0"
    assert same(start + again, CONTROLLER, *groups)


def test_an_alias_is_a_name() -> None:
    """Any is, of P4Runtime's: also one that no name ends with, as `p4runtime_lib` takes it."""
    info = p4i.P4Info()
    info.CopyFrom(CONTROLLER.p4info)
    aliases = {"I.destinations": "routes", "I.forward": "leave", "I.last_source": "newest"}
    for each in (*info.tables, *info.actions, *info.registers):
        each.preamble.alias = aliases.get(each.preamble.name, each.preamble.alias)
    schema = make_schema(info)
    for names in ("routes leave", "destinations forward", "I.destinations leave"):
        [entry] = read(f"table_add {names} 1 => 2", "s0.txt", schema)
        assert (entry.table_id, entry.action.name) == ("I.destinations", "I.forward")
    [written] = read("register_write newest 0 1", "s0.txt", schema)
    assert written.register_id == "I.last_source"


def profile_of(with_selector: bool) -> Any:
    return next(p for p in CONTROLLER.action_profiles if p.with_selector == with_selector)


def test_action_profiles() -> None:
    """BMv2's members are numbered from 0; 0 is no number of P4Runtime."""
    profile = profile_of(True)
    table = next(t for t in CONTROLLER.tables if t.action_profile is profile)
    (key,) = table.match_fields
    text = f"""
    act_prof_create_member {profile.name} forward 1
    act_prof_create_member {profile.name} forward 2
    act_prof_create_member {profile.name} forward 3
    act_prof_create_group {profile.name}
    act_prof_add_member_to_group {profile.name} 0 0
    act_prof_add_member_to_group {profile.name} 1 0
    act_prof_remove_member_from_group {profile.name} 0 0
    act_prof_modify_member {profile.name} forward 1 4
    act_prof_delete_member {profile.name} 2
    table_indirect_add {table.name} 5 => 1
    table_indirect_add_with_group {table.name} 6 => 0
    """

    def entry(value: int, action: P4IndirectAction) -> P4TableEntry:
        return P4TableEntry(table.name, match=P4TableMatch({key.name: value}), action=action)

    def member(number: int, port: int) -> P4ActionProfileMember:
        action = P4TableAction("forward", port=port)
        return P4ActionProfileMember(profile.name, member_id=number, action=action)

    assert same(
        text,
        CONTROLLER,
        member(1, 1),
        member(2, 4),
        P4ActionProfileGroup(profile.name, group_id=1, members=[P4Member(2, weight=1)]),
        entry(5, P4IndirectAction(member_id=2)),
        entry(6, P4IndirectAction(group_id=1)),
    )
    old = "\n".join(
        line.replace("act_prof_", "table_indirect_").replace(profile.name, table.name)
        for line in text.splitlines()
    )
    assert encoded(read(old, "", CONTROLLER), CONTROLLER) == encoded(
        read(text, "", CONTROLLER), CONTROLLER
    )
    switch = Switch.alone(Program.load(PROGRAMS / "controller.json"), 4, "s0")
    switch.write(read(text, "s0.txt", CONTROLLER))


def test_entries_by_their_numbers() -> None:
    text = """
    table_add destinations forward 1 => 1
    table_add destinations forward 2 => 2
    table_add destinations forward 3 => 3
    table_delete destinations 0
    table_modify destinations forward 1 => 7
    table_set_default destinations drop
    table_reset_default destinations
    """
    table = CONTROLLER.tables["destinations"]
    (key,) = [each.name for each in table.match_fields]

    def entry(value: int, port: int) -> P4TableEntry:
        action = P4TableAction("forward", port=port)
        return P4TableEntry(table.name, match=P4TableMatch({key: value}), action=action)

    assert same(text, CONTROLLER, entry(2, 7), entry(3, 3))


def test_of_entries_of_one_priority_the_first_by_place_wins() -> None:
    """As in BMv2 (`EntryList`): an entry in the place of a deleted one comes before later ones.

    All four match; the last one has place 0, which was the first one's.
    """
    text = """
    table_add ternary_table set_ternary 1&&&1 0&&&0 0&&&0 => 1 5
    table_add ternary_table set_ternary 3&&&3 0&&&0 0&&&0 => 2 5
    table_add ternary_table set_ternary 7&&&7 0&&&0 0&&&0 => 3 6
    table_delete ternary_table 0
    table_add ternary_table set_ternary 15&&&15 0&&&0 0&&&0 => 4 5
    """
    entries = read(text, "s0.txt", TABLES)
    assert [int(entry.action.args["value"]) for entry in entries] == [4, 2, 3]


def test_a_free_number_is_taken_again() -> None:
    """As `simple_switch_CLI` printed: "Entry has been added with handle 16777216", and so on.

    Entries of a table that was cleared, and all else that was deleted, are numbered as at first.
    """
    text = """
    table_add destinations forward 1 => 1
    table_add destinations forward 2 => 1
    table_add destinations forward 3 => 1
    table_delete destinations 1
    table_delete destinations 0
    table_add destinations forward 4 => 1
    table_add destinations forward 5 => 1
    table_add destinations forward 6 => 1
    table_modify destinations forward 16777216 => 4
    table_modify destinations forward 16777217 => 5
    table_modify destinations forward 2 => 3
    table_modify destinations forward 3 => 6
    table_delete destinations 16777216
    table_add destinations forward 7 => 1
    table_modify destinations forward 33554432 => 7
    """

    def ports(text: str) -> dict[int, int]:
        (key,) = [each.name for each in CONTROLLER.tables["destinations"].match_fields]
        return {
            int(entry.match[key]): int(entry.action.args["port"])
            for entry in read(text, "s0.txt", CONTROLLER)
        }

    assert ports(text) == {3: 3, 5: 5, 6: 6, 7: 7}
    again = "table_add destinations forward 8 => 1\ntable_modify destinations forward 0 => 8"
    assert ports(f"{text}\ntable_clear destinations\n{again}") == {8: 8}
    with pytest.raises(ConfigError, match="entry must have been created, got '0'"):
        read(f"{text}\ntable_delete destinations 0", "s0.txt", CONTROLLER)

    profile = profile_of(True).name
    members = f"""
    act_prof_create_member {profile} forward 1
    act_prof_create_member {profile} forward 2
    act_prof_delete_member {profile} 0
    act_prof_create_member {profile} forward 3
    act_prof_modify_member {profile} forward 0 4
    """
    assert {
        each.member_id: int(each.action.args["port"])
        for each in read(members, "s0.txt", CONTROLLER)
    } == {1: 4, 2: 2}
    nodes = """
    mc_mgrp_create 1
    mc_node_create 7 1
    mc_node_create 8 2
    mc_node_destroy 0
    mc_node_create 9 3
    mc_node_associate 1 0
    """
    assert same(nodes, CONTROLLER, P4MulticastGroupEntry(1, replicas=[(3, 9)]))


def test_keys_that_are_not_in_p4runtimes_form() -> None:
    """Bits beside a mask don't count, and a range of all values matches anything, as in BMv2."""
    text = """
    table_add ternary_table set_ternary 10.0.0.77&&&255.255.255.0 0xff&&&0x80 1&&&0 => 1 1
    table_add range_table set_range 0->65535 3 1->0xff => 2 1
    table_add optional_table set_optional 7&&&0xffffffffffff 9&&&0 => 3 1
    """
    most = (1 << 31) - 2  # P4Runtime's priority for BMv2's 1

    def entry(table: str, match: dict[str, Any], action: str, value: int) -> P4TableEntry:
        call = P4TableAction(action, value=value)
        return P4TableEntry(table, match=P4TableMatch(match), action=call, priority=most)

    ternary = {"hdr.key.address": (0x0A000000, 0xFFFFFF00), "hdr.key.flags": (0x80, 0x80)}
    assert same(
        text,
        TABLES,
        entry("ternary_table", ternary, "set_ternary", 1),
        entry("range_table", {"hdr.key.kind": 3, "hdr.key.flags": (1, 255)}, "set_range", 2),
        entry("optional_table", {"hdr.key.mac": 7}, "set_optional", 3),
    )
    switch = Switch.alone(Program.load(PROGRAMS / "tables.json"), 4, "s0")
    switch.write(read(text, "s0.txt", TABLES))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "table_add range_table set_range 0->5 3 9->6 => 2 1",
            "must have its least value first",
        ),
        ("table_add range_table set_range 0->5 3 6->9 => 2 -1", "priority must be 0 to 2147483646"),
        ("table_add range_table set_range 0->5 3 6->9 => 2 2147483647", "priority must be 0 to"),
    ],
)
def test_what_no_entry_can_have_is_told_by_its_line(line: str, message: str) -> None:
    with pytest.raises(ConfigError, match=rf"^s0\.txt:2: .*{message}"):
        read(f"# made\n{line}", "s0.txt", TABLES)


def test_a_table_without_keys_has_no_entries() -> None:
    keyless = p4i.P4Info.FromString(TABLES.p4info.SerializeToString())
    table = next(each for each in keyless.tables if each.preamble.alias == "ternary_table")
    del table.match_fields[:]

    with pytest.raises(ConfigError, match="got table 'ternary_table', which has none; use table_s"):
        read("table_add ternary_table set_ternary => 1", "s0.txt", make_schema(keyless))


def test_a_reset_undoes_what_was_before_it() -> None:
    """But for clone sessions, which `reset_state` of BMv2 keeps."""
    register, counter = first(STATEFUL.registers).name, first(STATEFUL.counters).name
    before = f"""
    register_write {register} 1 5
    counter_write {counter} 1 3 192
    """
    assert same(f"{before}\nreset_state\n{before}", STATEFUL, *read(before, "", STATEFUL))
    assert same(f"{before}\nreset_state", STATEFUL)
    kept = P4RegisterEntry(register, index=1, data=5)
    assert same(f"{before}\ncounter_reset {counter}", STATEFUL, kept)
    session = P4CloneSessionEntry(5, replicas=[(3, 0)])
    assert same("mirroring_add 5 3\nmc_mgrp_create 1\nreset_state", CONTROLLER, session)
    cleared = "table_add metered pass 1 =>\ncounter_write hits 0 3 192\ncounter_reset hits"
    assert same(cleared, EXTERNS, *read("table_add metered pass 1 =>", "", EXTERNS))


@pytest.mark.parametrize(
    ("value", "kept"), [(255, -1), (128, -128), (127, 127), (-1, -1), (-300, -44)]
)
def test_a_signed_cell_takes_bits(value: int, kept: int) -> None:
    """`register_read` of BMv2 shows 255 after 255, and 212 after -300, in a cell of 8 bits."""
    text = f"register_write levels 3 {value}"
    assert same(text, STATEFUL, P4RegisterEntry("I.levels", index=3, data=kept))


def test_a_value_of_more_bits_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"s0.txt:1: .*bitwidth 8: 256"):
        read("register_write levels 3 256", "s0.txt", STATEFUL)


def test_a_negative_value_is_its_bits() -> None:
    """`register_read` of BMv2 shows 4294967295 in a cell of 32 bits after -1."""
    register = first(STATEFUL.registers)
    every = (1 << register.type_spec.bitwidth) - 1
    written = P4RegisterEntry(register.name, index=1, data=every)
    assert same(f"register_write {register.name} 1 -1", STATEFUL, written)


def test_a_constant_default_may_be_said_once_more() -> None:
    """It stays; BMv2's command line says that it is constant, and goes on."""
    names = ("drop", "to")
    actions = [
        p4i.Action(preamble=p4i.Preamble(id=1 << 24 | number, name=name, alias=name))
        for number, name in enumerate(names, start=1)
    ]
    table = p4i.Table(
        preamble=p4i.Preamble(id=2 << 24 | 1, name="t", alias="t"),
        action_refs=[p4i.ActionRef(id=action.preamble.id) for action in actions],
        const_default_action_id=actions[0].preamble.id,
        size=8,
    )
    schema = make_schema(p4i.P4Info(tables=[table], actions=actions))

    assert read("table_set_default t drop", "s0.txt", schema) == []
    other = P4TableEntry("t", action=P4TableAction("to"), is_default_action=True)
    assert same("table_set_default t to", schema, other)  # for the switch to refuse


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("set_queue_rate 100 1", "s0.txt:1: command is not done here, .*; links have rates"),
        (
            "set_queue_depth 100",
            "not done here, got 'set_queue_depth'; queues have the depth of --q",
        ),
        ("port_add veth0 1", "the topology says which ports there are"),
        ("load_new_config_file x", "say the program by --program"),
        ("set_crc16_parameters c 1 2 3 4 5", "a hash has the algorithm that the program names"),
        ("table_indirect_set_default t 0", "a table with an action profile have no default; add"),
        ("mc_set_lag_membership 0 1", "say the ports of the group"),
        ("\nregister_wrte r 0 1", "s0.txt:2: .*'register_wrte'.*did you mean 'register_write'"),
        ("register_write r", "must be register_write REGISTER INDEX VALUE, got"),
        ("register_write nowhere 0 1", "'nowhere'"),
        ("meter_set_rates m 0 1:1 2:2", "the program has no meters, got 'm'"),
        ("mc_node_create 1 2 | 3", "nodes must name ports, and no lags"),
        ("mc_mgrp_destroy 1", "must have been created, got 1"),
        ("mc_node_update 0 1", "node must have been created, got '0'"),
        ("mc_node_create 1 2\nmc_node_destroy -1", "node must have been created, got '-1'"),
        ("mirroring_delete 3", "session must have been added, got 3"),
        ("act_prof_create_group x", "got 'x'"),
    ],
)
def test_what_is_not_done_is_said(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read(text, "s0.txt", STATEFUL)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("table_delete destinations 0", "entry must have been created, got '0'"),
        ("table_indirect_add destinations 1 => 0", "must have an action profile"),
        ("act_prof_delete_member plain 3", "member must have been created, got '3'"),
        ("act_prof_add_member_to_group spread 0 0", "group must have been created, got '0'"),
        ("register_write x 99 1", "'x'"),
        ("table_add guard drop 1&&&1 1->x 1 => 1", "type' must be two values of 16 bits and ->"),
        ("table_add guard drop 1&&&1 1->2 1&&&1 => 1", "port' is optional: its mask must be all"),
    ],
)
def test_numbers_that_there_are_not(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read(text, "s0.txt", CONTROLLER)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "ternary_table set_ternary 7 1&&&1 1&&&1 => 1 1",
            "key 'hdr.key.address' must have &&&",
        ),
        ("range_table set_range 7 3 1->2 => 2 1", "key 'hdr.key.port' must have -> in it"),
        ("lpm_table set_lpm 10.0.0.1 => 1", "key 'hdr.key.address' must have / in it, as in BMv2"),
        ("lpm_table set_lpm 10.0.0.1/33 => 1", "key 'hdr.key.address': .*, got '10.0.0.1 33'"),
        ("lpm_table set_lpm 10.0.0.999/24 => 1", "key .*: Octet 999 .*, got '10.0.0.999 24'"),
        ("lpm_table set_lpm 10.0.0.1/24 => 0x1ffffffff", "argument 'value': .*, got '0x1ffffffff'"),
        ("lpm_table set_lpm 10.0.0.1/24 => five", "argument 'value': .*, got 'five'"),
    ],
)
def test_a_value_that_does_not_fit_has_its_line(line: str, message: str) -> None:
    with pytest.raises(ConfigError, match=f"s0.txt:2: {message}"):
        read(f"# a comment\ntable_add {line}", "s0.txt", TABLES)


def test_an_entry_with_the_keys_of_another_has_its_line() -> None:
    """As of BMv2's DUPLICATE_ENTRY; once deleted, or in another table, it is none."""
    add = "table_add ternary_table set_ternary 10.0.0.1&&&0xff {}&&&1 1&&&0 => {} {}"
    first = add.format(1, 1, 1)
    same_keys = add.replace("10.0.0.1", "0x01").format(3, 2, 1)
    with pytest.raises(
        ConfigError, match=r"s0.txt:2: an entry must have keys .*, got those of s0.tx"
    ):
        read(f"{first}\n{same_keys}", "s0.txt", TABLES)
    for between in ("table_delete ternary_table 0", "table_clear ternary_table"):
        assert len(read(f"{first}\n{between}\n{same_keys}", "s0.txt", TABLES)) == 1
    for other in (add.format(2, 2, 1), add.format(1, 2, 2)):
        assert len(read(f"{first}\n{other}", "s0.txt", TABLES)) == 2


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("mc_mgrp_create 0", "groups are 1 to 65535, got 0"),
        ("mc_mgrp_create 65536", "groups are 1 to 65535, got 65536"),
        ("mc_node_create 65536 1", "instances are 0 to 65535, got 65536"),
        ("mirroring_add 0 1", "sessions are 1 to 32767, got 0"),
        ("mirroring_add_mc 32768 1", "sessions are 1 to 32767, got 32768"),
        ("mc_node_associate 1 1", "a group must have a port once .*got port 2 of instance 7 twice"),
        ("mc_node_update 2 2", "a group must have a port once .*got port 2 of instance 7 twice"),
        ("meter_set_rates I.by_packets 0 nan:1 2:2", "rates must be finite, got 'nan:1 2:2'"),
        ("meter_set_rates I.by_packets 0 1:-1 2:2", "rates and bursts are never negative"),
        ("meter_set_rates I.by_packets 0 3:1 2:2", "the first rate must not exceed the second"),
        ("meter_array_set_rates I.by_bytes 1:1 1e14:2", r"rates .* must be below 2\^63"),
        (
            "meter_set_rates I.by_packets 0 0.0000005:1 1:2",
            "rates must be whole .*got 0.5 .*use 0.000001",
        ),
        (
            "meter_set_rates I.by_packets 0 0:1 0.00000133:2",
            "rates must be whole .*got 1.33 per second",
        ),
        ("table_set_timeout I.metered 0 5", "entry must have been created, got '0'"),
        ("counter_write E.sent 0 -1 1", "counters are never negative"),
        ("counter_write E.sent 0 1 9223372036854775808", "Value out of range: 92233"),
    ],
)
def test_groups_sessions_and_arrays_have_their_lines(line: str, message: str) -> None:
    before = "mc_mgrp_create 1\nmc_node_create 7 1 2 2\nmc_node_create 7 2\nmc_node_create 7 3\n"
    before += "mc_node_associate 1 0\nmc_node_associate 1 2\n"
    with pytest.raises(ConfigError, match=f"s0.txt:7: {message}"):
        read(before + line, "s0.txt", EXTERNS)


def test_a_group_made_twice_keeps_its_nodes() -> None:
    """As in BMv2, McSimplePre::mc_mgrp_create, which inserts into a map."""
    made = "mc_mgrp_create 1\nmc_node_create 7 1 1 2\nmc_node_associate 1 0\n"
    group = P4MulticastGroupEntry(1, replicas=[(1, 7), (2, 7)])  # a port is once in a node's set
    assert same(f"{made}mc_mgrp_create 1", CONTROLLER, group)


def test_ports_of_groups_have_their_lines() -> None:
    text = """mc_mgrp_create 1
    mc_node_create 0 1 2
    mc_node_create 0 99
    mc_node_associate 1 0
    mirroring_add 5 3
    mirroring_add 6 98
    mirroring_delete 6
    mirroring_add_mc 7 1"""
    assert read(text, "a", CONTROLLER).ports == {"a:2": (1, 2)}


def test_an_index_outside_of_an_array() -> None:
    register = first(STATEFUL.registers)
    with pytest.raises(ConfigError, match=f"has indices 0 to {register.size - 1}, got 9999"):
        read(f"register_write {register.name} 9999 1", "s0.txt", STATEFUL)


NAMES = sorted(
    name
    for part in (ReplicaSources(), LastWrites(STATEFUL, Entries(STATEFUL)), Entries(STATEFUL))
    for name in part.commands()
)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(NAMES),
            st.lists(st.sampled_from(["0", "1", "-1", "x", "=>", "1:2", "|", "t", ""]), max_size=5),
        ),
        max_size=6,
    )
)
def test_any_commands_are_read_or_refused(lines: list[tuple[str, list[str]]]) -> None:
    text = "\n".join(" ".join([name, *words]) for name, words in lines)
    said = "s0.txt:"
    try:
        read(text, "s0.txt", CONTROLLER)
    except RingleafError as error:
        said = str(error)
    assert "s0.txt:" in said
