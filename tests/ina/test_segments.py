"""A worker's segments: who is called when, and where results are in the end."""

from __future__ import annotations

import numpy as np

from ringleaf.core.arena import Store
from ringleaf.core.callbacks import Callback
from ringleaf.ina.leases import (
    CLOSE,
    IS_OPEN,
    LEFT,
    OPEN,
    PLACE,
    SEGMENT_BYTES,
    SEGMENT_WORDS,
    SEGMENTS,
    note_written,
    source_at,
    target_at,
)
from ringleaf.ina.tensors import LEASE_AT, MOST_TENSORS, TENSOR_WORDS, TensorQueue
from ringleaf.networks.endpoints.leases import Leases


def test_a_segment_is_opened_once_and_closed_with_its_last_result() -> None:
    """Two segments at 10,000 and 20,000, of which the second has 2000 bytes."""
    calls: list[tuple[str, int]] = []

    def note(what: str) -> Callback:
        def called(segment: int) -> int:
            calls.append((what, segment))
            return 0

        return Callback(called, failed=-1)

    opened, closed = note("open"), note("close")
    store = Store()
    store.allocate("words", 1)  # a table at 0 would be none
    table = store.allocate("words", SEGMENTS + 2 * SEGMENT_WORDS)
    words = store.arena.words
    words[[table + OPEN, table + CLOSE]] = opened.address, closed.address
    first, second = (table + SEGMENTS + number * SEGMENT_WORDS for number in range(2))
    words[[first + PLACE, first + LEFT, first + IS_OPEN]] = 10_000, SEGMENT_BYTES, 0
    words[[second + PLACE, second + LEFT, second + IS_OPEN]] = 20_000, 2000, 0
    rows = np.zeros(MOST_TENSORS * TENSOR_WORDS, np.int64)
    rows[LEASE_AT] = table
    tensors = TensorQueue(np.zeros(8, np.int64), rows)

    assert source_at(store.arena, tensors, 0, SEGMENT_BYTES + 1000) == 21_000
    assert target_at(store.arena, tensors, 0, SEGMENT_BYTES) == 20_000
    assert calls == [("open", second)]

    note_written(store.arena, tensors, 0, SEGMENT_BYTES, 1000)
    assert calls == [("open", second)]
    note_written(store.arena, tensors, 0, SEGMENT_BYTES + 1000, 1000)
    assert calls == [("open", second), ("close", second)]
    assert words[first + LEFT] == SEGMENT_BYTES


def test_the_first_result_is_copied_to_its_tensor_and_equal_ones_are_there() -> None:
    tensors = [np.zeros(6, np.int32) for _ in range(3)]
    leases = Leases(tensors, np.array([0, 4, 6]))
    buffers = [np.array([7, 8], np.int32) for _ in range(2)]
    tensors[2][4:] = 7, 9  # another result, and where the tensor has it already

    kept = [
        leases._keep(rank, 1, buffer.ctypes.data)
        for rank, buffer in enumerate((*buffers, tensors[2][4:]))
    ]

    assert kept == [True, False, True]
    assert [each.tolist() for each in tensors] == [[0] * 4 + [7, 8], [0] * 6, [0] * 4 + [7, 9]]
    own = tensors[0][4:].ctypes.data
    assert leases.addresses[:2, 1].tolist() == [own, own]
    leases.restore()
    assert tensors[1].tolist() == [0, 0, 0, 0, 7, 8]
