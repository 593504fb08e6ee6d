"""Out-of-order back-propagation (Oh et al., EuroSys 2022), data parallel: reverse first-k.

A layer's backward pass is two: the gradient of its inputs (dO), for which the layer in front of it
waits, and that of its weights (dW), for which only the network waits. The k layers in front have
their dW taken off the chain: they are computed last, the front layer's first, as the next forward
pass needs it first. So all dO end earlier, and gradients are ready in a better order. The source
fixes that, and that k is tuned; here it is the one, of those tried, with the shortest iteration in
a forecast of the job alone. Gradients go first in, first out. The front layer's dO is computed as
in an ordinary pass, though nobody needs it, so that both take the same time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ringleaf.hosts.schedulers.common.forecast import foresee
from ringleaf.hosts.schedulers.common.hooks import CollectivePs
from ringleaf.hosts.schedulers.fifo import FifoScheduler
from ringleaf.hosts.training.model import Model
from ringleaf.hosts.training.pieces import cut
from ringleaf.hosts.training.steps import BackwardStep

TRIES = 8
"""Values of k that are tried, besides 0."""


def reverse_first(model: Model, count: int) -> list[BackwardStep]:
    """Return the steps of a backward pass whose first `count` layers have their dW last."""
    return list(_reverse_first(model, count))


def _reverse_first(model: Model, count: int) -> Iterator[BackwardStep]:
    for number in reversed(range(len(model.layers))):
        layer = model.layers[number]
        if number >= count:
            yield BackwardStep(number, layer.backward_ps)
        else:
            yield BackwardStep(number, layer.backward_ps - layer.dw_ps, completes=False)
    for number in range(count):
        yield BackwardStep(number, model.layers[number].dw_ps)


class OutOfOrder(FifoScheduler):
    """The scheduler of out-of-order back-propagation."""

    name = "ooo-backprop"
    title = "out-of-order backprop"

    def steps(self, model: Model, collective_ps: CollectivePs) -> Sequence[BackwardStep]:
        """Return the steps of the best k that was tried."""
        pieces, layers = cut(model), len(model.layers)
        tried = sorted({layers * part // TRIES for part in range(TRIES + 1)})

        def period_ps(count: int) -> int:
            return foresee(model, pieces, collective_ps, reverse_first(model, count)).period_ps

        return reverse_first(model, min(tried, key=period_ps))


SCHEDULER = OutOfOrder()
