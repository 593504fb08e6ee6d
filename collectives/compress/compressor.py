"""The interface of compressors, and the wrapper that puts one around an allreduce.

A compressor says what of a tensor is sent. What it returns has the tensor's shape, zeros where
nothing is sent, so that any allreduce can add it up; a sparse one then sends only what is there.
With error feedback, a rank adds what it did not send to its next tensor.

Source:
    Karimireddy, Rebjock, Stich and Jaggi, "Error feedback fixes SignSGD and other gradient
    compression schemes", ICML 2019, algorithm 2.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    import torch

Allreduce: TypeAlias = "Callable[[Sequence[torch.Tensor]], Sequence[torch.Tensor]]"
"""From one tensor per rank to one result per rank."""


class Compressor(Protocol):
    """A way to send less of a tensor."""

    @property
    def name(self) -> str:
        """Its name in the registry."""

    def select(self, values: torch.Tensor, seed: int) -> torch.Tensor:
        """Return a new flat tensor: what of the flat `values` is sent, and zeros.

        The same on all ranks: `seed`, which changes from step to step.
        """


@dataclass(slots=True)
class Feedback:
    """A rank's memory of what it has not sent, tensor by tensor."""

    compressor: Compressor
    left: dict[Hashable, torch.Tensor] = field(default_factory=dict)

    def before(self, values: torch.Tensor, seed: int, key: Hashable = None) -> torch.Tensor:
        """Return what is sent in place of `values`, and remember the rest.

        Args:
            values: Any shape; stays as it is.
            seed: The step's, the same on all ranks.
            key: Which tensor of several it is.
        """
        wanted = values.reshape(-1)
        if key in self.left:
            wanted = wanted + self.left[key]
        sent = self.compressor.select(wanted, seed)
        self.left[key] = wanted - sent
        return sent.view(values.shape)


@dataclass(slots=True)
class CompressedAllreduce:
    """An allreduce of compressed tensors.

    Args:
        compressor: What is sent.
        allreduce: How that is added up.
        ranks: How many take part.
        feedback: Whether what is not sent is added to the next tensor.
    """

    compressor: Compressor
    allreduce: Allreduce
    ranks: int
    feedback: bool = True
    _memories: list[Feedback] = field(init=False)
    _step: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self._memories = [Feedback(self.compressor) for _ in range(self.ranks)]

    def __call__(
        self, tensors: Sequence[torch.Tensor], key: Hashable = None
    ) -> Sequence[torch.Tensor]:
        """Add up one tensor per rank, as far as they are sent; one call is one step."""
        seed, self._step = self._step, self._step + 1
        if not self.feedback:
            for memory in self._memories:
                memory.left.pop(key, None)
        sent = [
            memory.before(tensor, seed, key)
            for memory, tensor in zip(self._memories, tensors, strict=True)
        ]
        return self.allreduce(sent)
