"""Synchronous SGD: all ranks add up gradients in every step.

Source:
    Chen, Pan, Monga, Bengio and Jozefowicz, "Revisiting distributed synchronous SGD", 2016.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ringleaf.experiments.workloads.converge.scheme import Moment, Setup


def train(setup: Setup) -> Iterator[Moment]:
    """Yield the moment after every step."""
    programs, parameters = setup.programs(), setup.training.start()
    for step in range(setup.steps):
        gradients = [setup.training.gradient(parameters, rank, step) for rank in range(setup.ranks)]
        total = setup.carrier.together(programs, gradients, step)[0]
        parameters = parameters - np.float32(setup.rate / setup.ranks) * total
        yield Moment(step + 1, parameters, setup.compute_ps)


SCHEME = train
