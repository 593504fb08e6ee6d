"""PowerSGD: a matrix as the product of two thin ones, one of which is added up in each step."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from ringleaf.collectives.compression.member import Member, near_square
from ringleaf.collectives.compression.settings import parse_settings
from ringleaf.core.tensors import Array
from ringleaf.core.units import format_count
from ringleaf.errors import ConfigError


@dataclass
class PowerSGD(Member):
    """A compressor to rank r, in the form of the released code: one allreduce per step.

    At even steps, Q = M^T P with P orthonormal is added up, at odd ones P = M Q; the result is
    P Q^T. Factors start from the same random numbers on all ranks, and go on from step to step.
    Two steps carry 4 r (n + m) bytes. A flat tensor is taken as the nearly square matrix that
    holds it, or as one whose shape is given.

    Source:
        Vogels, Karimireddy and Jaggi, "PowerSGD: practical low-rank gradient compression for
        distributed optimization", NeurIPS 2019; and its released code.
    """

    name: ClassVar[str] = "powersgd"
    rank_of: int = 2
    shape: tuple[int, int] | None = None
    steps: int = 0
    factors: list[Array] = field(default_factory=list)  # (rows, r) and (columns, r)

    def carry(self, values: Array, seed: int) -> Array:
        """Return the new factor of this rank's matrix: r numbers per row, or per column."""
        matrix = self._matrix(values)
        if not self.factors:
            chance, rank = np.random.Generator(np.random.SFC64(0x50534744)), self._rank(matrix)
            self.factors = [
                chance.standard_normal((size, rank), np.float32) for size in matrix.shape
            ]
        which = (self.steps + 1) % 2
        self.steps += 1
        other = np.linalg.qr(self.factors[1 - which])[0]
        self.factors[1 - which] = np.ascontiguousarray(other, np.float32)
        return ((matrix if which == 0 else matrix.T) @ self.factors[1 - which]).reshape(-1)

    def own(self, carried: Array, elements: int) -> Array:
        """Return the product of the new factor and the other one."""
        which = self.steps % 2
        other = self.factors[1 - which]
        new = carried.reshape(-1, other.shape[1])
        product = new @ other.T if which == 0 else other @ new.T
        return np.ascontiguousarray(product.reshape(-1)[:elements])

    def result(self, total: Array, elements: int) -> Array:
        """Return the product with the sum of the new factors, which stays for the next step."""
        self.factors[self.steps % 2] = total.reshape(-1, self.factors[0].shape[1]).copy()
        return self.own(total, elements)

    def _rank(self, matrix: Array) -> int:
        return int(min(self.rank_of, *matrix.shape))

    def _matrix(self, values: Array) -> Array:
        rows, columns = self.shape or near_square(values.size)
        if rows * columns < values.size:
            raise ConfigError(
                f"compress: powersgd: a matrix of {format_count(values.size, 'element')} must "
                f"hold them, got {rows}x{columns}"
            )
        padded = np.zeros(rows * columns, np.float32)
        padded[: values.size] = values
        return padded.reshape(rows, columns)


def parse(text: str, where: str) -> PowerSGD:
    """Return the compressor for the text behind the colon; errors begin with `where`."""
    settings = parse_settings(text or "2", where, shape="")
    shape = None
    if settings.named["shape"]:
        rows, _, columns = settings.named["shape"].partition("x")
        shape = settings.whole(rows, 1, 1 << 30), settings.whole(columns, 1, 1 << 30)
    return PowerSGD(settings.whole(settings.first or "2", 1, 1 << 16), shape)


COMPRESSOR = parse
