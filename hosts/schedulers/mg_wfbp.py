"""MG-WFBP (Shi et al., INFOCOM 2019): layers merged where that saves more than it delays.

Wait-free back-propagation sends a layer's gradient when it is ready; merging it into the layer in
front saves a collective's start-up time. From the back to the front, a layer is merged if the layer
in front of it is ready before the layer's own collective would end, and that collective has not
started by then, or less than a start-up time before. The times of collectives are a + b x bytes, as
the source fits them to measurements; here they are fitted to the forecast of an algorithm's time.
The rule is that of the released code. Merged gradients go first in, first out.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from ringleaf.hosts.schedulers.common.hooks import CollectivePs
from ringleaf.hosts.schedulers.fifo import FifoScheduler
from ringleaf.hosts.training.model import DTYPE_BYTES, Model
from ringleaf.hosts.training.pieces import GradientPiece, group


def groups(
    ready: Sequence[float], sizes: Sequence[float], start_up: float, per_size: float
) -> list[list[int]]:
    """Return groups of gradients that are reduced together, in the order of their backward passes.

    Args:
        ready: When each gradient is ready, the back layer's first.
        sizes: Their sizes, likewise.
        start_up: Time of a collective without bytes.
        per_size: Time that each unit of size adds.
    """
    all_merged: list[list[int]] = []
    merged: list[int] = []
    size, free = 0.0, 0.0  # of `merged`; when the collective before it is over
    for place, own in enumerate(sizes):
        merged.append(place)
        size += own
        start = max(free, ready[place])
        end = start + start_up + per_size * size
        if place + 1 < len(sizes):
            then = ready[place + 1]
            if then < end and (start >= then or then - start < start_up):
                continue
        all_merged.append(merged)
        merged, size, free = [], 0.0, end
    return all_merged


def end(
    parts: Sequence[Sequence[int]],
    ready: Sequence[float],
    sizes: Sequence[float],
    start_up: float,
    per_size: float,
) -> float:
    """Return when the last of these groups is reduced, each after the one before it."""
    time = 0.0
    for part in parts:
        size = sum(sizes[place] for place in part)
        time = max(time, ready[part[-1]]) + start_up + per_size * size
    return time


class MgWfbp(FifoScheduler):
    """The MG-WFBP scheduler."""

    name = "mg-wfbp"
    title = "MG-WFBP"

    def cut(self, model: Model, collective_ps: CollectivePs) -> list[GradientPiece]:
        """Return the model's merged gradients."""
        item = DTYPE_BYTES[model.dtype]
        backward = list(reversed(range(len(model.layers))))
        ends = list(accumulate(model.layers[layer].backward_ps for layer in backward))
        with_gradient = [
            (layer, end_ps)
            for layer, end_ps in zip(backward, ends, strict=True)
            if model.layers[layer].elements
        ]
        start_up = collective_ps(item)
        per_byte = (collective_ps(model.size_bytes) - start_up) / model.size_bytes
        sizes = [float(model.layers[layer].elements * item) for layer, _ in with_gradient]
        parts = groups([end_ps for _, end_ps in with_gradient], sizes, start_up, per_byte)
        return group(model, [[with_gradient[place][0] for place in part] for part in parts])


SCHEDULER = MgWfbp()
