"""The place of each rank's data in the tensors of a schedule, before it runs and after."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from ringleaf.experiments.workloads.train import calls
from ringleaf.experiments.workloads.train.calls import CollectiveCall


class BufferPiece(NamedTuple):
    """Bytes that lie at one place of a rank's buffer, and at another of the schedule's tensor."""

    buffer_at: int
    tensor_at: int
    size_bytes: int


Pieces = Sequence[BufferPiece]


@dataclass(frozen=True, slots=True)
class DataLayout:
    """The data of a collective.

    Attributes:
        tensor_bytes: The size of each rank's tensor.
        loads: By member, the pieces of its buffer that are put into its tensor at first.
        unloads: By member, the pieces of its tensor that are its result in the end.
    """

    tensor_bytes: int
    loads: Sequence[Pieces]
    unloads: Sequence[Pieces]


def whole(
    size_bytes: int, ranks: int, sources: Sequence[int], targets: Sequence[int]
) -> DataLayout:
    """Return the layout of tensors that `sources` have at first, and `targets` in the end."""
    all_of_it = [BufferPiece(0, 0, size_bytes)]
    return DataLayout(
        size_bytes,
        [all_of_it if rank in sources else [] for rank in range(ranks)],
        [all_of_it if rank in targets else [] for rank in range(ranks)],
    )


def blocks(
    block_bytes: int, ranks: int, room_bytes: int, *, loads: str, unloads: str, root: int = 0
) -> DataLayout:
    """Return the layout of tensors of a block for each rank.

    Args:
        block_bytes: Bytes of a block, one behind the other in buffers.
        ranks: The number of ranks.
        room_bytes: Bytes from one block to the next in tensors.
        loads: Ranks' blocks at first: `own`, `all`, or all of `root`.
        unloads: Likewise, in the end.
        root: The root.
    """
    every = [BufferPiece(i * block_bytes, i * room_bytes, block_bytes) for i in range(ranks)]

    def of(which: str, rank: int) -> Pieces:
        if which == "own":
            return [BufferPiece(0, rank * room_bytes, block_bytes)]
        return every if which == "all" or rank == root else []

    return DataLayout(
        ranks * room_bytes,
        [of(loads, rank) for rank in range(ranks)],
        [of(unloads, rank) for rank in range(ranks)],
    )


def exchange(block_bytes: int, ranks: int, room_bytes: int) -> DataLayout:
    """Return the layout of an all-to-all of equal blocks, in rotated order (see `Collective`)."""
    turned = [
        [
            BufferPiece(to * block_bytes, (to - rank) % ranks * room_bytes, block_bytes)
            for to in range(ranks)
        ]
        for rank in range(ranks)
    ]
    back = [
        [
            BufferPiece(source * block_bytes, (rank - source) % ranks * room_bytes, block_bytes)
            for source in range(ranks)
        ]
        for rank in range(ranks)
    ]
    return DataLayout(ranks * room_bytes, turned, back)


def uneven_exchange(
    parts: Sequence[CollectiveCall], item_bytes: int, unit: int
) -> tuple[DataLayout, list[int]]:
    """Return the layout of an all-to-all of any blocks, and the edges of its chunks in bytes.

    Chunk `i n + j` is the block from rank i for rank j. Each block begins at a multiple of `unit`.
    """
    ranks = len(parts)
    sizes = [size * item_bytes for call in parts for size in call.sends]
    edges = [0, *accumulate(-(-size // unit) * unit for size in sizes)]
    loads: list[Pieces] = []
    unloads: list[Pieces] = []
    for rank, call in enumerate(parts):
        ways = (
            (call.sends, [rank * ranks + to for to in range(ranks)], loads),
            (call.takes, [source * ranks + rank for source in range(ranks)], unloads),
        )
        for counts, chunks, pieces in ways:
            at = accumulate((count * item_bytes for count in counts), initial=0)
            pieces.append(
                [
                    BufferPiece(start, edges[chunk], count * item_bytes)
                    for start, chunk, count in zip(at, chunks, counts, strict=False)
                ]
            )
    return DataLayout(edges[-1], loads, unloads), edges


def buffer_bytes(call: CollectiveCall, ranks: int, item_bytes: int) -> tuple[int, int]:
    """Return the bytes that a call's rank gives, and those that it gets, at most."""
    part = call.count * item_bytes
    if call.kind in (calls.ALL_GATHER, calls.GATHER):
        return part, ranks * part
    if call.kind in (calls.REDUCE_SCATTER, calls.SCATTER):
        return ranks * part, part
    if call.kind == calls.ALL_TO_ALL:
        return sum(call.sends) * item_bytes, sum(call.takes) * item_bytes
    return part, part
