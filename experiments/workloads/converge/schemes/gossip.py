"""D-PSGD: each rank averages its parameters with two neighbours', and adds its own gradient's step.

Source:
    Lian et al., "Can decentralized algorithms outperform centralized algorithms?", NIPS 2017,
    algorithm 1, on a ring with weights 1/3. Parameters go as they are, so compressors don't matter.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ringleaf.collectives.compression.program import Post
from ringleaf.experiments.workloads.converge.scheme import ByMessages, Moment, Setup


def train(setup: Setup) -> Iterator[Moment]:
    """Yield the moment after every step; the mean of all ranks' parameters is judged."""
    ranks, third = setup.ranks, np.float32(1 / 3)
    own = [setup.training.start() for _ in range(ranks)]
    for step in range(setup.steps):
        gradients = [setup.training.gradient(own[rank], rank, step) for rank in range(ranks)]
        asks = [
            Post(dict.fromkeys({(rank - 1) % ranks, (rank + 1) % ranks} - {rank}, own[rank]))
            for rank in range(ranks)
        ]
        received = setup.carrier.exchange(asks)
        mixed = []
        for rank, got in enumerate(received):
            assert isinstance(got, dict)
            near = [got.get((rank + way) % ranks, own[rank]) for way in (-1, 1)]
            mixed.append(third * (own[rank] + near[0] + near[1]))
        rate = np.float32(setup.rate)
        own = [m - rate * g for m, g in zip(mixed, gradients, strict=True)]
        yield Moment(step + 1, np.add.reduce(own) / np.float32(ranks), setup.compute_ps)


SCHEME = ByMessages(train)
