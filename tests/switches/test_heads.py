"""Bytes pulled from payloads, moved, cut and summed; fields and lanes read and written."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from draws import ones_sum
from hypothesis import given
from hypothesis import strategies as st
from program_cases import PROGRAMS

from ringleaf.core import native_types as types
from ringleaf.core import views
from ringleaf.core.arena import Store
from ringleaf.core.compiled import compiled
from ringleaf.core.packets import (
    HEAD_LEN,
    PAYLOAD_AT,
    PAYLOAD_LEN,
    TAIL_LEN,
    make_pool,
    open_packet,
    read_packet,
    write_packet,
)
from ringleaf.core.views import swap_items
from ringleaf.switches.engine import heads
from ringleaf.switches.engine.arithmetic import fold16
from ringleaf.switches.generate.bits import lanes_call, read_bits, write_bits
from ringleaf.switches.generate.code import FunctionCode
from ringleaf.switches.generate.state import StateLayout
from ringleaf.switches.generate.storage import LaneRun, Storage
from ringleaf.switches.generate.text import ModuleConstants
from ringleaf.switches.json.program import load_source

HEAD_ROOM = 64


def make_packet(head: bytes, payload: bytes = b"", tail: int = 0) -> tuple[Store, int]:
    store = Store()
    make_pool(store, size=4, head_bytes=HEAD_ROOM, field_count=8, lane_count=16)
    at = store.register_memory(4096)
    store.arena.memory[at : at + len(payload)] = np.frombuffer(payload, np.uint8)
    packet = write_packet(store.arena, head)
    row = open_packet(store.arena, packet).row
    row[PAYLOAD_AT], row[PAYLOAD_LEN], row[TAIL_LEN] = at, len(payload), tail
    return store, packet


pieces = st.tuples(st.binary(max_size=20), st.binary(max_size=20), st.integers(0, 8))


@given(pieces, st.integers(0, 60))
def test_pulling_moves_bytes_and_changes_none(piece: tuple[bytes, bytes, int], wanted: int) -> None:
    head, payload, tail = piece
    store, packet = make_packet(head, payload, tail)
    before = read_packet(store.arena, packet)

    view = open_packet(store.arena, packet)
    have = heads.pull(store.arena, view.row, view.head, max(wanted, len(head)))

    assert read_packet(store.arena, packet) == before
    assert have == view.row[HEAD_LEN]
    assert have == max(len(head), min(wanted, len(before)))


def test_pulling_beyond_the_room_is_a_bug() -> None:
    store, packet = make_packet(b"x", b"y" * 100)
    view = open_packet(store.arena, packet)
    with pytest.raises(AssertionError, match="heads are shorter than the program's headers"):
        heads.pull(store.arena, view.row, view.head, HEAD_ROOM + 1)


@given(st.binary(min_size=10, max_size=30), st.integers(0, 10), st.integers(0, 30))
def test_rest_moves_either_way(data: bytes, old: int, new: int) -> None:
    head = np.zeros(HEAD_ROOM, np.uint8)
    head[: len(data)] = np.frombuffer(data, np.uint8)

    length = heads.move_rest(head, len(data), old, new)

    assert length == new + len(data) - old
    assert head[new:length].tobytes() == data[old:]


def test_rest_without_room_is_a_bug() -> None:
    head = np.zeros(HEAD_ROOM, np.uint8)
    with pytest.raises(AssertionError, match="no room in the head"):
        heads.move_rest(head, 60, 10, 20)


@given(pieces, st.integers(0, 60))
def test_cutting_keeps_the_first_bytes(piece: tuple[bytes, bytes, int], length: int) -> None:
    store, packet = make_packet(*piece)
    before = read_packet(store.arena, packet)
    heads.cut(open_packet(store.arena, packet).row, length)
    assert read_packet(store.arena, packet) == before[:length]


@given(pieces, st.integers(0, 20), st.integers(-1, 60), st.integers(0, 40))
def test_sum_continues_an_input(
    piece: tuple[bytes, bytes, int], start: int, most: int, bits: int
) -> None:
    head, payload, _ = piece
    start = min(start, len(head))
    store, packet = make_packet(head, payload)
    before = bytes(-(-bits // 8))

    view = open_packet(store.arena, packet)
    total = heads.sum_from(store.arena, view.row, view.head, start, most, bits)

    rest = head[start:] + payload
    assert fold16(np.uint64(total)) == ones_sum(before + (rest if most < 0 else rest[:most]))


def copy_lanes(verb: str, lanes: Any, head: Any, start: int, width: int) -> None:
    """Run what is generated for a run of lanes that lies at byte `start` of a head."""
    run_of = LaneRun("h", 0, lanes.size, width, 0)
    code = make_code()
    code.add(lanes_call(verb, run_of, str(start)))
    run(code, lanes=lanes, head=head)


@pytest.mark.parametrize("width", [8, 16, 32])
@given(data=st.data(), start=st.integers(0, 5))
def test_lanes_are_read_and_written_as_bytes(width: int, data: st.DataObject, start: int) -> None:
    values = data.draw(st.lists(st.integers(0, (1 << width) - 1), min_size=1, max_size=12))
    wire = b"".join(value.to_bytes(width // 8, "big") for value in values)
    head = np.full(HEAD_ROOM, 0xEE, np.uint8)

    copy_lanes("write", np.array(values, np.uint32), head, start, width)
    again = np.zeros(len(values), np.uint32)
    copy_lanes("read", again, head, start, width)

    assert head.tobytes() == b"\xee" * start + wire + b"\xee" * (HEAD_ROOM - start - len(wire))
    assert again.tolist() == values


@compiled(
    types.void(
        types.Array(types.uint32, 1, "C"), types.Array(types.uint8, 1, "C"), *[types.int64] * 2
    )
)
def swap_both_ways(lanes: Any, head: Any, start: int, count: int) -> None:
    swap_items(lanes, 0, head, start, count)
    swap_items(head, start + 1, lanes, 0, count)


@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 47, 64])
@pytest.mark.parametrize("start", [0, 3])
def test_compiled_swaps_do_as_plain_ones(count: int, start: int) -> None:
    """Whole vectors and what is left of them, at odd places."""
    data = np.random.default_rng(1).integers(0, 256, 300, np.uint8)
    lanes = np.zeros(64, np.uint32)
    head = data.copy()
    swap_both_ways(lanes, head, start, count)

    assert (lanes[:count] == data[start : start + 4 * count].view(">u4")).all()
    assert not lanes[count:].any()
    data[start + 1 : start + 1 + 4 * count] = data[start : start + 4 * count].copy()
    assert (head == data).all()


def make_code() -> FunctionCode:
    source = load_source(PROGRAMS / "headers.json")
    return FunctionCode(source, Storage(source), StateLayout(source), ModuleConstants(), {})


def run(code: FunctionCode, expression: str = "None", **names: Any) -> Any:
    """Execute what was written, and return an expression's value."""
    names |= {"np": np, "U": np.uint64} | vars(heads) | vars(views)
    exec("\n".join(code.constants.lines()), names)
    exec("\n".join(line.strip() for line in code.lines.lines), names)
    with np.errstate(over="ignore"):
        return eval(expression, names)


