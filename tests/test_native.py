"""Compiled code reads and writes arenas as uncompiled code does, but for bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.core import native_types as types
from ringleaf.core.arena import Arena, Store
from ringleaf.core.compiled import (
    UNCOMPILED,
    Compiled,
    External,
    address_of,
    call_handler,
    compiled,
    handler,
    inline,
)
from ringleaf.core.native_types import ARENA
from ringleaf.core.views import look_up_bytes, number_at, prefetch, put_number, span, window

pytestmark = pytest.mark.skipif(UNCOMPILED, reason="nothing is compiled under NUMBA_DISABLE_JIT")


@compiled(types.int64(ARENA, types.int64))
def _touch(arena: Arena, at: int) -> int:
    arena.words[at] += 1
    arena.fields[at] = np.uint64(0xFFFFFFFFFFFFFFFF)
    arena.lanes[at] = arena.lanes[at - 1] + np.uint32(1)
    arena.bytes[at] = np.uint8(200)
    arena.memory[at] = arena.bytes[at]
    view = window(arena.words, at, 2)
    view[1] = view[0] * 10
    prefetch(arena.words, at)
    return arena.words[at]  # type: ignore[no-any-return]


def test_arrays_are_read_and_written_in_place() -> None:
    """Numbers are set by hand: 40 + 1, its tenfold, 4294967295 + 1 that wraps around."""
    store = Store(memory_bytes=64)
    arena = store.arena
    arena.words[7], arena.lanes[6], arena.memory[7] = 40, 0xFFFFFFFF, 1
    assert _touch(arena, 7) == 41
    assert arena.words[7:10].tolist() == [41, 410, 0]
    assert arena.fields[7] == 2**64 - 1
    assert arena.lanes[6:9].tolist() == [0xFFFFFFFF, 0, 0]
    assert arena.bytes[6:9].tolist() == [0, 200, 0]
    assert arena.memory[7] == 200


def _numbers(bytes_: Any, tables: Any, found: Any) -> None:
    """Find two numbers of each length, and write the first back behind the bytes read."""
    at = span(bytes_, 1, 40)
    found[0], found[1] = number_at(at, 2, 1), look_up_bytes(tables, 1, number_at(at, 2, 1), 1)
    found[2], found[3] = number_at(at, 2, 2), look_up_bytes(tables, 1, number_at(at, 2, 2), 2)
    found[4], found[5] = number_at(at, 2, 3), look_up_bytes(tables, 1, number_at(at, 2, 3), 3)
    found[6], found[7] = number_at(at, 2, 4), look_up_bytes(tables, 1, number_at(at, 2, 4), 4)
    found[8], found[9] = number_at(at, 2, 5), look_up_bytes(tables, 1, number_at(at, 2, 5), 5)
    found[10], found[11] = number_at(at, 2, 6), look_up_bytes(tables, 1, number_at(at, 2, 6), 6)
    found[12], found[13] = number_at(at, 2, 7), look_up_bytes(tables, 1, number_at(at, 2, 7), 7)
    found[14], found[15] = number_at(at, 2, 8), look_up_bytes(tables, 1, number_at(at, 2, 8), 8)
    put_number(bytes_, 50, found[14], 1)
    put_number(bytes_, 51, found[14], 2)
    put_number(bytes_, 53, found[14], 3)
    put_number(bytes_, 56, found[14], 4)
    put_number(bytes_, 60, found[14], 5)
    put_number(bytes_, 65, found[14], 6)
    put_number(bytes_, 71, found[14], 7)
    put_number(bytes_, 78, found[14], 8)


_compiled_numbers = compiled(types.void(types.uint8[::1], types.uint32[::1], types.uint64[::1]))(
    _numbers
)


@given(st.binary(min_size=8, max_size=8))
def test_numbers_of_bytes_are_as_python_has_them(data: bytes) -> None:
    """Big-endian, of 1 to 8 bytes, and their low bytes written; uncompiled likewise."""
    tables = np.random.default_rng(1).integers(0, 1 << 32, 9 * 256, np.uint32)
    written = b"".join(data[-count:] for count in range(1, 9))
    for function in (_numbers, _compiled_numbers):
        bytes_, found = np.full(90, 77, np.uint8), np.zeros(16, np.uint64)
        bytes_[3:11] = np.frombuffer(data, np.uint8)
        function(bytes_, tables, found)
        parts = [data[:count] for count in range(1, 9)]
        assert found[::2].tolist() == [int.from_bytes(part, "big") for part in parts]
        sums = [[tables[256 * (1 + i) + byte] for i, byte in enumerate(part)] for part in parts]
        assert found[1::2].tolist() == [np.bitwise_xor.reduce(each) for each in sums]
        assert bytes_[50:86].tobytes() == written
        assert (bytes_[[0, 1, 2, 11, 49, 86, 89]] == 77).all()


@compiled(types.uint64(types.int64, types.uint64))
def _change_type(small: int, large: Any) -> Any:
    total = np.uint64(0)
    for i in range(2):
        if i == 0:
            value: Any = small
            total += np.uint64(value)
        else:
            value = large
            total += value
    return total


@compiled(types.float64(types.int64, types.float64))
def _add(whole: int, part: float) -> float:
    return (whole + whole) + (part + part)


_BEGIN = 5


@compiled(types.int64(types.int64))
def _count_on(times: int) -> int:
    value = _BEGIN
    for i in range(times):
        value = value + i
    return value


def test_variables_may_change_their_type_and_begin_with_a_constant() -> None:
    """A variable of `int64`, then of `uint64`, is never a float, which has 53 bits."""
    assert _change_type(2, 2**63 + 1) == 2**63 + 3
    assert [_count_on(0), _count_on(4)] == [5, 11]


def test_integers_and_floats_are_added_as_what_they_are() -> None:
    assert _add(1, 0.25) == 2.5


@compiled(types.int64(types.int64), rare=True)
def _fail(number: int) -> int:
    return number.nothing  # type: ignore[attr-defined,no-any-return]


def test_what_does_not_compile_says_why() -> None:
    with pytest.raises(Exception, match="Unknown attribute 'nothing' of type int64"):
        _fail(1)


def test_an_arena_that_has_moved_is_another() -> None:
    """Allocation moves arrays; the arena of before still has the old ones."""
    store = Store(memory_bytes=64)
    store.allocate("words", 8)
    before = store.arena
    before.words[7] = 1
    store.allocate("words", 1 << 20)
    assert _touch(store.arena, 7) == 2
    assert before.words[7] == 1
    assert _touch(before, 7) == 2


def test_what_does_not_compile_says_so_to_its_caller_alone() -> None:
    """A slice needs bounds, which these arrays don't have."""

    @compiled(types.int64(ARENA))
    def _sliced(arena: Arena) -> int:
        return arena.words[2:4][0]  # type: ignore[no-any-return]

    @compiled(types.int64(types.int64))
    def _half(number: int) -> int:
        return number // 2

    assert _half(-7) == -4
    for _ in range(2):
        with pytest.raises(Exception, match="getitem"):
            _sliced(Store().arena)


