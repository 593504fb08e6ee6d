"""An embedding table in one piece: batches, gradients, and the results that they must have.

All values are small integers, as floats. Their sums are exact in any order, so results of NICs,
hosts and this table are equal to the bit.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ringleaf.core.units import format_count
from ringleaf.errors import ConfigError

Floats = npt.NDArray[np.float32]
Indices = npt.NDArray[np.int64]

LARGEST_VALUE = 512
LARGEST_GRADIENT = 3
EXACT = 1 << 24
"""Whole numbers up to this one are exact as float32."""


def zipf(rows: int, exponent: float) -> npt.NDArray[np.float64]:
    """Return the probability of each rank of Zipf's law, from the most frequent on: (rows,).

    Source:
        Zipf, "Human behavior and the principle of least effort", 1949: the k-th has a share in
        proportion to k^-exponent.
    """
    shares = np.arange(1, rows + 1, dtype=np.float64) ** -exponent
    return np.asarray(shares / shares.sum())


class Reference:
    """A table, the batches of all ranks, and the table after their gradients.

    Args:
        ranks: Number of ranks.
        rows: Rows of the table.
        dim: Elements of a vector.
        bags: Bags of a rank's batch.
        per_bag: Look-ups of a bag.
        exponent: Of Zipf's law. Which row is the k-th most frequent is drawn, too.
        seed: Seed of everything.
    """

    def __init__(
        self,
        ranks: int,
        rows: int,
        dim: int,
        bags: int,
        per_bag: int,
        *,
        exponent: float,
        seed: int,
    ) -> None:
        self._rng = np.random.default_rng(seed)
        self._ranks, self._bags, self._per_bag = ranks, bags, per_bag
        self._shares = zipf(rows, exponent)
        self._row_of = self._rng.permutation(rows)
        values = self._rng.integers(-LARGEST_VALUE, LARGEST_VALUE + 1, (rows, dim))
        self.table: Floats = values.astype(np.float32)

    def draw(self) -> Indices:
        """Return the look-ups of a batch: (ranks, bags, per_bag)."""
        shape = self._ranks, self._bags, self._per_bag
        return np.asarray(self._row_of[self._rng.choice(len(self._shares), shape, p=self._shares)])

    def gradients(self) -> Floats:
        """Return gradients of all bags: (ranks, bags, dim)."""
        shape = self._ranks, self._bags, self.table.shape[1]
        drawn = self._rng.integers(-LARGEST_GRADIENT, LARGEST_GRADIENT + 1, shape)
        return drawn.astype(np.float32)

    def sums(self, lookups: Indices) -> Floats:
        """Return the sums of all bags: (ranks, bags, dim)."""
        return np.asarray(self.table[lookups].sum(axis=2, dtype=np.float32))

    def apply(self, lookups: Indices, gradients: Floats) -> None:
        """Subtract each bag's gradient from each of its rows, as often as it is looked up."""
        np.subtract.at(self.table, lookups, gradients[:, :, None, :])


def check_exact(lookups: int, per_bag: int, iterations: int) -> None:
    """Check that no value of a run can become so large that float32 would round it.

    Args:
        lookups: Look-ups of all ranks in an iteration.
        per_bag: Look-ups of a bag.
        iterations: Iterations of the run.

    Raises:
        ConfigError: If one could.
    """
    largest = LARGEST_VALUE + LARGEST_GRADIENT * lookups * iterations
    if per_bag * largest >= EXACT:
        raise ConfigError(
            f"iterations: results must be exact, and {format_count(lookups, 'look-up')} in each "
            f"of {format_count(iterations, 'iteration')} with {per_bag} in a bag could be "
            f"rounded, got {iterations}; take fewer iterations or smaller batches"
        )
