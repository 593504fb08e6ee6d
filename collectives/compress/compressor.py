"""The interface of compressors, and the wrapper that puts one around an allreduce.

A compressor selects the elements of a tensor that are sent. Its result has the tensor's shape,
with zeros where nothing is sent, so that any allreduce can add it up; a sparse one then sends the
other elements only. With error feedback, a rank adds the part it did not send to its next tensor.

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
"""A function from one tensor per rank to one result per rank."""


class Compressor(Protocol):
    """A way to send less of a tensor."""

    @property
    def name(self) -> str:
        """The compressor's name in the registry."""

    def select(self, values: torch.Tensor, seed: int) -> torch.Tensor:
        """Return a new flat tensor: the elements of the flat `values` that are sent, else zeros.

        `seed` is the same on all ranks and changes from step to step.
        """


@dataclass(slots=True)
class Feedback:
    """A rank's memory of the values it has not sent, tensor by tensor."""

    compressor: Compressor
    left: dict[Hashable, torch.Tensor] = field(default_factory=dict)

    def before(self, values: torch.Tensor, seed: int, key: Hashable = None) -> torch.Tensor:
        """Return the tensor that is sent in place of `values`, and remember the rest.

        Args:
            values: Any shape; not changed.
            seed: The step's, the same on all ranks.
            key: Tells the tensor from others that are reduced.
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
        compressor: Selects the elements that are sent.
        allreduce: Adds those elements up.
        ranks: Number of participants.
        feedback: Whether the part that is not sent is added to the next tensor.
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
        """Add up the sent parts of one tensor per rank; one call is one step."""
        seed, self._step = self._step, self._step + 1
        if not self.feedback:
            for memory in self._memories:
                memory.left.pop(key, None)
        sent = [
            memory.before(tensor, seed, key)
            for memory, tensor in zip(self._memories, tensors, strict=True)
        ]
        return self.allreduce(sent)
