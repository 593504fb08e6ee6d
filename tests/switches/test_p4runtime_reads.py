"""What a read selects, and that all of a device's state can be carried over."""

from __future__ import annotations

import random
from contextlib import suppress
from typing import Any

import finsy as fy
import pytest
from controller_entities import (
    INSERTED,
    MODIFIED,
    PATH,
    SCHEMA,
    Desk,
    encode,
)  # fmt: skip
from finsy.proto import p4r
from p4runtime_client import INSERT, MODIFY, sorted_messages

from ringleaf.switches.server.status import BatchError

DROP = fy.Action("drop")
WITH_RESOURCES = fy.P4TableEntry(
    "sources",
    counter_data=fy.P4CounterData(),
    meter_config=fy.P4MeterConfig(cir=0, cburst=0, pir=0, pburst=0),
)


def guard(kind: tuple[int, int], priority: int, **fields: Any) -> Any:
    match = fy.Match({"type": kind})
    return fy.P4TableEntry("guard", match=match, action=DROP, priority=priority, **fields)


ENTRIES = {
    "a": guard((1, 2), 1, metadata=b"x"),
    "b": guard((1, 2), 2, controller_metadata=8),
    "c": guard((3, 4), 2, metadata=b"x"),
    "anything": fy.P4TableEntry("guard", action=fy.Action("NoAction"), priority=3),
    "other table": fy.P4TableEntry("prefixes", action=DROP),
}


@pytest.fixture
def desk() -> Desk:
    desk = Desk()
    desk.write(*((INSERT, encode(entry)) for entry in ENTRIES.values()))
    return desk


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        (fy.P4TableEntry("guard"), "a b c anything"),
        (fy.P4TableEntry("prefixes"), "other table"),
        (fy.P4TableEntry("guard", priority=2), "b c"),
        (fy.P4TableEntry("guard", match=fy.Match({"type": (1, 2)})), "a b"),
        (fy.P4TableEntry("guard", match=fy.Match({"type": (1, 2)}), priority=2), "b"),
        (fy.P4TableEntry("guard", match=fy.Match({"type": (1, 3)})), ""),
        (fy.P4TableEntry("guard", metadata=b"x"), "a c"),
        (fy.P4TableEntry("guard", controller_metadata=8), "b"),
        (fy.P4TableEntry("guard", metadata=b"y"), ""),
    ],
)
def test_reads_are_filtered(desk: Desk, asked: Any, found: str) -> None:
    expected = [encode(entry) for name, entry in ENTRIES.items() if name in found]
    if not found:
        expected = []
    expected = [e for e in expected if e.table_entry.table_id == encode(asked).table_entry.table_id]
    assert sorted_messages(desk.read(encode(asked))) == sorted_messages(expected)


def test_reads_are_filtered_by_action(desk: Desk) -> None:
    asked = encode(fy.P4TableEntry("guard"))
    asked.table_entry.action.action.action_id = SCHEMA.actions["NoAction"].id
    assert desk.read(asked) == [encode(ENTRIES["anything"])]


def test_a_wildcard_has_constant_entries_too_with_their_order_as_priority(desk: Desk) -> None:
    found = desk.read(p4r.Entity(table_entry=p4r.TableEntry()))
    fixed = [e.table_entry for e in found if e.table_entry.is_const]
    assert len(found) == len(ENTRIES) + len(fixed)
    pairs = [(e.priority, e.match[0].ternary.value) for e in fixed]
    assert pairs == [
        (2, b"\x12\x34"),
        (1, b"\x90\0"),
    ]


def test_direct_resources_are_read_if_asked_for(desk: Desk) -> None:
    desk.write((INSERT, encode(source())))
    (plain,) = desk.read(encode(fy.P4TableEntry("sources")))
    assert not plain.table_entry.HasField("counter_data")
    assert desk.read(encode(WITH_RESOURCES)) == [encode(source())]


def source() -> Any:
    return fy.P4TableEntry(
        "sources",
        match=fy.Match({"src": 1, "ingress_port": 1}),
        action=fy.Action("known"),
        counter_data=fy.P4CounterData(packet_count=3, byte_count=99),
        meter_config=fy.P4MeterConfig(cir=1, cburst=2, pir=3, pburst=4),
    )


def test_a_modified_entry_keeps_what_is_not_said(desk: Desk) -> None:
    desk.write((INSERT, encode(source())))
    change = encode(source())
    change.table_entry.ClearField("action")
    change.table_entry.ClearField("counter_data")
    change.table_entry.ClearField("meter_config")
    change.table_entry.metadata = b"new"
    desk.write((MODIFY, change))
    (found,) = desk.read(encode(WITH_RESOURCES))
    expected = encode(source()).table_entry
    expected.ClearField("meter_config")  # unset, it is green again
    expected.metadata = b"new"
    assert found.table_entry == expected


def test_arrays_are_read_by_cell_by_array_and_all(desk: Desk) -> None:
    data = fy.P4CounterData(packet_count=4)
    desk.write((MODIFY, encode(fy.P4CounterEntry("arrivals", index=3, data=data))))
    (cell,) = desk.read(encode(fy.P4CounterEntry("arrivals", index=3)))
    cells = desk.read(encode(fy.P4CounterEntry("arrivals")))
    assert cells[3] == cell
    assert len(cells) == 8
    assert desk.read(encode(fy.P4CounterEntry())) == cells
    desk.write((MODIFY, encode(fy.P4CounterEntry("arrivals", data=data))))
    counts = [c.counter_entry.data for c in desk.read(encode(fy.P4CounterEntry()))]
    assert [count.packet_count for count in counts] == [4] * 8


@pytest.mark.parametrize("seed", range(5))
def test_state_is_carried_over_to_the_next_pipeline(seed: int) -> None:
    rng = random.Random(seed)
    desk = Desk()
    for _ in range(60):
        insert = rng.random() < 0.7
        entity = encode(rng.choice(INSERTED if insert else MODIFIED)(rng))
        with suppress(BatchError):  # it may be there already
            desk.write((INSERT if insert else MODIFY, entity))
    before = desk.state()
    text = PATH.read_bytes()
    config = p4r.ForwardingPipelineConfig(p4info=SCHEMA.p4info, p4_device_config=text)
    old = desk.device.switch
    desk.device.pipelines.set(p4r.SetForwardingPipelineConfigRequest.RECONCILE_AND_COMMIT, config)
    assert desk.device.switch is not old
    assert sorted_messages(desk.state()) == sorted_messages(before)
