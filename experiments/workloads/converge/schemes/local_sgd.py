"""Local SGD: ranks take H steps of their own, then average how far they came.

Source:
    Stich, "Local SGD converges fast and communicates little", ICLR 2019. Differences are what is
    compressed (chosen).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ringleaf.experiments.workloads.converge.scheme import Moment, Setup

EVERY = 8


def train(setup: Setup) -> Iterator[Moment]:
    """Yield the moment after every average; `every` is H."""
    every = int(setup.setting("every", EVERY))
    programs, common = setup.programs(), setup.training.start()
    rate, mean = np.float32(setup.rate), np.float32(1 / setup.ranks)
    for first in range(0, setup.steps, every):
        steps = range(first, min(first + every, setup.steps))
        moved = []
        for rank in range(setup.ranks):
            own = common
            for step in steps:
                own = own - rate * setup.training.gradient(own, rank, step)
            moved.append(common - own)
        total = setup.carrier.together(programs, moved, first)[0]
        common = common - mean * total
        yield Moment(steps.stop, common, len(steps) * setup.compute_ps)


SCHEME = train
