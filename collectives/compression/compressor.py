"""The interface of compressors, and the wrapper that puts one around an allreduce.

A compressor selects the elements of a tensor that are sent. Its result has the tensor's shape,
with zeros where nothing is sent, so that any allreduce can add it up; a sparse one then sends the
other elements only. A compressor may have a codec, which writes that with fewer bytes, and may give
other numbers to the allreduce than it selects: Ringleaf's own do (`member.Member`). With error
feedback, a rank adds the part it did not send to its next tensor.

Source:
    Karimireddy, Rebjock, Stich and Jaggi, "Error feedback fixes SignSGD and other gradient
    compression schemes", ICML 2019, algorithm 2.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from ringleaf.collectives.codec import Codec
from ringleaf.collectives.compression.member import Member
from ringleaf.core.tensors import Elements, as_array, as_given, as_tensor

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


def codec_of(compressor: Compressor) -> Codec | None:
    """Return the codec that writes what a compressor gives to an allreduce; None: as it is."""
    return getattr(compressor, "codec", None)


@dataclass(slots=True)
class Feedback:
    """A rank's memory of the values it has not sent, tensor by tensor.

    Args:
        compressor: The kind of compressor; each tensor gets a copy of it, which may keep things.
        rank: The rank that has this memory, of `ranks`.
        is_on: Whether what is not sent is added to the next tensor. A compressor that has a
            memory of its own uses that instead.
    """

    compressor: Compressor
    rank: int = 0
    ranks: int = 1
    is_on: bool = True
    left: dict[Hashable, Any] = field(default_factory=dict)
    _copies: dict[Hashable, Compressor] = field(default_factory=dict)

    def before(self, values: Elements, seed: int, key: Hashable = None) -> Elements:
        """Return the tensor that is sent in place of `values`, and remember the rest.

        Args:
            values: Any shape; not changed.
            seed: The step's, the same on all ranks.
            key: Tells the tensor from others that are reduced.
        """
        worth: Elements = self._send(values, seed, key)[1].reshape(values.shape)
        return worth

    def carry(self, values: Elements, seed: int, key: Hashable = None) -> Elements:
        """Return the flat tensor that is given to the allreduce; else as `before`."""
        carried: Elements = self._send(values, seed, key)[0]
        return carried

    def result(self, total: Elements, elements: int, key: Hashable = None) -> Elements:
        """Return the sum of the ranks' flat tensors, from the sum of what they carried."""
        compressor = self.copy(key)
        if not isinstance(compressor, Member):
            return total
        return as_given(compressor.result(as_array(total), elements), total)

    def copy(self, key: Hashable = None) -> Compressor:
        """Return this rank's compressor of a tensor."""
        if key not in self._copies:
            compressor = self._copies[key] = deepcopy(self.compressor)
            if isinstance(compressor, Member):
                compressor.take_place(self.rank, self.ranks)
        return self._copies[key]

    @np.errstate(all="ignore")
    def _send(self, values: Any, seed: int, key: Hashable) -> tuple[Any, Any]:
        """Return what is carried and what it is worth; remember the rest."""
        flat, compressor = values.reshape(-1), self.copy(key)
        own_memory = isinstance(compressor, Member) and compressor.has_memory
        if self.is_on and not own_memory and key in self.left:
            flat = flat + self.left[key]
        if isinstance(compressor, Member):
            elements = compressor.checked(as_array(flat))
            array = compressor.carry(elements, seed)
            carried = as_given(array, flat)
            sent = as_given(compressor.own(array, elements.size), flat)
        else:
            selected = compressor.select(as_tensor(as_array(flat)), seed)
            carried = sent = as_given(as_array(selected), flat)
        if self.is_on and not own_memory:
            self.left[key] = flat - sent
        return carried, sent


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
        self._memories = [
            Feedback(self.compressor, rank, self.ranks, self.feedback) for rank in range(self.ranks)
        ]

    def __call__(
        self, tensors: Sequence[torch.Tensor], key: Hashable = None
    ) -> Sequence[torch.Tensor]:
        """Add up the sent parts of one tensor per rank; one call is one step."""
        seed, self._step = self._step, self._step + 1
        carried = [
            memory.carry(tensor, seed, key)
            for memory, tensor in zip(self._memories, tensors, strict=True)
        ]
        shape, elements = tensors[0].shape, tensors[0].numel()
        return [
            memory.result(total, elements, key).view(shape)
            for memory, total in zip(self._memories, self.allreduce(carried), strict=True)
        ]
