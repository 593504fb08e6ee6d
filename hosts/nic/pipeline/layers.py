"""The layers of a network of integers, and the stages that they are divided into.

A layer multiplies a vector of 8-bit integers by a matrix, shifts the sums right, and cuts them to
0 to 127: a ReLU, as quantised networks have it. All that is exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from ringleaf.core.units import format_count
from ringleaf.errors import ConfigError

Int8 = npt.NDArray[np.int8]

LARGEST = 127
MOST_WEIGHT = 7
MOST_WIDTH = 1 << 14  # so that sums fit 32 bits
MOST_MESSAGES = 1 << 13


@dataclass(frozen=True, eq=False)
class DenseLayer:
    """A dense layer.

    Attributes:
        weights: (outputs, inputs).
        shift: Bits by which sums are shifted right.
    """

    weights: Int8
    shift: int

    @property
    def inputs(self) -> int:
        """Return the number of elements of the vector that the layer takes."""
        return self.weights.shape[1]

    @property
    def outputs(self) -> int:
        """Return the number of elements of the vector that the layer gives."""
        return self.weights.shape[0]

    @property
    def products(self) -> int:
        """Multiplications for one sample."""
        return self.weights.size

    def __call__(self, samples: Int8) -> Int8:
        """Return the layer's outputs, (samples, outputs), for (samples, inputs)."""
        sums = samples.astype(np.int64) @ self.weights.T.astype(np.int64)
        return np.clip(sums >> self.shift, 0, LARGEST).astype(np.int8)


def check_widths(widths: Sequence[int]) -> None:
    """Check the widths of layers.

    Raises:
        ConfigError: If there is no layer, or a width is out of range.
    """
    if len(widths) < 2:
        raise ConfigError(f"widths: must be two at least, got {list(widths)}; like 256,512,64")
    if not all(1 <= width <= MOST_WIDTH for width in widths):
        raise ConfigError(f"widths: must be 1 to {MOST_WIDTH}, got {list(widths)}")


def make_layers(widths: Sequence[int], seed: int) -> list[DenseLayer]:
    """Return layers with random weights.

    Args:
        widths: Elements of the inputs, then of each layer's outputs.
        seed: Seed of the weights.

    Raises:
        ConfigError: If there is no layer, or a width is out of range.
    """
    check_widths(widths)
    rng = np.random.default_rng(seed)
    layers = []
    for inputs, outputs in pairwise(widths):
        weights = rng.integers(-MOST_WEIGHT, MOST_WEIGHT + 1, (outputs, inputs)).astype(np.int8)
        # Sums spread by about 4 times sqrt(inputs) times an input's size: outputs stay as large.
        layers.append(DenseLayer(weights, (inputs.bit_length() + 1) // 2 + 1))
    return layers


def stage_edges(layers: int, stages: int) -> list[int]:
    """Return the first layer of each stage, and the end: neighbours, as many in each as can be.

    Raises:
        ConfigError: If there are fewer layers than stages.
    """
    if layers < stages:
        raise ConfigError(
            f"widths: must be of {format_count(stages, 'layer')} at least, one for each host, "
            f"got {layers}; take hosts: {layers}"
        )
    return [-(-layers * stage // stages) for stage in range(stages + 1)]


def divide(layers: Sequence[DenseLayer], stages: int) -> list[list[DenseLayer]]:
    """Return the layers of each stage.

    Raises:
        ConfigError: If there are fewer layers than stages.
    """
    return [list(layers[a:b]) for a, b in pairwise(stage_edges(len(layers), stages))]


def infer(layers: Sequence[DenseLayer], samples: Int8) -> Int8:
    """Return the outputs of all layers, one after the other: the reference of all runs."""
    for layer in layers:
        samples = layer(samples)
    return samples
