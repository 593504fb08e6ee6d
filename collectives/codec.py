"""Codecs, which write the data of a schedule's messages as bytes; pure.

A schedule without a codec sends its chunks as they are. With one, a message's chunks are
encoded when they leave, the bytes on the wire are those of the encoding, however many
they are, and an arriving message is decoded before it is applied. So the size of a message may
depend on the data.

A codec works on tensors of PyTorch. Ringleaf's own work on arrays inside (`OnArrays`), so that they
do without PyTorch; `encoded` and `decoded` use either kind on arrays.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from ringleaf.core.registry import Registry
from ringleaf.core.tensors import Array, ElementType, as_array, as_tensor, memory_type, torch_type

if TYPE_CHECKING:
    import torch


class Codec(Protocol):
    """A way to write neighbouring elements as bytes.

    A message may hold several chunks, and is encoded as a whole. Cutting must not matter: the
    decoded message equals its chunks, each encoded and decoded by itself.
    """

    @property
    def name(self) -> str:
        """The codec's name in the registry."""

    @property
    def is_lossless(self) -> bool:
        """Whether decoding gives exactly the bits that were encoded."""

    def encode(self, values: torch.Tensor) -> torch.Tensor:
        """Return the bytes (uint8) of a flat tensor, which is not changed."""

    def decode(self, data: torch.Tensor, elements: int, dtype: torch.dtype) -> torch.Tensor:
        """Return the `elements` elements of type `dtype` that the whole of `data` encodes.

        Raises:
            ProtocolError: If `data` is not a valid encoding of them.
        """

    def most_bytes(self, elements: int, item_bytes: int) -> int:
        """Return the largest number of bytes that `elements` elements can take."""


@runtime_checkable
class Lossy(Protocol):
    """A codec that loses something and says how much; results are judged by that bound."""

    def error_bound(self, values: torch.Tensor) -> torch.Tensor:
        """Return how far each element, encoded and decoded, may be from `values` (float64)."""


class OnArrays(ABC):
    """The base of codecs that work on arrays; they have PyTorch's tensors, too."""

    @abstractmethod
    def encode_array(self, values: Array) -> Array:
        """Return the bytes (uint8) of a flat array, which is not changed."""

    @abstractmethod
    def decode_array(self, data: Array, elements: int, dtype: ElementType) -> Array:
        """Return the `elements` elements of type `dtype` that the whole of `data` encodes.

        Raises:
            ProtocolError: If `data` is not a valid encoding of them.
        """

    def encode(self, values: torch.Tensor) -> torch.Tensor:
        """Return the bytes (uint8) of a flat tensor, which is not changed."""
        array = as_array(values.view(torch_type(memory_type(values.dtype))))
        return as_tensor(self.encode_array(array))

    def decode(self, data: torch.Tensor, elements: int, dtype: torch.dtype) -> torch.Tensor:
        """Return the elements that the whole of `data` encodes.

        Raises:
            ProtocolError: If `data` is not a valid encoding of them.
        """
        array = self.decode_array(as_array(data), elements, memory_type(dtype))
        return as_tensor(array).view(dtype)


def encoded(codec: Codec, values: Array) -> Array:
    """Return the bytes (uint8) of a flat array, which is not changed.

    Raises:
        ConfigError: If the codec needs PyTorch, and there is none.
    """
    kind: Any = type(codec)  # derived ones may have a way of their own
    if isinstance(codec, OnArrays) and kind.encode is OnArrays.encode:
        return codec.encode_array(values)
    return as_array(codec.encode(as_tensor(values)))


def decoded(codec: Codec, data: Array, elements: int, dtype: ElementType) -> Array:
    """Return the `elements` elements of type `dtype` that the whole of `data` encodes.

    Raises:
        ConfigError: If the codec needs PyTorch, and there is none.
        ProtocolError: If `data` is not a valid encoding of them.
    """
    kind: Any = type(codec)
    if isinstance(codec, OnArrays) and kind.decode is OnArrays.decode:
        return codec.decode_array(data, elements, dtype)
    return as_array(codec.decode(as_tensor(data), elements, torch_type(dtype)))


def is_lossy(codec: Codec | None) -> bool:
    """Return whether messages lose something when `codec` encodes them."""
    return codec is not None and not codec.is_lossless


CODECS: Registry[Codec] = Registry("codecs", "codec", "collectives/encodings", "CODEC")
"""The codecs by name. A new one is a file in `codecs`, or an entry point of a package."""
