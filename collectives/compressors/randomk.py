"""Random-k: send elements at random positions, the same ones on all ranks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ringleaf.collectives.compress.share import Share, parse_share

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class RandomK:
    """A compressor whose positions come from the step's seed, so sums are as sparse as the addends.

    Values are not scaled up: error feedback makes up for the elements that are not sent.

    Source:
        Stich, Cordonnier and Jaggi, "Sparsified SGD with memory", NeurIPS 2018.
    """

    share: Share
    name: str = "randomk"

    def select(self, values: torch.Tensor, seed: int) -> torch.Tensor:
        """Return the elements of `values` that `seed` picks."""
        import torch  # takes a second; names of compressors are known without

        generator = torch.Generator().manual_seed(seed)
        order = torch.randperm(values.numel(), generator=generator)
        chosen = order[: self.share.of(values.numel())]
        result = torch.zeros_like(values)
        result[chosen] = values[chosen]
        return result


def parse(text: str, where: str) -> RandomK:
    """Return the compressor for the text behind the colon; errors begin with `where`."""
    return RandomK(parse_share(text, where))


COMPRESSOR = parse