def test_what_is_no_arena_is_refused() -> None:
    with pytest.raises(TypeError, match="takes an Arena here, got tuple"):
        _touch((1, 2, 3), 7)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="takes 2 values, got 1"):
        _touch(Store().arena)  # type: ignore[call-arg]


@compiled(types.float64(types.int8, types.uint32, types.int64, types.uint64, types.float32))
def _weigh(a: int, b: int, c: int, d: int, e: float) -> float:
    return 1.0 * a + 2.0 * b + 3.0 * c + 5.0 * np.float64(d) + 7.0 * e


@given(
    st.integers(-128, 127),
    st.integers(0, 2**32 - 1),
    st.integers(-(2**20), 2**20),
    st.integers(0, 2**20),
    st.integers(-100, 100),
)
def test_numbers_arrive_as_they_are(a: int, b: int, c: int, d: int, e: int) -> None:
    numbers: Any = np.int8(a), np.uint32(b), np.int64(c), np.uint64(d), np.float32(e)
    assert _weigh(a, b, c, d, e) == _weigh(*numbers) == a + 2 * b + 3 * c + 5 * d + 7 * e


@compiled(types.boolean(types.boolean, types.boolean))
def _only_one(a: bool, b: bool) -> bool:
    return a != b


def test_truth_values_are_truth_values() -> None:
    assert [_only_one(a, b) for a in (False, True) for b in (False, True)] == [
        *(False, True, True, False)
    ]
    assert type(_only_one(True, False)) is bool


