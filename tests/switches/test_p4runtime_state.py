"""What is written is read back, and what is refused changes nothing."""

from __future__ import annotations

import random
from typing import Any

from controller_entities import INSERTED, MODIFIED, Desk, encode, key_of
from finsy.proto import p4r
from hypothesis import given, settings
from hypothesis import strategies as st
from malformed import spoil
from p4runtime_client import DELETE, INSERT, MODIFY, sorted_messages

from ringleaf.errors import Code
from ringleaf.switches.server.status import BatchError

CANONICAL = {
    Code.INVALID_ARGUMENT, Code.NOT_FOUND, Code.ALREADY_EXISTS, Code.PERMISSION_DENIED,
    Code.RESOURCE_EXHAUSTED, Code.FAILED_PRECONDITION, Code.OUT_OF_RANGE, Code.UNIMPLEMENTED,
}  # fmt: skip
ROOM = 8  # entries in the table of destinations


class Model:
    """What should be there, by key."""

    def __init__(self, state: list[Any]) -> None:
        self.entities = {key_of(entity): entity for entity in state}

    def apply(self, kind: int, entity: Any) -> int:
        """Return the code of an update."""
        key = key_of(entity)
        if kind == INSERT:
            if key in self.entities:
                return Code.ALREADY_EXISTS
            if self._is_full(entity):
                return Code.RESOURCE_EXHAUSTED
        elif key not in self.entities:
            return Code.NOT_FOUND
        if kind == DELETE:
            del self.entities[key]
        else:
            self.entities[key] = self._after(key, kind, entity)
        return 0

    def _is_full(self, entity: Any) -> bool:
        table = entity.table_entry.table_id
        there = [e for e in self.entities.values() if e.table_entry.table_id == table]
        entries = [e for e in there if not e.table_entry.is_default_action]
        names = [e for e in entries if table == DESTINATIONS]
        return len(names) >= ROOM

    def _after(self, key: tuple[object, ...], kind: int, entity: Any) -> Any:
        return entity


DESTINATIONS = encode(INSERTED[1](random.Random(0))).table_entry.table_id


def codes_of(desk: Desk, updates: list[tuple[int, Any]]) -> list[int]:
    try:
        desk.write(*updates)
    except BatchError as error:
        return [item.code if item else 0 for item in error.errors]
    return [0] * len(updates)


def random_update(rng: random.Random) -> tuple[int, Any]:
    if rng.random() < 0.3:
        return MODIFY, encode(rng.choice(MODIFIED)(rng))
    kind = rng.choice([INSERT, INSERT, MODIFY, DELETE])
    return kind, encode(rng.choice(INSERTED)(rng))


def comparable(state: list[Any]) -> list[bytes]:
    """Leave out direct resources, which are read with their entries, too."""
    kept = [e for e in state if not e.WhichOneof("entity").startswith("direct_")]
    return sorted_messages(kept)


@given(st.integers(0, 2**32), st.lists(st.integers(1, 12), min_size=1, max_size=8))
def test_what_is_written_is_read(seed: int, batches: list[int]) -> None:
    rng = random.Random(seed)
    desk = Desk()
    model = Model([e for e in desk.state() if not e.WhichOneof("entity").startswith("direct_")])
    for size in batches:
        updates = [random_update(rng) for _ in range(size)]
        expected = [model.apply(kind, entity) for kind, entity in updates]
        assert codes_of(desk, updates) == expected
        assert comparable(desk.state()) == sorted_messages(list(model.entities.values()))


@given(st.integers(0, 2**32))
def test_what_is_malformed_changes_nothing(seed: int) -> None:
    rng = random.Random(seed)
    desk = Desk()
    codes_of(desk, [random_update(rng) for _ in range(20)])
    for _ in range(20):
        before = desk.state()
        kind, entity = random_update(rng)
        spoil(entity, rng)
        (code,) = codes_of(desk, [(rng.choice([kind, kind, 0, 7]), entity)])
        assert code in CANONICAL | {0}
        if code:
            assert sorted_messages(desk.state()) == sorted_messages(before)


@settings(max_examples=200)
@given(st.integers(0, 2**32))
def test_malformed_reads_get_codes(seed: int) -> None:
    rng = random.Random(seed)
    desk = Desk()
    codes_of(desk, [random_update(rng) for _ in range(5)])
    before = sorted_messages(desk.state())
    entity = random_update(rng)[1]
    spoil(entity, rng)
    try:
        desk.read(entity, p4r.Entity())
    except BatchError as error:
        first, second = error.errors
        assert first is None or first.code in CANONICAL
        assert second is not None
        assert second.code is Code.INVALID_ARGUMENT
    assert sorted_messages(desk.state()) == before
