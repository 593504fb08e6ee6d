"""SparCML's streams: pairs of index and value, or all values where that is smaller.

    bytes       sparse                      dense
    0:4         count of pairs              0xFFFFFFFF
    4:          the values of all pairs     all values
    then        their indices, uint32

Numbers are little-endian, as in memory. With c bytes per index and v per value, n elements of
which k are not zero take 4 + k (c + v) or 4 + n v bytes, so a stream turns dense above
k = n v / (c + v) (the paper's delta), half of the elements if they have 4 bytes.

An element is not zero if it has a bit set: -0.0 and NaN are kept, and decoding gives the same bits.

Source:
    Renggli, Ashkboos, Aghagolzadeh, Alistarh and Hoefler, "SparCML: high-performance sparse
    communication for machine learning", SC '19, section 5.1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ringleaf.collectives.codec import OnArrays
from ringleaf.core.tensors import Array, ElementType
from ringleaf.core.units import format_count
from ringleaf.errors import ProtocolError

HEADER_BYTES = 4
INDEX_BYTES = 4
_DENSE = -1


@dataclass(frozen=True, slots=True)
class SparseStream(OnArrays):
    """The codec of index-value streams that turn dense."""

    name: str = "sparse-stream"
    is_lossless: bool = True

    def encode_array(self, values: Array) -> Array:
        """Return the smaller of both forms."""
        values = np.ascontiguousarray(values)
        item = values.itemsize
        positions = np.flatnonzero(values.view(f"i{item}"))
        if positions.size * pair_bytes(item) > values.nbytes:
            return np.concatenate([_header(_DENSE), values.view(np.uint8)])
        indices = positions.astype(np.uint32).view(np.uint8)
        return np.concatenate([_header(positions.size), values[positions].view(np.uint8), indices])

    def decode_array(self, data: Array, elements: int, dtype: ElementType) -> Array:
        """Return all values, zeros included.

        Raises:
            ProtocolError: If the size does not match the header, or an index is too large.
        """
        item = dtype.itemsize
        if data.size < HEADER_BYTES:
            raise ProtocolError(
                f"sparse stream: needs a header, got {format_count(data.size, 'byte')}"
            )
        count = int(data[:HEADER_BYTES].copy().view(np.int32)[0])
        body = data[HEADER_BYTES:]
        body_bytes = elements * item if count == _DENSE else count * pair_bytes(item)
        if body.size != body_bytes:
            raise ProtocolError(
                f"sparse stream: {format_count(count, 'pair')} of "
                f"{format_count(elements, 'element')} take {format_count(body_bytes, 'byte')}, "
                f"got {body.size}"
            )
        if count == _DENSE:
            return body.copy().view(dtype)
        result = np.zeros(elements, dtype)
        split = count * item
        result[_indices(body[split:], elements)] = body[:split].copy().view(dtype)
        return result

    def most_bytes(self, elements: int, item_bytes: int) -> int:
        """Return the dense form's size: no sparse one is larger."""
        return HEADER_BYTES + elements * item_bytes


def pair_bytes(item_bytes: int) -> int:
    """Return the bytes that an element that is not zero takes in the sparse form."""
    return INDEX_BYTES + item_bytes


def _header(count: int) -> Array:
    return np.array([count], np.int32).view(np.uint8)


def _indices(data: Array, elements: int) -> Array:
    indices = data.copy().view(np.uint32)
    if indices.size and int(indices.max()) >= elements:
        raise ProtocolError(
            f"sparse stream: indices must be below {elements}, got {int(indices.max())}"
        )
    return indices


SPARSE_STREAM = SparseStream()
