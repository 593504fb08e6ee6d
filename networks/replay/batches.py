"""Batches of packets from a trace's files to the feed, some megabytes at a time."""

from __future__ import annotations

import numpy as np

import ringleaf.networks.replay.feed as f
from ringleaf.core import native_types as types
from ringleaf.core.arena import Bytes, Store, Words
from ringleaf.core.compiled import compiled, copy_items
from ringleaf.networks.traces.trace import ORDER, PORT, TIME_PS, PacketTrace

BATCH_ROWS = 1 << 14
BATCH_BYTES = 8 << 20

_BYTES, _WORDS = types.uint8[::1], types.int64[::1]


@compiled(types.void(_BYTES, _WORDS, _WORDS, _BYTES, _WORDS))
def _gather(source: Bytes, starts: Words, lengths: Words, target: Bytes, to: Words) -> None:
    """Copy one range after the other."""
    for i in range(starts.size):
        copy_items(target, to[i], source, starts[i], lengths[i])


class Batches:
    """Fills a feed with the next packets of a trace, batch by batch."""

    def __init__(self, trace: PacketTrace, store: Store) -> None:
        self._trace = trace
        self._store = store
        self._taken = 0  # of all arrivals
        self._port_taken = [0] * len(trace.inputs)
        self.at = f.make_feed(store, rows=BATCH_ROWS, size_bytes=BATCH_BYTES)
        store.arena.words[self.at + f.MORE] = len(trace.arrivals) > 0

    @property
    def taken(self) -> int:
        """Return the number of packets that have been put into the feed so far."""
        return self._taken

    def fill(self) -> None:
        """Replace the rows of the feed by the next ones, and set MORE if others follow."""
        rows = self._trace.arrivals[self._taken :][:BATCH_ROWS]
        lengths, parts = self._lengths(rows)
        count = int(np.searchsorted(np.cumsum(lengths), BATCH_BYTES, side="right"))
        lengths = lengths[:count]
        words = self._store.arena.words
        bytes_at = int(words[self.at + f.BYTES_AT])
        starts = bytes_at + np.cumsum(lengths) - lengths
        self._copy(rows[:count, PORT], lengths, starts, parts)
        delay_ps = self._trace.manifest.delay_ps
        table = np.stack(
            [
                *(rows[:count, TIME_PS] + delay_ps, rows[:count, PORT] - 1, rows[:count, ORDER]),
                *(starts, lengths),
            ],
            axis=1,
        )
        rows_at = int(words[self.at + f.ROWS_AT])
        words[rows_at : rows_at + table.size] = table.ravel()
        words[self.at + f.ROWS], words[self.at + f.NEXT] = count, 0
        self._taken += count
        words[self.at + f.MORE] = self._taken < len(self._trace.arrivals)

    def _lengths(self, rows: Words) -> tuple[Words, dict[int, Words]]:
        """Return each row's length in bytes, and the rows of each port."""
        lengths = np.zeros(len(rows), np.int64)
        parts = {}
        for index, file in enumerate(self._trace.inputs):
            if file is not None:
                mine = np.flatnonzero(rows[:, PORT] == index + 1)
                parts[index] = mine
                lengths[mine] = file.lengths[self._port_taken[index] :][: mine.size]
        return lengths, parts

    def _copy(self, ports: Words, lengths: Words, starts: Words, parts: dict[int, Words]) -> None:
        for index, mine in parts.items():
            file = self._trace.inputs[index]
            assert file is not None
            mine = mine[mine < ports.size]
            first = self._port_taken[index]
            origins = file.offsets[first : first + mine.size]
            _gather(file.data, origins, lengths[mine], self._store.arena.bytes, starts[mine])
            self._port_taken[index] += mine.size
