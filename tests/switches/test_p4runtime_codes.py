"""Each wrong request gets the code that P4Runtime's specification says."""

from __future__ import annotations

from typing import Any

import finsy as fy
import pytest
from controller_entities import SCHEMA, Desk, encode
from finsy.p4entity import P4ValueSetMember
from finsy.proto import p4d, p4r
from p4runtime_client import DELETE, INSERT, MODIFY

from ringleaf.errors import Code
from ringleaf.switches.server.status import BatchError

FORWARD = SCHEMA.actions["forward"].id
DROP = SCHEMA.actions["drop"].id


def table(name: str, **fields: Any) -> Any:
    return p4r.Entity(table_entry=p4r.TableEntry(table_id=SCHEMA.tables[name].id, **fields))


def exact(field: int, value: bytes) -> Any:
    return p4r.FieldMatch(field_id=field, exact=p4r.FieldMatch.Exact(value=value))


def lpm(value: bytes, length: int) -> Any:
    return p4r.FieldMatch(field_id=1, lpm=p4r.FieldMatch.LPM(value=value, prefix_len=length))


def ternary(value: bytes, mask: bytes) -> Any:
    return p4r.FieldMatch(field_id=1, ternary=p4r.FieldMatch.Ternary(value=value, mask=mask))


def between(low: bytes, high: bytes) -> Any:
    return p4r.FieldMatch(field_id=2, range=p4r.FieldMatch.Range(low=low, high=high))


def call(action: int, *params: bytes) -> Any:
    values = [p4r.Action.Param(param_id=i + 1, value=value) for i, value in enumerate(params)]
    return p4r.TableAction(action=p4r.Action(action_id=action, params=values))


def destination(value: bytes = b"\1", action: Any = None, **fields: Any) -> Any:
    chosen = call(FORWARD, b"\1") if action is None else action
    return table("destinations", match=[exact(1, value)], action=chosen, **fields)


def guarded(*match: Any, priority: int = 1) -> Any:
    return table("guard", match=match, action=call(DROP), priority=priority)


def prefix(*match: Any) -> Any:
    return table("prefixes", match=match, action=call(FORWARD, b"\1"))


def source(**fields: Any) -> Any:
    match = [exact(1, b"\1"), exact(2, b"\1")]
    return table("sources", match=match, action=call(SCHEMA.actions["known"].id), **fields)


def default(name: str, **fields: Any) -> Any:
    return table(name, is_default_action=True, **fields)


def cell(kind: str, name: str, index: int, **fields: Any) -> Any:
    ids = {"counter": SCHEMA.counters, "meter": SCHEMA.meters, "register": SCHEMA.registers}
    entry = {f"{kind}_id": ids[kind][name].id, "index": p4r.Index(index=index)}
    kinds = {"counter": p4r.CounterEntry, "meter": p4r.MeterEntry, "register": p4r.RegisterEntry}
    return p4r.Entity(**{f"{kind}_entry": kinds[kind](**entry, **fields)})


def replication(entry: Any) -> Any:
    return encode(entry)


def member(number: int, profile: str = "spread", **fields: Any) -> Any:
    profile_id = SCHEMA.action_profiles[profile].id
    return p4r.Entity(
        action_profile_member=p4r.ActionProfileMember(
            action_profile_id=profile_id, member_id=number, **fields
        )
    )


def group(number: int, members: list[tuple[int, int]], **fields: Any) -> Any:
    items = [p4r.ActionProfileGroup.Member(member_id=m, weight=w) for m, w in members]
    profile_id = SCHEMA.action_profiles[fields.pop("profile", "spread")].id
    return p4r.Entity(
        action_profile_group=p4r.ActionProfileGroup(
            action_profile_id=profile_id, group_id=number, members=items, **fields
        )
    )


def one_shot(*weights: int, match: bytes = b"\7", **fields: Any) -> Any:
    actions = [
        p4r.ActionProfileAction(action=call(FORWARD, bytes([i])).action, weight=weight)
        for i, weight in enumerate(weights)
    ]
    actions_set = p4r.ActionProfileActionSet(action_profile_actions=actions, **fields)
    return table(
        "uplinks",
        match=[exact(1, match)],
        action=p4r.TableAction(action_profile_action_set=actions_set),
    )


def uses(number: int, kind: str = "member", name: str = "uplinks") -> Any:
    action = p4r.TableAction(**{f"action_profile_{kind}_id": number})
    return table(name, match=[exact(1, b"\2")], action=action)