@given(st.integers(0, 40), st.integers(1, 150), st.binary(min_size=26, max_size=26), st.data())
def test_fields_of_any_width_anywhere(
    offset: int, width: int, data: bytes, draw: st.DataObject
) -> None:
    """Written bits are read back, and all other bits stay as they were."""
    value = draw.draw(st.integers(0, (1 << width) - 1))
    words = tuple(f"w{i}" for i in range(-(-width // 64)))
    values: dict[str, Any] = {
        word: np.uint64(value >> 64 * i & 2**64 - 1) for i, word in enumerate(words)
    }
    head = np.frombuffer(data, np.uint8).copy()
    spare = 8 * len(data) - offset - width
    mask = ((1 << width) - 1) << spare
    before = int.from_bytes(data, "big")

    code = make_code()
    found = [run(code, word, head=head) for word in read_bits(code, "0", offset, width)]
    assert sum(int(word) << 64 * i for i, word in enumerate(found)) == (before & mask) >> spare

    code = make_code()
    write_bits(code, "0", offset, width, words)
    run(code, head=head, **values)
    assert int.from_bytes(head.tobytes(), "big") == before & ~mask | value << spare


def test_place_may_be_a_variable() -> None:
    code = make_code()
    write_bits(code, "place", 4, 16, ("w0",))
    head = np.zeros(8, np.uint8)
    run(code, head=head, place=3, w0=np.uint64(0xABCD))
    assert head.tobytes() == bytes(3) + struct.pack(">I", 0x0ABCD000)[:3] + bytes(2)
