"""1-bit Adam: Adam at first, then its variance is frozen, and its momentum goes with a bit each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from ringleaf.collectives.compression.member import Member
from ringleaf.collectives.compression.settings import parse_settings
from ringleaf.collectives.compressors.efsign import scaled_signs
from ringleaf.collectives.encodings.signs import CODEC as SIGNS
from ringleaf.core.tensors import Array

BETA1, BETA2, EPSILON = np.float32(0.9), np.float32(0.999), np.float32(1e-8)
LEAST = np.float32(0.1)


@dataclass
class OneBitAdam(Member):
    """A compressor whose result is Adam's step, times the ranks; plain SGD then applies it.

    For `warmup` steps, gradients go as they are, and all ranks do Adam, with bias correction
    (chosen). Then each rank's momentum is sent as signs times its mean magnitude, with error
    feedback, and the step is the mean momentum over the root of the frozen variance. That is not
    below a tenth of its mean (chosen: signs are as large where gradients are nearly zero, and
    would move those parameters without end). Servers'
    error feedback is `compress.rounds`' part.

    Source:
        Tang et al., "1-bit Adam: communication efficient large-scale training with Adam's
        convergence speed", ICML 2021, algorithm 1. It warms up for 15 to 20 % of all steps (from
        memory); the default here is a number of steps, as a step does not know how many come.
    """

    codec = SIGNS
    has_memory: ClassVar[bool] = True
    name: ClassVar[str] = "onebit-adam"
    warmup: int = 20
    steps: int = 0
    momentum: Array = field(default_factory=lambda: np.zeros(0, np.float32))
    variance: Array = field(default_factory=lambda: np.zeros(0, np.float32))
    left: Array = field(default_factory=lambda: np.zeros(0, np.float32))

    @property
    def is_warm(self) -> bool:
        """Whether the variance is frozen, so that signs are sent."""
        return self.steps > self.warmup

    def carry(self, values: Array, seed: int) -> Array:
        """Return the gradient, or the momentum's signs; `seed` does not matter."""
        if self.momentum.size != values.size:
            self.momentum, self.variance, self.left = (np.zeros_like(values) for _ in range(3))
        self.steps += 1
        if not self.is_warm:
            return values.copy()
        momentum = BETA1 * self.momentum + (1 - BETA1) * values + self.left
        sent = scaled_signs(momentum)
        self.left = momentum - sent
        return sent

    def result(self, total: Array, elements: int) -> Array:
        """Return the step, times the ranks; take note of the mean."""
        mean = total / np.float32(self.ranks)
        if self.is_warm:
            self.momentum = mean
        else:
            self.momentum = BETA1 * self.momentum + (1 - BETA1) * mean
            self.variance = BETA2 * self.variance + (1 - BETA2) * mean * mean
        count = min(self.steps, self.warmup)
        first = 1 - np.float64(BETA1) ** self.steps
        second = np.float32(1 - np.float64(BETA2) ** max(count, 1))
        root = np.sqrt(self.variance / second)
        if self.is_warm and root.size:
            root = np.maximum(root, LEAST * root.mean())
        return np.float32(self.ranks / first) * self.momentum / (root + EPSILON)


def parse(text: str, where: str) -> OneBitAdam:
    """Return the compressor for the text behind the colon; errors begin with `where`."""
    settings = parse_settings(text or "20", where)
    return OneBitAdam(settings.whole(settings.first, 1, 1 << 30))


COMPRESSOR = parse
