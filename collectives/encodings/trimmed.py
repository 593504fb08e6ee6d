"""Elements without the zeros at the end; a message's length tells how many there are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ringleaf.collectives.compression.packing import ArrayCodec, Bytes
from ringleaf.core.tensors import Array
from ringleaf.core.units import format_count
from ringleaf.errors import ProtocolError


@dataclass(frozen=True)
class Trimmed(ArrayCodec):
    """The codec of messages whose lengths differ, in rooms of one size."""

    name: ClassVar[str] = "trimmed"

    def pack(self, values: Array) -> Bytes:
        """Return the elements up to the last one with a bit set, so -0.0 is kept."""
        used = np.flatnonzero(values.view(np.uint32))
        count = int(used[-1]) + 1 if used.size else 0
        return values[:count].copy().view(np.uint8)

    def unpack(self, data: Bytes, elements: int) -> Array:
        """Return the elements of a message, with zeros after its end.

        Raises:
            ProtocolError: If the message has a part of an element, or too many elements.
        """
        if data.size % 4 or data.size > 4 * elements:
            raise ProtocolError(
                f"trimmed: must be at most {format_count(elements, 'whole element')}, got "
                f"{format_count(data.size, 'byte')}"
            )
        result = np.zeros(elements, np.float32)
        result.view(np.uint8)[: data.size] = data
        return result


TRIMMED = CODEC = Trimmed()
