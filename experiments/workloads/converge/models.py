"""Small models on synthetic data: a flat vector of parameters, and each rank's gradients.

Classes are random directions (logistic regression) or random 8 x 8 patterns (the CNN), and samples
are theirs plus normal noise. Parameters are views of one flat vector, so that ranks whose
parameters differ (local SGD, gossip) share a module.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from ringleaf.core.tensors import Array
from ringleaf.errors import choose

CLASSES, SIDE = 10, 8
FEATURES = SIDE * SIDE
NOISE = 1.5  # standard deviations, of patterns of 1
SAMPLES, TESTED = 4096, 1024


def logistic() -> nn.Module:
    """Return a multinomial logistic regression: 650 parameters."""
    return nn.Linear(FEATURES, CLASSES)


def cnn() -> nn.Module:
    """Return two convolutions and a linear layer: 6 598 parameters."""
    return nn.Sequential(
        nn.Unflatten(1, (1, SIDE, SIDE)),
        nn.Conv2d(1, 8, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(16 * 16, CLASSES * 2),
        nn.ReLU(),
        nn.Linear(CLASSES * 2, CLASSES),
    )


MODELS: dict[str, Callable[[], nn.Module]] = {"logistic": logistic, "cnn": cnn}


@dataclass
class DealtModel:
    """A model with its data, dealt to ranks.

    Args:
        name: `logistic` or `cnn`.
        ranks: The number of ranks.
        batch: Samples of a rank's batch.
        seed: Of the data, the first parameters and the batches.
        skew: The share of a rank's samples that are of its own classes only (federated data); the
            others are of any.

    Raises:
        ConfigError: If there is no such model.
    """

    name: str
    ranks: int
    batch: int = 32
    seed: int = 1
    skew: float = 0.0

    def __post_init__(self) -> None:
        choose("model", "model", self.name, list(MODELS))
        torch.manual_seed(self.seed)
        self._module = MODELS[self.name]()
        self._parameters = list(self._module.parameters())
        chance = np.random.default_rng(self.seed)
        patterns = chance.standard_normal((CLASSES, FEATURES))
        labels = chance.integers(CLASSES, size=SAMPLES + TESTED)
        inputs = patterns[labels] + NOISE * FEATURES**0.5 / 4 * chance.standard_normal(
            (len(labels), FEATURES)
        )
        self._inputs = torch.from_numpy(inputs.astype(np.float32))
        self._labels = torch.from_numpy(labels)
        self._shards = self._deal(labels[:SAMPLES], chance)

    def _deal(self, labels: Array, chance: np.random.Generator) -> list[Array]:
        order = chance.permutation(len(labels))
        even = np.array_split(order, self.ranks)
        if not self.skew:
            return even
        by_class = np.array_split(order[np.argsort(labels[order], kind="stable")], self.ranks)
        cut = [round(self.skew * len(each)) for each in even]
        return [
            np.concatenate([own[:count], others[count:]])
            for own, others, count in zip(by_class, even, cut, strict=True)
        ]

    def start(self) -> Array:
        """Return the first parameters, (parameters,) float32."""
        return np.concatenate([p.detach().numpy().reshape(-1) for p in self._parameters])

    def gradient(self, parameters: Array, rank: int, step: int) -> Array:
        """Return a rank's gradient at a step's batch, (parameters,) float32."""
        chance = np.random.default_rng([self.seed, rank, step])
        places = chance.choice(self._shards[rank], self.batch, replace=False)
        self._load(parameters)
        loss = self._loss(places)
        gradients = torch.autograd.grad(loss, self._parameters)
        return np.concatenate([each.numpy().reshape(-1) for each in gradients])

    def judge(self, parameters: Array) -> tuple[float, float]:
        """Return the mean loss and the share of right answers, of samples that nobody trains on."""
        self._load(parameters)
        with torch.no_grad():
            answers = self._module(self._inputs[SAMPLES:])
            labels = self._labels[SAMPLES:]
            loss = nn.functional.cross_entropy(answers, labels)
            right = (answers.argmax(dim=1) == labels).double().mean()
        return float(loss), float(right)

    def _loss(self, places: Array) -> torch.Tensor:
        chosen = torch.from_numpy(places)
        answers = self._module(self._inputs[chosen])
        return nn.functional.cross_entropy(answers, self._labels[chosen])

    def _load(self, parameters: Array) -> None:
        start, flat = 0, torch.from_numpy(parameters)
        for each in self._parameters:
            stop = start + each.numel()
            each.data = flat[start:stop].view(each.shape)
            start = stop