@compiled(types.void(types.int32[:, ::1], types.int64[::1], types.float32))
def _row_sums(table: Any, sums: Any, factor: float) -> None:
    for row in range(table.shape[0]):
        for column in range(table.shape[1]):
            sums[row] += int(table[row, column] * factor)


@compiled(types.int64(types.Array(types.int64, 2, "A", readonly=True)))
def _corner(table: Any) -> int:
    return table[table.shape[0] - 1, table.shape[1] - 1]  # type: ignore[no-any-return]


@given(st.integers(1, 5), st.integers(0, 5))
def test_arrays_have_their_shapes(rows: int, columns: int) -> None:
    table = np.arange(rows * columns, dtype=np.int32).reshape(rows, columns)
    sums = np.zeros(rows, np.int64)
    assert _row_sums(table, sums, 2.0) is None
    assert sums.tolist() == [2 * sum(row) for row in table.tolist()]


def test_arrays_of_any_layout_have_their_strides() -> None:
    table = np.arange(24).reshape(4, 6)
    assert _corner(table) == 23
    assert _corner(table[::2, 1:5]) == 16
    assert _corner(table.T) == 23
    table.flags.writeable = False
    assert _corner(table) == 23


@pytest.mark.parametrize(
    ("table", "sums", "problem"),
    [
        (np.zeros((2, 2), np.int64), np.zeros(2, np.int64), "an array of int64 of 2-D shape"),
        (np.zeros(4, np.int32), np.zeros(2, np.int64), "an array of int32 of 1-D shape"),
        (np.zeros((4, 4), np.int32)[:, ::2], np.zeros(4, np.int64), "that is not contiguous"),
        ([[1, 2]], np.zeros(2, np.int64), "got list"),
        (np.zeros((1, 2), np.int32), np.broadcast_to(np.int64(0), 1), "that can't be written"),
    ],
)
def test_other_arrays_are_refused(table: Any, sums: Any, problem: str) -> None:
    with pytest.raises(TypeError, match=problem):
        _row_sums(table, sums, 1.0)


def test_numbers_of_other_kinds_are_refused() -> None:
    with pytest.raises(TypeError):
        _touch(Store().arena, 1.5)  # type: ignore[arg-type]


@inline
def _plus(a: int, b: int) -> int:
    return a + b


@handler
def _sum_up(arena: Arena, at: int, packet: int, now_ps: int) -> int:
    return _plus(arena.words[at], _plus(packet, now_ps))


@compiled(types.int64(ARENA, types.int64, types.int64))
def _through_an_address(arena: Arena, address: int, at: int) -> int:
    return 2 * call_handler(address, arena, at, 30, 500)


@compiled(types.int64(ARENA, types.int64, types.int64))
def _twice(arena: Arena, address: int, at: int) -> int:
    return _through_an_address(arena, address, at) + 1


def test_compiled_code_calls_helpers_addresses_and_compiled_code() -> None:
    arena = Store().arena
    arena.words[9] = 7
    assert _sum_up(arena, 9, 30, 500) == 537
    assert _through_an_address(arena, address_of(_sum_up), 9) == 1074
    assert _twice(arena, address_of(_sum_up), 9) == 1075


_absolute = External("llabs", types.int64(types.int64))


@compiled(types.int64(types.int64))
def _magnitude(number: int) -> int:
    return _absolute(number)  # type: ignore[no-any-return]


def test_functions_of_the_c_library_are_called_in_both_ways() -> None:
    assert _absolute(-5) == _magnitude(-5) == 5


@compiled(types.int64(types.int64))
def _refuse(number: int) -> int:
    if number > 3:
        raise ValueError("too large")
    return number


def test_an_exception_in_compiled_code_is_an_error() -> None:
    assert _refuse(3) == 3
    with pytest.raises(RuntimeError, match=r"_refuse.*failed"):
        _refuse(4)


def test_a_function_says_what_it_is() -> None:
    assert isinstance(_touch, Compiled)
    assert repr(_row_sums).endswith("_row_sums: void(int32[2C], int64[1C], float32)>")
    assert _touch.is_settled
