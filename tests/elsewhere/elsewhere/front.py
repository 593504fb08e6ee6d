"""A compressor that sends the first elements: `front:10`."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ringleaf.errors import ConfigError


@dataclass(frozen=True)
class Front:
    count: int
    name: str = "front"

    def select(self, values: torch.Tensor, seed: int) -> torch.Tensor:
        result = torch.zeros_like(values)
        result[: self.count] = values[: self.count]
        return result


def parse(text: str, where: str) -> Front:
    if not text.isdecimal():
        raise ConfigError(f"{where}: must be a whole number, got {text!r}; like front:10")
    return Front(int(text))


COMPRESSOR = parse
