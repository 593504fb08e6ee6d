"""Action profiles and selectors: every packet gets a live member's action, by hash and weight."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from program_cases import PROGRAMS, Case, make_switch

from ringleaf.errors import Code, ConfigError
from ringleaf.switches.engine.updates import (
    DELETE,
    INSERT,
    MODIFY,
    InstalledEntry,
    MemberGroup,
    MemberGroupUpdate,
    MemberUpdate,
    ProfileMember,
    TableUpdate,
    Update,
)
from ringleaf.switches.switch import Switch

CASE = Case(PROGRAMS / "externs.json", packet=lambda _: (1, b""))
SPREAD, ONE = 3, 4  # values of `op`
SPREADER, PROFILE = "I.spreader", "I.profile"
EXACT, LPM, TERNARY = "I.spread", "I.spread_more", "I.one"


@pytest.fixture(scope="module")
def switch() -> Switch:
    return make_switch(CASE)


def action(switch: Switch, name: str, table: str) -> int:
    source = switch.program.source
    (found,) = (t for t in source.ingress.tables if t.name == table)
    return next(n for n in found.actions if source.actions[n].name == name)


def member(switch: Switch, number: int, value: int, verb: str = INSERT) -> MemberUpdate:
    return MemberUpdate(verb, SPREADER, number, action(switch, "I.choose", EXACT), (value,))


def group(number: int, members: Iterable[tuple[int, int]], verb: str = INSERT) -> MemberGroupUpdate:
    return MemberGroupUpdate(verb, SPREADER, number, tuple(members))


def row(
    index: int, to: ProfileMember | MemberGroup, verb: str = INSERT, table: str = EXACT
) -> Update:
    return TableUpdate(verb, table, InstalledEntry(((index, 0xFFFF),), 0, (), indirect=to), False)


def send(switch: Switch, op: int, index: int, flow: int = 0) -> int:
    """Return what the action wrote."""
    data = bytes([op]) + index.to_bytes(2, "big") + flow.to_bytes(4, "big") + bytes(6)
    ((_, sent),) = switch.process(1, data)
    at = 9 if op == SPREAD else 11
    return int.from_bytes(sent[at : at + 2], "big")


def clear(switch: Switch) -> None:
    for table in (EXACT, LPM, TERNARY):
        switch.apply(TableUpdate(DELETE, table, entry, False) for entry in switch.entries(table))
    for profile in (SPREADER, PROFILE):
        switch.apply(
            MemberGroupUpdate(DELETE, profile, g.group) for g in switch.member_groups(profile)
        )
        switch.apply(MemberUpdate(DELETE, profile, m.member) for m in switch.members(profile))


groups = st.dictionaries(st.integers(0, 9), st.integers(1, 5), min_size=1, max_size=6)


@given(weights=groups, order=st.permutations(range(10)))
@settings(max_examples=25, deadline=None)
def test_selector_picks_live_members_by_weight(
    switch: Switch, weights: dict[int, int], order: list[int]
) -> None:
    clear(switch)
    switch.apply(member(switch, n, 100 + n) for n in order)
    switch.apply([group(1, weights.items()), row(7, MemberGroup(1))])
    slots = switch._tables.profile(SPREADER).slots(1)
    assert Counter(slot.member for slot in slots) == Counter(weights)
    chosen = [send(switch, SPREAD, 7, flow) for flow in range(100)]
    assert set(chosen) <= {100 + n for n in weights}
    assert chosen == [send(switch, SPREAD, 7, flow) for flow in range(100)]


def crc16(data: bytes) -> int:
    """CRC-16/ARC, which v1model calls crc16."""
    crc = 0
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0xA001 if crc & 1 else 0)
    return crc


@given(flows=st.lists(st.integers(0, 2**32 - 1), max_size=50))
@settings(max_examples=10, deadline=None)
def test_selector_goes_by_the_hash_of_its_fields(switch: Switch, flows: list[int]) -> None:
    clear(switch)
    switch.apply([*(member(switch, n, n) for n in (1, 2, 3)), group(1, [(3, 2), (1, 1), (2, 1)])])
    switch.apply([row(7, MemberGroup(1))])
    slots = [1, 2, 3, 3]  # as BMv2 orders them
    for flow in flows:
        assert send(switch, SPREAD, 7, flow) == slots[crc16(flow.to_bytes(4, "big")) % 4]


def test_tables_share_members_and_follow_their_changes(switch: Switch) -> None:
    clear(switch)
    switch.apply([member(switch, 1, 11), group(4, [(1, 1)])])
    lpm = InstalledEntry(((0x0100, 0xFF00),), 0, (), indirect=MemberGroup(4))
    switch.apply([row(1, ProfileMember(1)), TableUpdate(INSERT, LPM, lpm, False)])
    assert [send(switch, SPREAD, index) for index in (1, 0x0123, 2)] == [11, 11, 0]
    switch.apply([member(switch, 1, 12, MODIFY)])
    assert [send(switch, SPREAD, index) for index in (1, 0x0123)] == [12, 12]
    flow = MemberUpdate(MODIFY, SPREADER, 1, action(switch, "I.choose_flow", EXACT), (5,))
    switch.apply([flow])
    assert [send(switch, SPREAD, index, 1000) for index in (1, 0x0123)] == [1005, 1005]
    switch.apply([group(4, [], MODIFY)])
    assert send(switch, SPREAD, 0x0123) == 0  # an empty group does nothing
    assert switch.members(SPREADER) == [MemberUpdate(INSERT, SPREADER, 1, flow.action, (5,))]
    assert switch.member_groups(SPREADER) == [group(4, [])]
    assert [entry.indirect for entry in switch.entries(LPM)] == [MemberGroup(4)]


def test_default_entry_may_be_a_group(switch: Switch) -> None:
    clear(switch)
    switch.apply([member(switch, 1, 77), group(2, [(1, 1)])])
    default = InstalledEntry((), 0, (), indirect=MemberGroup(2))
    switch.apply([TableUpdate(MODIFY, LPM, default, True)])
    assert switch.default_entry(LPM).indirect == MemberGroup(2)
    assert send(switch, SPREAD, 9) == 77
    switch.apply([TableUpdate(MODIFY, LPM, None, True)])
    assert send(switch, SPREAD, 9) == 0


def test_profile_without_selector(switch: Switch) -> None:
    clear(switch)
    number = action(switch, "I.set_single", TERNARY)
    one = MemberUpdate(INSERT, PROFILE, 3, number, (9,))
    match = InstalledEntry(((0, 0),), 0, (), precedence=1, indirect=ProfileMember(3))
    assert send(switch, ONE, 5) == 0
    switch.apply([one, TableUpdate(INSERT, TERNARY, match, False)])
    assert send(switch, ONE, 5) == 9


@pytest.mark.parametrize(
    ("make", "message", "code"),
    [
        (lambda s: member(s, 1, 5), "member 1: exists already", Code.ALREADY_EXISTS),
        (lambda s: member(s, 5, 5, MODIFY), "member 5: does not exist", Code.NOT_FOUND),
        (lambda s: member(s, 1, 5, DELETE), "member 1: is in use", Code.FAILED_PRECONDITION),
        (lambda s: member(s, 2, 5, DELETE), "member 2: is in use", Code.FAILED_PRECONDITION),
        (lambda s: group(1, [], DELETE), "group 1: is in use", Code.FAILED_PRECONDITION),
        (lambda s: group(2, [(9, 1)]), "group 2: no such member, got 9", Code.NOT_FOUND),
        (lambda s: group(2, [(1, 0)]), "weight must be at least 1", Code.INVALID_ARGUMENT),
        (lambda s: group(2, [(1, 1), (1, 1)]), "a member twice", Code.INVALID_ARGUMENT),
        (
            lambda s: MemberGroupUpdate(INSERT, SPREADER, 2, ((1, 3),), max_size=2),
            "at most 2 in all, got 3",
            Code.RESOURCE_EXHAUSTED,
        ),
        (
            lambda s: MemberGroupUpdate(INSERT, PROFILE, 2),
            "profile has no selector",
            Code.INVALID_ARGUMENT,
        ),
        (lambda s: member(s, 5, 1 << 16), "takes 16 bits", Code.INVALID_ARGUMENT),
        (lambda s: MemberUpdate(INSERT, SPREADER, 5, 99), "no table has", Code.INVALID_ARGUMENT),
        (lambda s: MemberUpdate(INSERT, "I.x", 5), "unknown action profile", Code.INVALID_ARGUMENT),
        (lambda s: row(9, ProfileMember(9)), "not in its action profile", Code.NOT_FOUND),
        (
            lambda s: TableUpdate(INSERT, EXACT, InstalledEntry(((9, 0xFFFF),), 0, ()), False),
            "must name a member or a group of its profile",
            Code.INVALID_ARGUMENT,
        ),
        (
            lambda s: row(9, ProfileMember(1), table="I.metered"),
            "must name an action",
            Code.INVALID_ARGUMENT,
        ),
    ],
)
def test_what_does_not_fit_is_refused(
    switch: Switch, make: object, message: str, code: Code
) -> None:
    clear(switch)
    switch.apply([member(switch, 1, 1), member(switch, 2, 2), group(1, [(2, 1)])])
    switch.apply([row(1, ProfileMember(1)), row(2, MemberGroup(1))])
    with pytest.raises(ConfigError, match=message) as caught:
        switch.apply([make(switch)])  # type: ignore[operator]
    assert caught.value.code == code


def test_profile_holds_as_many_as_it_says(switch: Switch) -> None:
    clear(switch)
    number = action(switch, "I.set_single", TERNARY)
    switch.apply(MemberUpdate(INSERT, PROFILE, n, number, (n,)) for n in range(16))
    with pytest.raises(ConfigError, match="profile is full, got one more than 16"):
        switch.apply([MemberUpdate(INSERT, PROFILE, 16, number, (1,))])
