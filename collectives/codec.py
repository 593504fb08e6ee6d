"""Codecs, which write the data of a schedule's messages as bytes; pure torch.

A schedule without a codec sends its chunks as they are. With one, a message's chunks are
encoded when they leave, the bytes on the wire are those of the encoding, however many
they are, and an arriving message is decoded before it is applied. So the size of a message may
depend on the data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from ringleaf.registry import Registry

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


def is_lossy(codec: Codec | None) -> bool:
    """Return whether messages lose something when `codec` encodes them."""
    return codec is not None and not codec.is_lossless


CODECS: Registry[Codec] = Registry("codecs", "codec", "collectives/codecs", "CODEC")
"""The codecs by name. A new one is a file in `codecs`, or an entry point of a package."""
