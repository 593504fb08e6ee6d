"""The control plane of a switch, and packets through it one at a time."""

from __future__ import annotations

import shutil
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import finsy as fy
import pytest
from draws import PORTS
from forwarding_cases import route_entities
from program_cases import CASES, PROGRAMS, make_switch

from ringleaf.core.arena import Store
from ringleaf.core.packets import free_packets, make_pool
from ringleaf.core.units import PS_PER_US
from ringleaf.errors import ConfigError
from ringleaf.switches.engine.updates import Count
from ringleaf.switches.program import Program
from ringleaf.switches.switch import Switch

BY_NAME = {case.name: case for case in CASES}


@pytest.fixture
def stateful() -> Switch:
    return make_switch(BY_NAME["stateful"])


@pytest.fixture
def tables() -> Switch:
    return make_switch(replace(BY_NAME["tables"], entities=list))


def lpm(prefix: tuple[int, int], value: int) -> Any:
    match = fy.Match({"hdr.key.address": prefix})
    return fy.P4TableEntry("lpm_table", match=match, action=fy.Action("set_lpm", value=value))


def exact(address: int, value: int = 1) -> Any:
    match = {"hdr.key.address": address, "hdr.key.port": 7, "hdr.key.$valid$": 1}
    action = fy.Action("set_exact", value=value)
    return fy.P4TableEntry("exact_table", match=fy.Match(match), action=action)


def table_packet(address: int, port: int = 7) -> bytes:
    return bytes([3]) + address.to_bytes(4, "big") + port.to_bytes(2, "big") + bytes(25)


def lpm_value(switch: Switch, address: int) -> int:
    ((_, data),) = switch.process(1, table_packet(address))
    return data[33]


def test_entries_are_inserted_modified_and_deleted(tables: Switch) -> None:
    address = 0x55000001
    tables.write([+exact(address), +lpm((0x55000000, 8), 11)])
    assert lpm_value(tables, address) == 11
    tables.write(~lpm((0x55000000, 8), 12))
    assert lpm_value(tables, address) == 12
    tables.write([lpm((0x55000000, 24), 13)])  # a bare entity is an insert
    assert lpm_value(tables, address) == 13
    tables.write([-lpm((0x55000000, 24), 13), -lpm((0x55000000, 8), 12)])
    assert lpm_value(tables, address) == 0xDD
    default = fy.P4TableEntry(
        "lpm_table", is_default_action=True, action=fy.Action("set_lpm", value=0x77)
    )
    tables.write(~default)
    assert lpm_value(tables, address) == 0x77
    tables.write(~fy.P4TableEntry("lpm_table", is_default_action=True))
    assert lpm_value(tables, address) == 0xDD


def test_growing_tables_keep_all_entries(tables: Switch) -> None:
    for i in range(60):
        tables.write(+lpm((0x20000000 + (i << 16), 16), i + 1))
    tables.write([+exact(0x20000000 + (i << 16)) for i in range(60)])
    assert [lpm_value(tables, 0x20000000 + (i << 16)) for i in range(60)] == list(range(1, 61))


def direct_count(switch: Switch, entity: Any) -> Count:
    _, message = switch.program.encoder.encode(entity)
    table, entry = switch.entities.table_entries.key(message.table_entry)
    return switch.read_direct_counter(table.name, entry)


def test_direct_counters_go_with_their_entries(tables: Switch) -> None:
    tables.write([+exact(1), +exact(2)])
    for _ in range(3):
        tables.process(1, table_packet(1))
    tables.process(1, table_packet(2) + b"more")
    tables.process(1, table_packet(3))
    tables.write([-exact(2), +exact(9), ~exact(1, 5)])
    tables.process(1, table_packet(9))

    assert direct_count(tables, exact(1)) == Count(3, 96)
    assert direct_count(tables, exact(9)) == Count(1, 32)
    with pytest.raises(match="no such entry"):
        direct_count(tables, exact(2))
    with pytest.raises(ConfigError, match=r"table has no direct counters, got 'I\.lpm_table'"):
        direct_count(tables, lpm((0, 8), 1))


