"""Data of a packet lands the same way wherever in the packet it lies."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rc_agent import Address

from ringleaf.core.arena import Arena, Store
from ringleaf.core.packets import (
    HEAD_LEN,
    PAYLOAD_AT,
    PAYLOAD_LEN,
    allocate_packet,
    make_pool,
    open_packet,
)
from ringleaf.hosts.rc.landing import (
    CHOOSE,
    COPY,
    FLOAT32,
    INT32,
    LAND,
    SHIFT,
    land_packet,
)
from ringleaf.hosts.rc.wire import HEAD_BYTES

TARGET, PAYLOAD, SIZE = 64, 512, 256
KINDS = {COPY: np.int32, FLOAT32: np.float32, INT32: np.int32}


def _received(before: bytes, data: bytes, in_head: int, how: int) -> bytes:
    """Let a packet land whose data begins in the head; return the memory around the target."""
    store = Store(memory_bytes=4096)
    make_pool(store, size=1, head_bytes=HEAD_BYTES + SIZE, field_count=8, lane_count=16)
    arena: Arena = store.arena
    arena.memory[TARGET - 8 : TARGET - 8 + len(before)] = np.frombuffer(before, np.uint8)
    arena.memory[PAYLOAD : PAYLOAD + len(data) - in_head] = np.frombuffer(data[in_head:], np.uint8)
    view = open_packet(arena, allocate_packet(arena))
    view.head[HEAD_BYTES : HEAD_BYTES + in_head] = np.frombuffer(data[:in_head], np.uint8)
    view.row[HEAD_LEN] = HEAD_BYTES + in_head
    view.row[PAYLOAD_AT], view.row[PAYLOAD_LEN] = PAYLOAD, len(data) - in_head
    land_packet(arena, view, HEAD_BYTES, how, TARGET, len(data))
    return arena.memory[TARGET - 8 : TARGET - 8 + len(before)].tobytes()


@pytest.mark.parametrize("how", [COPY, FLOAT32, INT32])
@given(st.data())
def test_additions_and_copies(how: int, data: st.DataObject) -> None:
    """NumPy adds the same numbers; eight bytes on either side stay as they are."""
    count = data.draw(st.integers(0, 16))
    numbers = st.lists(st.integers(-(2**31), 2**31 - 1), min_size=count, max_size=count)
    old, new = (np.array(data.draw(numbers), np.int32).astype(KINDS[how]) for _ in range(2))
    in_head = data.draw(st.integers(0, 4 * count))
    before = b"beforeXX" + old.tobytes() + b"XXbehind"
    with np.errstate(over="ignore"):
        expected = new if how == COPY else old + new
    assert _received(before, new.tobytes(), in_head, how) == (
        b"beforeXX" + expected.tobytes() + b"XXbehind"
    )


def test_data_stays_where_it_is_until_it_comes_from_elsewhere(plain_address: Address) -> None:
    """Two packets of 8 bytes, the second with its data in other memory; then one lands as usual."""
    store = Store(memory_bytes=4096)
    make_pool(store, size=1, head_bytes=HEAD_BYTES + SIZE, field_count=8, lane_count=16)
    arena: Arena = store.arena
    claim = store.allocate("words", SHIFT + 1)
    told: list[tuple[int, ...]] = []

    def bring(arena: Arena, at: int, what: int, now_ps: int) -> int:
        told.append((at, what, now_ps))
        arena.words[claim + SHIFT] = 0
        return COPY

    arena.words[claim + CHOOSE], arena.words[claim + SHIFT] = plain_address(bring), PAYLOAD - TARGET
    view = open_packet(arena, allocate_packet(arena))
    view.row[HEAD_LEN], view.row[PAYLOAD_LEN] = HEAD_BYTES, 8
    arena.memory[TARGET : TARGET + 24] = 0
    arena.memory[PAYLOAD : PAYLOAD + 24] = np.arange(1, 25)
    seen = []
    for number, payload in enumerate((PAYLOAD, PAYLOAD + 1, PAYLOAD + 16)):
        view.row[PAYLOAD_AT] = payload
        land_packet(arena, view, HEAD_BYTES, claim, TARGET + 8 * number, 8)
        seen.append(arena.memory[TARGET : TARGET + 24].tolist())
    nothing = 8 * [0]
    assert told == [(claim, LAND, 0)]
    assert seen == [
        3 * nothing,
        nothing + list(range(2, 10)) + nothing,
        nothing + list(range(2, 10)) + list(range(17, 25)),
    ]
