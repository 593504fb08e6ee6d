"""Quantisers whose levels are multiples of a unit, which ranks may agree on.

If all ranks have one unit, sums are multiples of it, too, and every message of any allreduce is
small; so are a switch's sums. Otherwise only messages with one rank's own elements are. Agreeing
takes an exchange of one number per rank before.
"""

from __future__ import annotations

from dataclasses import dataclass

from ringleaf.collectives.compression.member import Member
from ringleaf.core.tensors import Array


@dataclass
class ScaledCompressor(Member):
    """A compressor with a scale.

    Attributes:
        shares: Whether ranks agree on the largest scale.
        agreed: The largest of all ranks' scales, for the next step; None: each rank has its own.
    """

    shares: bool = False
    agreed: float | None = None

    def prepare(self, seed: int) -> None:
        """Take note of the step's seed before `scale` is asked for."""

    def scale(self, values: Array) -> float:
        """Return this rank's scale of a tensor."""
        raise NotImplementedError

    def scale_of(self, values: Array) -> float:
        """Return the scale of this step: the one agreed on, or this rank's."""
        return self.scale(values) if self.agreed is None else self.agreed

    def agree(self, largest: float) -> None:
        """Take note of the largest scale of all ranks."""
        self.agreed = largest
