"""Backward passes as steps, each of which computes for one layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ringleaf.hosts.training.model import Model
from ringleaf.hosts.training.pieces import GradientPiece


@dataclass(frozen=True, slots=True)
class BackwardStep:
    """A step of a backward pass.

    The gradients of a layer's inputs (dO) are what the layer in front of it needs, and those of its
    weights (dW) are what is reduced. A step computes either, or both.
    """

    layer: int
    time_ps: int
    completes: bool = True  # the weights' gradient is there when it ends


def backward_steps(model: Model) -> list[BackwardStep]:
    """Return the steps of an ordinary backward pass: layer by layer, from the back."""
    return [
        BackwardStep(layer, model.layers[layer].backward_ps)
        for layer in reversed(range(len(model.layers)))
    ]


def made_by(
    steps: Sequence[BackwardStep], pieces: Sequence[GradientPiece]
) -> list[list[GradientPiece]]:
    """Return the pieces that are complete after each step."""
    ends = {step.layer: place for place, step in enumerate(steps) if step.completes}
    by_step: list[list[GradientPiece]] = [[] for _ in steps]
    for piece in pieces:
        by_step[max(ends[layer] for layer in piece.layers)].append(piece)
    return by_step