ACTION = call(FORWARD, b"\1").action
METERED = p4r.MeterConfig(cir=1, cburst=1, pir=2, pburst=2)
INVALID, RANGE, MISSING = Code.INVALID_ARGUMENT, Code.OUT_OF_RANGE, Code.NOT_FOUND
DENIED, UNKNOWN_TO_US = Code.PERMISSION_DENIED, Code.UNIMPLEMENTED
FULL, USED, THERE = Code.RESOURCE_EXHAUSTED, Code.FAILED_PRECONDITION, Code.ALREADY_EXISTS

# What is written first, what then is refused, and with what code.
CASES: list[tuple[list[Any], int, Any, Code]] = [
    # Entities and ids.
    ([], INSERT, p4r.Entity(), INVALID),
    ([], 0, destination(), INVALID),
    ([], INSERT, p4r.Entity(extern_entry=p4r.ExternEntry()), UNKNOWN_TO_US),
    ([], INSERT, p4r.Entity(table_entry=p4r.TableEntry(table_id=1)), INVALID),
    ([], INSERT, p4r.Entity(packet_replication_engine_entry={}), INVALID),
    # Matches (9.1.1).
    ([], INSERT, table("destinations", action=call(DROP)), INVALID),
    ([], INSERT, table("destinations", match=[exact(9, b"\1")], action=call(DROP)), INVALID),
    ([], INSERT, table("destinations", match=[exact(1, b"\1")] * 2, action=call(DROP)), INVALID),
    ([], INSERT, table("destinations", match=[lpm(b"\1", 48)], action=call(DROP)), INVALID),
    ([], INSERT, destination(b""), RANGE),
    ([], INSERT, destination(b"\1" + bytes(6)), RANGE),
    ([destination(b"\0\0\1")], INSERT, destination(b"\1"), THERE),
    ([], INSERT, destination(priority=1), INVALID),
    ([], INSERT, prefix(lpm(b"\1", 8)), INVALID),
    ([], INSERT, prefix(lpm(b"\1", 49)), INVALID),
    ([], INSERT, prefix(lpm(b"\0", 0)), INVALID),
    ([prefix()], INSERT, prefix(), THERE),
    ([], INSERT, guarded(ternary(b"\3", b"\1")), INVALID),
    ([], INSERT, guarded(ternary(b"\0", b"\0")), INVALID),
    ([], INSERT, guarded(between(b"\2", b"\1")), INVALID),
    ([], INSERT, guarded(between(b"\0", b"\xff\xff")), INVALID),
    ([], INSERT, guarded(between(b"\0", b"\1\0\0")), RANGE),
    ([], INSERT, guarded(priority=0), INVALID),
    ([], INSERT, guarded(priority=-1), INVALID),
    ([guarded(priority=1)], DELETE, guarded(priority=2), MISSING),
    # Actions (9.1.2).
    ([], INSERT, table("destinations", match=[exact(1, b"\1")]), INVALID),
    ([], INSERT, destination(action=p4r.TableAction()), INVALID),
    ([], INSERT, destination(action=call(SCHEMA.actions["known"].id)), INVALID),
    ([], INSERT, destination(action=call(FORWARD)), INVALID),
    ([], INSERT, destination(action=call(FORWARD, b"\1", b"\1")), INVALID),
    ([], INSERT, destination(action=call(FORWARD, b"\2\0")), RANGE),
    ([], INSERT, destination(action=p4r.TableAction(action_profile_member_id=1)), INVALID),
    ([], INSERT, source(meter_counter_data={}), UNKNOWN_TO_US),
    ([], INSERT, destination(counter_data={}), INVALID),
    ([], INSERT, destination(meter_config={}), INVALID),
    ([], INSERT, destination(idle_timeout_ns=1), INVALID),
    ([], INSERT, source(idle_timeout_ns=-1), INVALID),
    ([], INSERT, destination(is_const=True), INVALID),
    ([], INSERT, source(counter_data=p4r.CounterData(packet_count=-1)), INVALID),
    ([], INSERT, source(meter_config=p4r.MeterConfig(cir=-1)), INVALID),
    ([], INSERT, source(meter_config=p4r.MeterConfig(eburst=1)), INVALID),
    ([], MODIFY, destination(), MISSING),
    ([], DELETE, destination(), MISSING),
    ([destination(bytes([i])) for i in range(8)], INSERT, destination(b"\x20"), FULL),
    (
        [],
        INSERT,
        table(
            "sources",
            match=[exact(1, b"\1"), exact(2, b"\1")],
            action=call(SCHEMA.actions["learn"].id),
        ),
        DENIED,
    ),
    # Default and constant entries (9.1.3, 9.1.4).
    ([], INSERT, default("destinations", action=call(DROP)), INVALID),
    ([], DELETE, default("destinations"), INVALID),
    ([], MODIFY, default("destinations", action=call(DROP), priority=1), INVALID),
    ([], MODIFY, default("destinations", match=[exact(1, b"\1")]), INVALID),
    ([], MODIFY, default("sources", idle_timeout_ns=1), INVALID),
    ([], MODIFY, default("guard", action=call(DROP)), DENIED),
    ([], MODIFY, default("guard"), DENIED),
    ([], MODIFY, default("prefixes", action=call(DROP)), DENIED),
    ([], MODIFY, default("uplinks", action=call(DROP)), DENIED),
    ([], MODIFY, default("sources", counter_data={}), UNKNOWN_TO_US),
    (
        [],
        INSERT,
        table("fixed", match=[ternary(b"\1", b"\1")], action=call(DROP), priority=9),
        DENIED,
    ),
    ([], DELETE, table("fixed", match=[ternary(b"\x12\x34", b"\xff\xff")], priority=2), DENIED),
    # Direct resources (9.1.8).
    ([], MODIFY, p4r.Entity(direct_counter_entry={}), INVALID),
    (
        [source()],
        INSERT,
        p4r.Entity(direct_counter_entry={"table_entry": source().table_entry}),
        INVALID,
    ),
    ([], MODIFY, p4r.Entity(direct_counter_entry={"table_entry": source().table_entry}), MISSING),
    ([], MODIFY, p4r.Entity(direct_meter_entry={"table_entry": source().table_entry}), MISSING),
    (
        [destination()],
        MODIFY,
        p4r.Entity(direct_meter_entry={"table_entry": destination().table_entry}),
        INVALID,
    ),
    # Arrays (9.3, 9.4, 9.7).
    ([], INSERT, cell("counter", "arrivals", 1), INVALID),
    ([], MODIFY, cell("counter", "arrivals", -1), INVALID),
    ([], MODIFY, cell("counter", "arrivals", 8), RANGE),
    ([], DELETE, cell("meter", "arrival_rate", 1), INVALID),
    ([], MODIFY, cell("meter", "arrival_rate", 8), RANGE),
    ([], MODIFY, cell("meter", "arrival_rate", 1, counter_data={}), UNKNOWN_TO_US),
    ([], INSERT, cell("register", "last_source", 1), INVALID),
    ([], MODIFY, cell("register", "last_source", 8, data=p4d.P4Data(bitstring=b"\1")), RANGE),
    ([], MODIFY, cell("register", "last_source", 1), INVALID),
    ([], MODIFY, cell("register", "last_source", 1, data=p4d.P4Data(bool=True)), INVALID),
    ([], MODIFY, cell("register", "last_source", 1, data=p4d.P4Data(bitstring=b"")), RANGE),
    (
        [],
        MODIFY,
        cell("register", "last_source", 1, data=p4d.P4Data(bitstring=b"\1" + bytes(6))),
        RANGE,
    ),
    # Replication (9.5).
    ([], INSERT, replication(fy.P4MulticastGroupEntry(0, replicas=[1])), INVALID),
    ([], INSERT, replication(fy.P4MulticastGroupEntry(1, replicas=[(1, 1), (1, 1)])), INVALID),
    ([], INSERT, replication(fy.P4MulticastGroupEntry(1, replicas=[400])), INVALID),
    ([], INSERT, replication(fy.P4MulticastGroupEntry(1, replicas=[(1, 70000)])), INVALID),
    ([], DELETE, replication(fy.P4MulticastGroupEntry(1)), MISSING),
    ([], INSERT, replication(fy.P4CloneSessionEntry(0, replicas=[1])), INVALID),
    ([], MODIFY, replication(fy.P4CloneSessionEntry(1, replicas=[1])), MISSING),
    (
        [],
        INSERT,
        replication(fy.P4CloneSessionEntry(1, replicas=[1], packet_length_bytes=-1)),
        INVALID,
    ),
    # Value sets and digests (9.6, 9.8).
    ([], INSERT, encode(fy.P4ValueSetEntry("watched", members=[])), INVALID),
    (
        [],
        MODIFY,
        encode(fy.P4ValueSetEntry("watched", members=[P4ValueSetMember(i) for i in range(5)])),
        FULL,
    ),
    ([], MODIFY, encode(fy.P4ValueSetEntry("watched", members=[P4ValueSetMember(1)] * 2)), THERE),
    ([], MODIFY, encode(fy.P4DigestEntry("learn_t")), MISSING),
    ([encode(fy.P4DigestEntry("learn_t"))], INSERT, encode(fy.P4DigestEntry("learn_t")), THERE),
    ([], INSERT, encode(fy.P4DigestEntry("learn_t", max_list_size=-1)), INVALID),
    # Action profiles (9.2).
    ([], INSERT, member(0, action=ACTION), INVALID),
    ([], INSERT, member(1), INVALID),
    ([], DELETE, member(1), MISSING),
    ([member(1, action=ACTION)], INSERT, member(1, action=ACTION), THERE),
    ([member(i + 1, "plain", action=ACTION) for i in range(16)], INSERT,
     member(17, "plain", action=ACTION), FULL),
    ([], INSERT, group(1, [], profile="plain"), INVALID),
    ([], INSERT, group(1, [(1, 1)]), MISSING),
    ([member(1, action=ACTION)], INSERT, group(1, [(1, 0)]), INVALID),
    ([member(1, action=ACTION)], INSERT, group(1, [(1, 1), (1, 1)]), INVALID),
    ([member(1, action=ACTION)], INSERT, group(0, [(1, 1)]), INVALID),
    ([group(1, [], max_size=5)], MODIFY, group(1, [], max_size=6), INVALID),
    ([], INSERT, uses(1), MISSING),
    ([], INSERT, uses(1, "group"), MISSING),
    ([], INSERT, uses(1, "group", "services"), INVALID),
    ([member(1, action=ACTION), uses(1)], DELETE, member(1), USED),
    ([member(1, action=ACTION), group(1, [(1, 1)])], DELETE, member(1), USED),
    ([group(1, []), uses(1, "group")], DELETE, group(1, []), USED),
    ([], INSERT, table("uplinks", match=[exact(1, b"\1")], action=call(DROP)), INVALID),
    # One-shots (9.2.3).
    ([], INSERT, one_shot(1, 0), INVALID),
    ([one_shot(1, 1)], INSERT, one_shot(1), THERE),
    ([one_shot(1, 1)], INSERT, member(1, action=ACTION), INVALID),
    ([one_shot(1, 1)], INSERT, uses(1), INVALID),
    ([member(1, action=ACTION)], INSERT, one_shot(1), INVALID),
    ([], MODIFY, one_shot(1, 2), MISSING),
    ([], INSERT, one_shot(1, action_selection_mode="RANDOM"), UNKNOWN_TO_US),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(CASES)))
