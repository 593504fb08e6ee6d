"""The state of a stage of a layer pipeline, in registered memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ringleaf.core.arena import Arena, Store, Words
from ringleaf.core.compiled import inline
from ringleaf.core.views import int64_at
from ringleaf.hosts.nic.pipeline.layers import DenseLayer
from ringleaf.hosts.nic.state import STATE_AT

(
    STAGE, STAGES, SAMPLES, TILE, MESSAGES, PRODUCT_PS, LAYERS, INPUTS, OUTPUTS, PRODUCTS,
    IN_AT, OUT_AT, SCRATCH_AT, WIDEST, EXPECTED, COMPUTED, POSTED, ACKNOWLEDGED, FIRST_PS, LAST_PS,
) = range(20)  # fmt: skip
NUMBERS = 24
LAYER_WORDS = 4  # inputs, outputs, shift, address of the weights

AT_ONCE = 128  # messages that are expected, or not acknowledged, at a time


@dataclass(frozen=True, slots=True)
class PipelineStage:
    """A stage's part of the work.

    Args:
        number: The stage, from 0.
        stages: The number of stages.
        layers: Its layers.
        samples: Samples that go through.
        tile: Samples of a message; the last one may have fewer.
        product_ps: Time of a million multiplications.
    """

    number: int
    stages: int
    layers: Sequence[DenseLayer]
    samples: int
    tile: int
    product_ps: int

    @property
    def products(self) -> int:
        """Multiplications for a sample."""
        return sum(layer.products for layer in self.layers)

    @property
    def messages(self) -> int:
        """Return the number of messages that carry all samples, `tile` of them each."""
        return -(-self.samples // self.tile)

    @property
    def widest(self) -> int:
        """Return the largest number of outputs of the stage's layers."""
        return max(layer.outputs for layer in self.layers)


class StageState(NamedTuple):
    """A stage: its numbers. Compiled code returns an array only in a tuple."""

    numbers: Words  # (NUMBERS,)


@inline
def open_stage(arena: Arena, at: int) -> StageState:
    """Return an agent's stage."""
    return StageState(int64_at(arena.memory, arena.words[at + STATE_AT], NUMBERS))


def make_state(store: Store, stage: PipelineStage) -> int:
    """Return the address of a stage's state, in memory that is registered for it."""
    inputs, outputs = stage.layers[0].inputs, stage.layers[-1].outputs
    state_at = store.register_memory(8 * (NUMBERS + LAYER_WORDS * len(stage.layers)))
    weights_at = [store.register_memory(layer.products) for layer in stage.layers]
    in_at = store.register_memory(stage.samples * inputs)
    out_at = store.register_memory(stage.samples * outputs)
    scratch_at = store.register_memory(2 * stage.tile * stage.widest)
    arena = store.arena
    n = int64_at(arena.memory, state_at, NUMBERS)
    n[:] = 0
    for place, value in {
        STAGE: stage.number, STAGES: stage.stages, SAMPLES: stage.samples, TILE: stage.tile,
        MESSAGES: stage.messages, PRODUCT_PS: stage.product_ps, LAYERS: len(stage.layers),
        INPUTS: inputs, OUTPUTS: outputs, PRODUCTS: stage.products, IN_AT: in_at, OUT_AT: out_at,
        SCRATCH_AT: scratch_at, WIDEST: stage.widest,
    }.items():  # fmt: skip
        n[place] = value
    for number, (layer, at) in enumerate(zip(stage.layers, weights_at, strict=True)):
        row = int64_at(arena.memory, state_at + 8 * (NUMBERS + LAYER_WORDS * number), LAYER_WORDS)
        row[:] = layer.inputs, layer.outputs, layer.shift, at
        arena.memory[at : at + layer.products] = layer.weights.reshape(-1).view(np.uint8)
    return state_at


def spread_ps(arena: Arena, state_at: int) -> int:
    """Return the time from a stage's first result to its last."""
    n = int64_at(arena.memory, state_at, NUMBERS)
    return int(n[LAST_PS] - n[FIRST_PS])
