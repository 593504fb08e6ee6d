"""The random numbers of PyTorch's generator on the CPU, without PyTorch.

Sparse inputs and the stepper's numbers were first drawn by it, and stay the same.

Source:
    Matsumoto and Nishimura, "Mersenne Twister: a 623-dimensionally equidistributed uniform
    pseudorandom number generator", ACM TOMACS 8(1), 1998: MT19937, seeded by `init_genrand`, as in
    NumPy's `RandomState`, whose streams are frozen. PyTorch takes words modulo the range.
"""

from __future__ import annotations

import numpy as np

from ringleaf.core.tensors import Array


class Mersenne:
    """A stream of random numbers; each call goes on behind the last one.

    Args:
        seed: The seed, of which the lowest 32 bits count, as in `torch.Generator.manual_seed`.
    """

    def __init__(self, seed: int) -> None:
        self._state = np.random.RandomState(seed & 0xFFFFFFFF)

    def words(self, count: int) -> Array:
        """Return uniform uint32, of shape (count,)."""
        return self._state.randint(0, 1 << 32, count, np.uint32)

    def integers(self, low: int, high: int, count: int) -> Array:
        """Return int32 from `low` to `high` (excluded), as `torch.randint` does: (count,)."""
        return (self.words(count) % np.uint32(high - low)).astype(np.int32) + np.int32(low)
