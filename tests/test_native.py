"""Compiled code reads and writes arenas as uncompiled code does, but for bounds."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from numba import types
from numba.core.errors import TypingError

from ringleaf.core.arena import Arena, Store
from ringleaf.core.compiled import compiled
from ringleaf.core.machine_code import MachineCode
from ringleaf.core.native import ARENA
from ringleaf.core.views import prefetch, window

pytestmark = pytest.mark.skipif(
    bool(numba.config.DISABLE_JIT), reason="nothing is compiled under NUMBA_DISABLE_JIT"
)


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


def test_machine_code_is_cached_as_what_it_is() -> None:
    assert isinstance(_touch._cache, MachineCode)  # type: ignore[attr-defined]


def test_an_arena_that_has_moved_is_another() -> None:
    """Allocation moves arrays; the arena of before still has the old ones."""
    store = Store(memory_bytes=64)
    before = store.arena
    before.words[7] = 1
    store.allocate("words", 1 << 20)
    assert _touch(store.arena, 7) == 2
    assert before.words[7] == 1
    assert _touch(before, 7) == 2


def test_slices_do_not_compile() -> None:
    """A slice needs bounds, which these arrays don't have."""
    with pytest.raises(TypingError):

        @compiled(types.int64(ARENA))
        def _sliced(arena: Arena) -> int:
            return arena.words[2:4][0]  # type: ignore[no-any-return]


def test_what_is_no_arena_is_refused() -> None:
    with pytest.raises(TypeError):
        _touch((1, 2, 3), 7)  # type: ignore[arg-type]