def test_wrong_updates_get_their_codes(number: int) -> None:
    first, kind, entity, code = CASES[number]
    desk = Desk()
    if first:
        desk.write(*((INSERT, item) for item in first))
    before = desk.state()

    with pytest.raises(BatchError) as caught:
        desk.write((kind, entity))

    (error,) = caught.value.errors
    assert error is not None
    assert (error.code, str(error)) == (code, str(error))
    assert desk.state() == before


def test_a_batch_goes_on_after_an_error() -> None:
    desk = Desk()
    with pytest.raises(BatchError) as caught:
        desk.write((INSERT, destination(b"\1")), (DELETE, destination(b"\2")), (INSERT, prefix()))
    assert [error.code if error else 0 for error in caught.value.errors] == [0, MISSING, 0]
    assert desk.read(destination(b"\1", p4r.TableAction())) == [destination(b"\1")]


READS: list[tuple[Any, Code]] = [
    (p4r.Entity(), INVALID),
    (p4r.Entity(extern_entry={}), UNKNOWN_TO_US),
    (p4r.Entity(table_entry=p4r.TableEntry(table_id=5)), INVALID),
    (p4r.Entity(table_entry=p4r.TableEntry(priority=5)), INVALID),
    (p4r.Entity(counter_entry=p4r.CounterEntry(counter_id=5)), INVALID),
    (cell("counter", "arrivals", 9), RANGE),
    (cell("register", "last_source", -1), INVALID),
    (p4r.Entity(direct_counter_entry={"table_entry": source().table_entry}), MISSING),
    (member(7), MISSING),
    (group(7, []), MISSING),
    (replication(fy.P4MulticastGroupEntry(7)), MISSING),
    (replication(fy.P4CloneSessionEntry(7)), MISSING),
    (encode(fy.P4DigestEntry("learn_t")), MISSING),
    (table("destinations", time_since_last_hit={}), INVALID),
    (table("destinations", match=[exact(1, b"")]), RANGE),
]


@pytest.mark.parametrize("number", range(len(READS)))
def test_wrong_reads_get_their_codes(number: int) -> None:
    entity, code = READS[number]
    with pytest.raises(BatchError) as caught:
        Desk().read(entity)
    (error,) = caught.value.errors
    assert error is not None
    assert error.code == code