@pytest.mark.parametrize(
    ("entity", "message"),
    [
        (+lpm((0x0A000000, 33), 1), "33"),
        (lpm((0, 0), 300), "300"),
        (fy.P4TableEntry("nothing"), "nothing"),
        (fy.P4DigestEntry("x"), "you asked for .x"),
        (fy.P4PacketIn(b"", metadata={}), "entity is not supported, got P4PacketIn"),
        (-lpm((0x66000000, 8), 1), "table 'I.lpm_table': no such entry, got 0x66000000/0xff000000"),
        (~lpm((0x66000000, 8), 1), "no such entry"),
        (fy.P4TableEntry("keyless_table", action=fy.Action("set_keyless", value=1)), "has no key"),
        (
            fy.P4TableEntry(
                "ternary_table", match=fy.Match(), action=fy.Action("set_ternary", value=1)
            ),
            "entry needs a priority of at least 1, got 0",
        ),
        (
            fy.P4TableEntry("which_way", match=fy.Match(), action=fy.Action("left")),
            "exact key is missing, got no hdr.key.kind",
        ),
    ],
)
def test_entry_that_does_not_fit_is_refused(tables: Switch, entity: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        tables.write(entity)


def test_same_entry_twice_is_refused_and_the_rest_in_force(tables: Switch) -> None:
    tables.write(+exact(5))
    with pytest.raises(ConfigError, match=r"tables: table 'I\.lpm_table': entry exists already"):
        tables.write([+lpm((0, 4), 1), +lpm((0, 4), 2), +lpm((0, 5), 3)])
    assert lpm_value(tables, 5) == 1


def test_full_table_is_refused(tables: Switch) -> None:
    with pytest.raises(ConfigError, match=r"'I\.exact_table': table is full, got entry 101 of 100"):
        tables.write([exact(1000 + i) for i in range(101)])


def test_constant_entries_are_refused(tables: Switch) -> None:
    entry = fy.P4TableEntry(
        "constant_table",
        match=fy.Match({"hdr.key.kind": 1}),
        action=fy.Action("NoAction"),
        priority=1,
    )
    with pytest.raises(ConfigError, match="entries are constant, got a change of them"):
        tables.write(-entry)


def test_constant_default_is_refused(tables: Switch) -> None:
    default = fy.P4TableEntry("which_way", is_default_action=True, action=fy.Action("left"))
    with pytest.raises(ConfigError, match="default action is constant, got a change of it"):
        tables.write(default)


def test_table_that_is_never_applied_is_refused(tmp_path: Path) -> None:
    switch = make_switch(BY_NAME["forward"])
    text = (
        BY_NAME["forward"].p4info.read_text().replace('"Forwarding.ipv4_lpm"', '"Forwarding.gone"')
    )
    p4info = tmp_path / "other.txtpb"
    p4info.write_text(text)
    shutil.copy(switch.program.source.path, tmp_path / "forward.json")
    program = Program.load(tmp_path / "forward.json", p4info)
    other = Switch(program, switch.store, ports=2)
    with pytest.raises(ConfigError, match=r"table is never applied, got 'Forwarding\.gone'"):
        other.write(route_entities()[0])


def group(number: int, replicas: list[Any]) -> Any:
    return fy.P4MulticastGroupEntry(number, replicas=replicas)


def session(number: int, replicas: list[Any], **more: Any) -> Any:
    return fy.P4CloneSessionEntry(number, replicas=replicas, **more)


@pytest.mark.parametrize(
    ("entity", "message"),
    [
        (group(0, [1]), r"multicast group: must be in \[1, 65535\], got 0"),
        (group(70000, [1]), "got 70000"),
        (group(1, [2]), "multicast group 1: exists already, got an insert; use ~ to modify it"),
        (~group(2, [2]), "multicast group 2: does not exist, got modify of it; use [+]"),
        (-group(2, []), "does not exist, got delete of it"),
        (group(3, [PORTS + 1]), "multicast group 3: ports are 1 to 8, got 9"),
        (group(3, [(1, i) for i in range(2000)]), "at most 960 replicas, got 2000"),
        (session(0, [1]), r"clone session 0: must be in \[1, 32767\], got 0"),
        (session(1, [1]), "clone session 1: exists already"),
        (-session(5, [1]), "clone session 5: does not exist"),
        (session(5, [0]), "clone session 5: ports are 1 to 8, got 0"),
        (session(5, [(1, i) for i in range(65)]), "clone session 5: at most 64 replicas, got 65"),
    ],
)
def test_replication_that_does_not_fit_is_refused(
    stateful: Switch, entity: Any, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        stateful.write(entity)


def test_p4info_that_is_named_and_missing_is_refused_when_it_is_needed(tmp_path: Path) -> None:
    path = shutil.copy(PROGRAMS / "stateful.json", tmp_path)
    program = Program.load(path, tmp_path / "stateful.p4info.txtpb")
    store = Store()
    make_pool(store, size=4, head_bytes=128, field_count=program.field_count, lane_count=0)
    switch = Switch(program, store, ports=1)
    with pytest.raises(ConfigError, match=r"stateful\.p4info\.txtpb: no such file"):
        switch.write(group(1, [1]))


@pytest.mark.parametrize("ports", [0, 511])
def test_ports_out_of_range_are_refused(stateful: Switch, ports: int) -> None:
    with pytest.raises(ConfigError, match=rf"s9: ports must be in \[1, 510\], got {ports}"):
        Switch(stateful.program, stateful.store, ports=ports, name="s9")


def operation(op: int, index: int, value: int = 0) -> bytes:
    return bytes([op]) + index.to_bytes(2, "big") + value.to_bytes(8, "big") + bytes(7)


def test_registers_and_counters(stateful: Switch) -> None:
    stateful.process(1, operation(1, 99, 2**64 - 1))
    stateful.write_register("I.longs", 98, 5)

    ((_, data),) = stateful.process(1, operation(1, 98))
    assert int.from_bytes(data[18:26], "big") == 5
    assert stateful.read_register("I.longs", 99) == 2**64 - 1
    assert stateful.read_counter("I.seen", 1) == Count(2, 36)

    stateful.reset()
    assert stateful.read_register("I.longs", 99) == 0
    assert stateful.read_counter("I.seen", 1) == Count(0, 0)
    assert [port for port, _ in stateful.process(1, operation(6, 0)[:11] + b"\0\1" + bytes(5))]


def test_words_of_registers_are_those_of_the_store_as_it_is_now() -> None:
    """Views are kept; when the store's arrays move, the old ones hold nothing new."""
    switch = make_switch(BY_NAME["stateful"])
    first = switch.register_words("I.longs")
    assert switch.register_words("I.longs") is first
    for array in ("fields", "lanes"):
        switch.store.allocate(array, getattr(switch.store.arena, array).size)  # moves it
    switch.write_register("I.longs", 7, 5)
    assert switch.register_words("I.longs")[7].tolist() == [5]
    assert first[7].tolist() == [0]
    assert switch.program.registers["longs"] == "I.longs"


def test_lane_registers_are_read_by_name() -> None:
    switch = make_switch(BY_NAME["lanes"])
    switch.write_register("I.r3", 7, 33)
    lanes = b"".join(i.to_bytes(4, "big") for i in range(16))

    ((_, data),) = switch.process(1, bytes([2, 0, 0, 7]) + bytes(4) + lanes)

    rotated = 33 << 3 if 7 < 5 else 33  # egress rotates rows 0 to 4 only
    assert int.from_bytes(data[20:24], "big") == rotated
    switch.process(1, bytes([1, 0, 0, 8]) + bytes(4) + lanes)
    assert [switch.read_register(f"I.r{i}", 8) for i in range(16)] == list(range(16))
    switch.reset()
    assert switch.read_register("I.r15", 8) == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: s.read_register("I.long", 0), "unknown register, got 'I.long'.*did you mean"),
        (lambda s: s.read_register("I.longs", 100), "has indices 0 to 99, got 100"),
        (lambda s: s.read_register("I.longs", -1), "got -1"),
        (lambda s: s.write_register("I.nines", 0, 512), "'I.nines' has 9 bits, got 512"),
        (lambda s: s.read_counter("seen", 0), "unknown counter, got 'seen'"),
        (lambda s: s.read_counter("I.seen", 10), "counter 'I.seen' has indices 0 to 9, got 10"),
        (lambda s: s.process(9, b"x"), "stateful: ports are 1 to 8, got 9"),
        (lambda s: s.process(1, bytes(10_001)), "packet of at most 10000 bytes, got 10001"),
    ],
)
def test_wrong_calls_are_refused(stateful: Switch, call: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        call(stateful)


def test_long_packets_keep_their_payload(stateful: Switch) -> None:
    payload = bytes(i % 251 for i in range(9000))
    out = stateful.process(1, operation(6, 0)[:11] + b"\0\7" + bytes(5) + payload)
    assert [port for port, _ in out] == [4, 4, 5]
    assert all(data.endswith(payload) for _, data in out)


def test_packets_leave_no_packets_behind(stateful: Switch) -> None:
    free = free_packets(stateful.store)
    for packet in BY_NAME["stateful"].packets(100, seed=9):
        stateful.process(*packet)
    assert free_packets(stateful.store) == free


def test_random_numbers_depend_on_the_seed_alone() -> None:
    def draw() -> list[int]:
        switch = make_switch(BY_NAME["stateful"])
        out = [switch.process(1, operation(10, 0))[0][1] for _ in range(50)]
        return [int.from_bytes(data[44:46], "big") for data in out]

    numbers = draw()
    assert set(numbers) == {10, 11, 12}
    assert draw() == numbers


@cache
def forward() -> Switch:
    return make_switch(BY_NAME["forward"])


def test_time_is_in_microseconds_and_empty_packets_pass() -> None:
    assert forward().process(1, b"", now_ps=5 * PS_PER_US) == []


def test_two_switches_of_one_program_share_nothing(tables: Switch) -> None:
    other = Switch(tables.program, tables.store, ports=PORTS, name="other")
    other.write([+exact(77), +lpm((77, 32), 99)])
    tables.write([+exact(77), +lpm((77, 32), 55)])
    assert lpm_value(other, 77) == 99
    assert lpm_value(tables, 77) == 55
