"""The share that a compressor sends: `1%`, `0.01`, or a number of elements, `100`."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from ringleaf.core.units import parse_fraction
from ringleaf.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Density:
    """A fraction of the elements, or, if `fraction` is 0, a number of them."""

    fraction: float
    count: int = 0

    def of(self, elements: int) -> int:
        """Return the share of `elements` as a number; at least one, if there is any element."""
        number = ceil(self.fraction * elements - 1e-9) if self.fraction else self.count
        return min(max(number, 1), elements)


def parse_share(text: str, where: str) -> Density:
    """Return the share that a text names.

    Raises:
        ConfigError: If the text names no share, or a share of nothing.
    """
    if text.isdigit() and int(text) > 0:
        return Density(0.0, int(text))
    if text.strip() == "100%":
        return Density(1.0)
    share = Density(parse_fraction(text, where))
    if not share.fraction:
        raise ConfigError(f"{where}: must be above 0, got {text!r}")
    return share
