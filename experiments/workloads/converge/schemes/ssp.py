"""Stale synchronous parallel: fast ranks run ahead of slow ones, by a bounded number of steps.

Rank 0 keeps the parameters. A rank that has computed a gradient sends it there, and gets the
parameters back; it waits when it is more than `staleness` steps ahead of the slowest. Ranks' speeds
differ: rank r takes 1 + spread r / (n - 1) times as long as rank 0 to compute. A rank's messages
have the network to themselves (chosen): times of pushes and pulls are those of a network without
others' traffic.

Source:
    Ho et al., "More effective distributed ML via a stale synchronous parallel parameter server",
    NIPS 2013.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ringleaf.collectives.compression.program import Post
from ringleaf.core.tensors import Array
from ringleaf.experiments.workloads.converge.scheme import ByMessages, Moment, Setup

STALENESS, SPREAD = 3, 1.0


def train(setup: Setup) -> Iterator[Moment]:
    """Yield the moment after as many gradients as there are ranks."""
    ranks, staleness = setup.ranks, int(setup.setting("staleness", STALENESS))
    spread = setup.setting("spread", SPREAD)
    factors = [1 + spread * rank / max(ranks - 1, 1) for rank in range(ranks)]
    parameters = setup.training.start()
    copies, done = [parameters] * ranks, [0] * ranks
    ready_ps = [round(factor * setup.compute_ps) for factor in factors]
    risen_ps = 0  # when the slowest rank last went on
    latest_ps = 0  # when the last of all gradients so far had come; ranks' exchanges overlap

    def start_ps(rank: int) -> int:
        is_at_bound = done[rank] == min(done) + staleness
        return max(ready_ps[rank], risen_ps if is_at_bound else 0)

    for number in range(setup.steps * ranks):
        may = [rank for rank in range(ranks) if done[rank] <= min(done) + staleness]
        rank = min(may, key=lambda each: (start_ps(each), each))
        gradient = setup.training.gradient(copies[rank], rank, done[rank])
        came, push_ps = _send(setup, gradient, rank, 0)
        parameters = parameters - np.float32(setup.rate / ranks) * came
        copies[rank], pull_ps = _send(setup, parameters, 0, rank)
        end_ps, slowest = start_ps(rank) + push_ps + pull_ps, min(done)
        latest_ps = max(latest_ps, end_ps)
        done[rank] += 1
        if min(done) > slowest:
            risen_ps = max(risen_ps, end_ps)
        ready_ps[rank] = end_ps + round(factors[rank] * setup.compute_ps)
        if (number + 1) % ranks == 0:
            yield Moment((number + 1) / ranks, parameters, 0, latest_ps)


def _send(setup: Setup, values: Array, src: int, dst: int) -> tuple[Array, int]:
    """Return the values as they arrive, and the time that it takes."""
    if src == dst:
        return values, 0
    before_ps = setup.carrier.cost.time_ps
    asks = [Post({dst: values} if rank == src else {}) for rank in range(setup.ranks)]
    received = setup.carrier.exchange(asks)[dst]
    assert isinstance(received, dict)
    return received[src], setup.carrier.cost.time_ps - before_ps


SCHEME = ByMessages(train)
