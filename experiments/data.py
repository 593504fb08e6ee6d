"""The tensors that an experiment reduces, and whether what came out is right."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from collectives.oracle import exact_sum, execute_chunks
from collectives.schedule import Schedule

_INTEGERS = 1 << 20  # magnitudes below this, so that no sum of 2,000 ranks overflows

_PART = 1 << 16  # elements checked at a time, so that they stay in the processor's cache


def make_tensors(seed: int, ranks: int, count: int, dtype: str) -> list[torch.Tensor]:
    """One tensor of `count` elements per rank, normal as gradients are; or uniform integers."""
    generators = [torch.Generator().manual_seed(seed * 1_000_003 + rank) for rank in range(ranks)]
    if dtype == "float32":
        return [torch.randn(count, generator=generator) for generator in generators]
    return [
        torch.randint(-_INTEGERS, _INTEGERS, (count,), generator=generator, dtype=torch.int32)
        for generator in generators
    ]


@dataclass(frozen=True, slots=True)
class Sparsity:
    """Where tensors are not zero.

    Attributes:
        density: Share of the elements of each rank.
        cluster: They come in runs of so many, which start at multiples of that.
        overlap: Share of a rank's runs that are where all other ranks have one, too; the
            others are anywhere.
    """

    density: float = 1.0
    cluster: int = 1
    overlap: float = 0.0

    def thin(self, seed: int, tensors: Sequence[torch.Tensor]) -> None:
        """Set all other elements to zero, in place."""
        if self.density == 1 or not tensors[0].numel():
            return
        runs = -(-tensors[0].numel() // self.cluster)
        kept = round(self.density * runs)
        common = round(self.overlap * kept)
        order = torch.randperm(runs, generator=torch.Generator().manual_seed(seed))
        for rank, tensor in enumerate(tensors):
            generator = torch.Generator().manual_seed(seed * 1_000_003 + rank + 1_000_000)
            others = order[common:][torch.randperm(runs - common, generator=generator)]
            is_zero = torch.ones(runs, dtype=torch.bool)
            is_zero[order[:common]] = False
            is_zero[others[: kept - common]] = False
            tensor[is_zero.repeat_interleave(self.cluster)[: tensor.numel()]] = 0


def count_different(
    schedule: Schedule, inputs: Sequence[torch.Tensor], results: Sequence[torch.Tensor]
) -> int:
    """Elements, over all ranks, that are not bit for bit what the schedule makes of `inputs`."""
    elements = inputs[0].numel()
    return sum(
        _count_unequal(result[chunk.start : chunk.stop], value)
        for chunk in execute_chunks(schedule, elements, lambda rank, a, b: inputs[rank][a:b])
        for value, result in zip(chunk.values, results, strict=True)
    )


def _count_unequal(a: torch.Tensor, b: torch.Tensor) -> int:
    """Elements whose bits differ, so that NaN equals itself, and -0 is not 0."""
    a, b = a.view(torch.int32), b.view(torch.int32)
    return 0 if torch.equal(a, b) else int((a != b).sum())  # counting takes far longer


def count_outside(
    inputs: Sequence[torch.Tensor],
    results: Sequence[torch.Tensor],
    bound: Callable[[Sequence[torch.Tensor]], torch.Tensor],
    *,
    block: int,
) -> int:
    """Elements, over all ranks, further from the exact sum than they may be.

    A result that is no number is outside.

    Args:
        inputs: What each rank had.
        results: What each rank has.
        bound: From the ranks' inputs to how far each element of their sum may be off.
        block: `bound` may be asked for parts that start at multiples of this.
    """
    part = -(-_PART // block) * block
    outside = 0
    for start in range(0, inputs[0].numel(), part):
        given = [tensor[start : start + part] for tensor in inputs]
        exact, allowed = exact_sum(given), bound(given)
        for result in results:
            near = (result[start : start + part] - exact).abs() <= allowed
            outside += int((~near).sum())
    return outside
