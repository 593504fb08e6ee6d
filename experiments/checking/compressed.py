"""Have all ranks compress their tensors for one step, those that agree on a scale included."""

from __future__ import annotations

from collections.abc import Sequence

from ringleaf.collectives.compression.compressor import Feedback
from ringleaf.collectives.compression.registry import parse_compressor
from ringleaf.collectives.compression.scaled import ScaledCompressor
from ringleaf.core.tensors import Array


def carry_all(text: str, arrays: Sequence[Array], seed: int) -> list[Array]:
    """Return what each rank gives to a collective in a first step; see `Member.carry`.

    A scale that ranks agree on is known here before they begin; it takes a number per rank.

    Args:
        text: The compressor, as people write it.
        arrays: The ranks' tensors, flat.
        seed: The step's.

    Raises:
        ConfigError: If it does not work on such elements.
    """
    compressor = parse_compressor(text)
    memories = [Feedback(compressor, rank, len(arrays)) for rank in range(len(arrays))]
    agree([memory.copy() for memory in memories], arrays, seed)
    return [memory.carry(array, seed) for memory, array in zip(memories, arrays, strict=True)]


def agree(compressors: Sequence[object], arrays: Sequence[Array], seed: int) -> None:
    """Have the ranks' compressors of one tensor know the largest of their scales."""
    scales = []
    for each, array in zip(compressors, arrays, strict=True):
        if not isinstance(each, ScaledCompressor) or not each.shares:
            return
        each.prepare(seed)
        scales.append(each.scale(each.checked(array)))
    for each in compressors:
        assert isinstance(each, ScaledCompressor)
        each.agree(max(scales))
