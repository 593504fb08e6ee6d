"""The tensors that an experiment reduces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

_INTEGERS = 1 << 20  # magnitudes below this, so that no sum of 2,000 ranks overflows


def make_tensors(seed: int, ranks: int, count: int, dtype: str) -> list[torch.Tensor]:
    """Return a tensor of `count` elements per rank: normal floats, or uniform integers."""
    generators = [torch.Generator().manual_seed(seed * 1_000_003 + rank) for rank in range(ranks)]
    if dtype == "float32":
        return [torch.randn(count, generator=generator) for generator in generators]
    return [
        torch.randint(-_INTEGERS, _INTEGERS, (count,), generator=generator, dtype=torch.int32)
        for generator in generators
    ]


@dataclass(frozen=True, slots=True)
class Sparsity:
    """The pattern of a set of tensors' elements that are not zero.

    Attributes:
        density: Share of each rank's elements that are not zero.
        cluster: Length of the runs in which they come; runs start at multiples of it.
        overlap: Share of a rank's runs that are at places where all other ranks have one,
            too; the others are anywhere.
    """

    density: float = 1.0
    cluster: int = 1
    overlap: float = 0.0

    def thin(self, seed: int, tensors: Sequence[torch.Tensor]) -> None:
        """Set the elements outside the pattern to zero, in place."""
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
