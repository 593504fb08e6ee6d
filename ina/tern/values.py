"""Ternary elements as bits of packets, and sums of them as bits of counts."""

from __future__ import annotations

import numpy as np

from ringleaf.core.arena import Bytes
from ringleaf.core.compiled import inline
from ringleaf.ina.switchml.scaling import Floats
from ringleaf.ina.tern.wire import PLANE_BYTES, PLANES


@inline
def scale_bits(values: Floats) -> int:
    """Return the bits of the magnitude of elements that are not zero; 0 if all are."""
    words = values.view(np.uint32)
    most = 0
    for i in range(values.size):
        most = max(most, int(words[i]) & 0x7FFFFFFF)
    return most


@inline
def write_levels(values: Floats, planes: Bytes) -> None:
    """Write the levels plus one of a block's elements, two bits each; 0 behind the last."""
    for i in range(planes.size):
        planes[i] = 0
    for i in range(values.size):
        at, bit = i >> 3, 1 << (i & 7)
        if values[i] > 0:
            planes[PLANE_BYTES + at] |= bit
        elif values[i] == 0:
            planes[at] |= bit


@inline
def read_sums(planes: Bytes, values: Floats, workers: int, scale: float) -> None:
    """Write the sums of all workers' elements, from counts that are larger by their number."""
    for i in range(values.size):
        count = 0
        for plane in range(PLANES):
            count |= (int(planes[plane * PLANE_BYTES + (i >> 3)]) >> (i & 7) & 1) << plane
        values[i] = np.float32((count - workers) * scale)
