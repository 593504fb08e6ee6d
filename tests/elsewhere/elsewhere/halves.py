"""A codec that writes each element's upper half first, and then all lower ones."""

from __future__ import annotations

import torch


class Halves:
    name = "halves"
    is_lossless = True

    def encode(self, values: torch.Tensor) -> torch.Tensor:
        return values.view(torch.uint8).reshape(-1, 2, 2).transpose(0, 1).flatten()

    def decode(self, data: torch.Tensor, elements: int, dtype: torch.dtype) -> torch.Tensor:
        halves = data.reshape(2, elements, 2).transpose(0, 1)
        return halves.flatten().view(dtype)

    def most_bytes(self, elements: int, item_bytes: int) -> int:
        return elements * item_bytes


CODEC = Halves()
