"""Top-k: send the elements of largest magnitude, each rank its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ringleaf.collectives.compress.share import Share, parse_share

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class TopK:
    """A compressor that takes the largest magnitudes, any of equal ones; NaN is larger than all.

    Source:
        Aji and Heafield, "Sparse communication for distributed gradient descent", EMNLP 2017.
    """

    share: Share
    name: str = "topk"

    def select(self, values: torch.Tensor, seed: int) -> torch.Tensor:
        """Return the largest elements of `values`; `seed` does not matter."""
        del seed
        magnitudes = values.abs() if values.is_floating_point() else values.double().abs()
        chosen = magnitudes.topk(self.share.of(values.numel()), sorted=False).indices
        result = values.new_zeros(values.shape)
        result[chosen] = values[chosen]
        return result


def parse(text: str, where: str) -> TopK:
    """Return the compressor for the text behind the colon; errors begin with `where`."""
    return TopK(parse_share(text, where))


COMPRESSOR = parse
