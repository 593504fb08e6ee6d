"""The gradients of a case's jobs, of the type that each system takes."""

from __future__ import annotations

from collections.abc import Sequence

from ringleaf.core.tensors import Array
from ringleaf.experiments.checking.data import TYPES, Noise
from ringleaf.experiments.workloads.jobs.ledger import SHIFT, GradientLedger
from ringleaf.ina.systems import System


class MixedLedger(GradientLedger):
    """A ledger of gradients that checks all sums.

    Args:
        elements: Number of elements of the largest model.
        ranks: Number of ranks of the largest job.
        seed: Seed of the random values.
        systems: The system that aggregates for each job, if any does.
        dtypes: The type of each job's elements: `float32` or `int32`.
        lanes: Values in the systems' packets.
    """

    def __init__(
        self,
        elements: int,
        ranks: int,
        *,
        seed: int,
        systems: Sequence[System | None],
        dtypes: Sequence[str],
        lanes: int,
    ) -> None:
        super().__init__(elements, ranks, seed=seed, systems=systems, lanes=lanes, check=True)
        length = elements + SHIFT * (ranks + 1)
        noises = {name: Noise(seed, 1, length, TYPES[name]) for name in set(dtypes)}
        self._of_type = {name: noise.part(0, 0, length) for name, noise in noises.items()}
        self._dtypes = dtypes

    def _source(self, job: int) -> Array:
        return self._of_type[self._dtypes[job]]
