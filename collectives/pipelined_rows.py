"""Rows of pipelines: all chunks go the same way, each of them a step behind the one before.

A tree of 1,024 ranks has two million rows, and 2,046 that say what they are: those of one chunk.
Whoever needs all of them has them made.
"""

from __future__ import annotations

import numpy as np

from ringleaf.collectives.rows import Columns
from ringleaf.collectives.symmetric_rows import SymmetricRows
from ringleaf.collectives.symmetry import Symmetry


class PipelinedRows(SymmetricRows):
    """Rows of a schedule whose symmetry is known, of which those of one chunk are kept.

    Args:
        symmetry: The schedule's symmetry.
        way: The rows of chunk 0, as `pipelined` takes them.
        chunks: The number of chunks.
    """

    def __init__(self, symmetry: Symmetry, way: Columns, chunks: int) -> None:
        steps = chunks + int(way.step[-1]) if len(way) else 0
        super().__init__(
            symmetry, lambda: pipelined(way, chunks), rows=len(way) * chunks, steps=steps
        )
        self.way, self.chunks = way, chunks

    @property
    def key(self) -> tuple[object, ...]:
        """The key that tells these rows from others."""
        return self.way.digest, self.chunks, "pipelined"

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """The ranks of each aggregation: there are none."""
        return ()


def pipelined(way: Columns, chunks: int) -> Columns:
    """Return the rows of all chunks, by step, then by chunk, then as they are in `way`.

    Args:
        way: Transfers of chunk 0, sorted by step, none of which comes twice.
        chunks: The number of chunks. Chunk c does in step s + c what chunk 0 does in step s.
    """
    steps, first, count = np.unique(way.step, return_index=True, return_counts=True)
    step = (np.arange(chunks)[:, None] + steps).reshape(-1)
    order = np.argsort(step, kind="stable")  # of the blocks of a chunk that are in one step
    chunk, part = np.divmod(order, max(len(steps), 1))
    sizes = count[part]
    ends = np.cumsum(sizes)
    places = np.arange(ends[-1] if len(ends) else 0) + np.repeat(first[part] - ends + sizes, sizes)
    rows, start = way.take(places), np.repeat(chunk, sizes)
    return Columns(
        np.repeat(step[order], sizes), rows.src, rows.dst, start, start + 1, rows.op, rows.channel
    )
