"""OMGS-SGD (Shi et al., INFOCOM 2020): layers merged before a few elements of them are selected.

Each rank selects the largest elements of a layer's gradient, and all ranks gather all ranks' pairs
of index and value. Merging a layer into the one in front saves a start-up time, but delays it, and
one selection of both takes longer than two. From the back to the front, a layer is merged if that
adds less than it saves (`groups`). Selecting from x elements takes s x log2 x, gathering k pairs
2 (a + 4 b k P) on P ranks. The rule and both forms are those of the released code.

Chosen here: `DENSITY`, the part that is selected; s (`SELECT_PS`), which the source measures; a and
b, from the forecast of the job's algorithm. Selection takes its time on the accelerator, behind the
backward pass of a group's front layer. Pairs are not only gathered: the job's algorithm adds them,
and writes what is not zero. What is not selected is lost, as gradients here do not train anything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import log2

from ringleaf.collectives.compression.share import Density
from ringleaf.hosts.schedulers.common.hooks import CollectivePs
from ringleaf.hosts.schedulers.fifo import FifoScheduler
from ringleaf.hosts.training.model import Model
from ringleaf.hosts.training.pieces import GradientPiece, group
from ringleaf.hosts.training.steps import BackwardStep, backward_steps

DENSITY = 0.01
SELECT_PS = 10
PAIR_BYTES = 8

Time = Callable[[int], float]
"""Time by number of elements."""


def groups(
    backward: Sequence[float], sizes: Sequence[int], select: Time, gather: Time
) -> list[list[int]]:
    """Return groups of gradients, by place, in the order of their backward passes.

    Args:
        backward: Time of each gradient's backward pass, the back layer's first.
        sizes: Their elements, likewise.
        select: Time of selecting from so many elements.
        gather: Time of gathering what is selected of so many.
    """
    all_merged: list[list[int]] = []
    merged: list[int] = []
    size, passed, free = 0, 0.0, 0.0  # of `merged`; end of its pass; end of the gathering before
    for place, own in enumerate(sizes):
        merged.append(place)
        size += own
        passed += backward[place]
        ready = passed + select(size)
        start = max(free, ready)
        if place + 1 < len(sizes):
            other = sizes[place + 1]
            longer = select(size + other) - select(size) - select(other)
            adds = backward[place + 1] + longer - (start - ready)
            if adds < gather(size) + gather(other) - gather(size + other):
                continue
        all_merged.append(merged)
        merged, passed, free = [], ready, start + gather(size)
        size = 0
    return all_merged


def select_ps(elements: int) -> int:
    """Return the time of selecting from so many elements."""
    return round(SELECT_PS * elements * log2(max(elements, 1)))


class OmgsSgd(FifoScheduler):
    """The OMGS-SGD scheduler."""

    name = "omgs-sgd"
    title = "OMGS-SGD"
    compress = f"topk:{DENSITY}"

    def cut(self, model: Model, collective_ps: CollectivePs) -> list[GradientPiece]:
        """Return the model's merged gradients."""
        start_up = collective_ps(PAIR_BYTES)
        per_pair = (collective_ps(PAIR_BYTES << 20) - start_up) / (1 << 20)

        def gather(elements: int) -> float:
            return start_up + per_pair * Density(DENSITY).of(elements)

        layers, backward, passed = [], [], 0
        for step in backward_steps(model):
            passed += step.time_ps
            if model.layers[step.layer].elements:
                layers.append(step.layer)
                backward.append(passed)
                passed = 0
        sizes = [model.layers[layer].elements for layer in layers]
        parts = groups(backward, sizes, select_ps, gather)
        return group(model, [[layers[place] for place in part] for part in parts])

    def steps(self, model: Model, collective_ps: CollectivePs) -> list[BackwardStep]:
        """Return an ordinary backward pass; a group's last step selects from its elements."""
        pieces = self.cut(model, collective_ps)
        extra = {piece.front: select_ps(piece.elements) for piece in pieces}
        return [
            BackwardStep(step.layer, step.time_ps + extra.get(step.layer, 0))
            for step in backward_steps(model)
        ]


SCHEDULER = OmgsSgd()
