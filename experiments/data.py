"""The tensors that an experiment reduces, and whether what came out is right."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from collectives.oracle import exact_sum, execute_chunks
from collectives.schedule import Schedule

_INTEGERS = 1 << 20  # magnitudes below this, so that no sum of 2,000 ranks overflows


def make_tensors(seed: int, ranks: int, count: int, dtype: str) -> list[torch.Tensor]:
    """One tensor of `count` elements per rank, normal as gradients are; or uniform integers."""
    generators = [torch.Generator().manual_seed(seed * 1_000_003 + rank) for rank in range(ranks)]
    if dtype == "float32":
        return [torch.randn(count, generator=generator) for generator in generators]
    return [
        torch.randint(-_INTEGERS, _INTEGERS, (count,), generator=generator, dtype=torch.int32)
        for generator in generators
    ]


def count_different(
    schedule: Schedule, inputs: Sequence[torch.Tensor], results: Sequence[torch.Tensor]
) -> int:
    """Elements, over all ranks, that are not bit for bit what the schedule makes of `inputs`."""
    different = 0
    elements = inputs[0].numel()
    for chunk in execute_chunks(schedule, elements, lambda rank, a, b: inputs[rank][a:b]):
        for value, result in zip(chunk.values, results, strict=True):
            got = result[chunk.start : chunk.stop]
            different += int((got.view(torch.int32) != value.view(torch.int32)).sum())
    return different


def count_outside(
    inputs: Sequence[torch.Tensor], results: Sequence[torch.Tensor], allowed: torch.Tensor
) -> int:
    """Elements, over all ranks, further from the exact sum than `allowed`.

    A result that is no number is outside.
    """
    exact = exact_sum(inputs)
    return sum(int((~((result - exact).abs() <= allowed)).sum()) for result in results)
