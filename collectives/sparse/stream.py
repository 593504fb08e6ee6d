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
from typing import TYPE_CHECKING

from ringleaf.errors import ProtocolError

if TYPE_CHECKING:
    import torch

HEADER_BYTES = 4
INDEX_BYTES = 4
_DENSE = -1


@dataclass(frozen=True, slots=True)
class SparseStream:
    """The codec of index-value streams that turn dense."""

    name: str = "sparse-stream"
    is_lossless: bool = True

    def encode(self, values: torch.Tensor) -> torch.Tensor:
        """Return the smaller of both forms."""
        import torch  # takes a second, and algorithms' names are known without it

        item = values.element_size()
        bits = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[item]
        positions = values.view(bits).nonzero().view(-1)
        count = positions.numel()
        if count * (INDEX_BYTES + item) > values.numel() * item:
            return torch.cat((_header(_DENSE), values.view(torch.uint8)))
        indices = positions.to(torch.int32).view(torch.uint8)
        return torch.cat((_header(count), values[positions].view(torch.uint8), indices))

    def decode(self, data: torch.Tensor, elements: int, dtype: torch.dtype) -> torch.Tensor:
        """Return all values, zeros included.

        Raises:
            ProtocolError: If the size does not match the header, or an index is too large.
        """
        import torch

        item = dtype.itemsize
        if data.numel() < HEADER_BYTES:
            raise ProtocolError(f"sparse stream: needs a header, got {data.numel()} bytes")
        count = int(data[:HEADER_BYTES].clone().view(torch.int32))
        body = data[HEADER_BYTES:]
        wanted = elements * item if count == _DENSE else count * (item + INDEX_BYTES)
        if body.numel() != wanted:
            raise ProtocolError(
                f"sparse stream: {count} pairs of {elements} elements take {wanted} bytes, "
                f"got {body.numel()}"
            )
        if count == _DENSE:
            return body.clone().view(dtype)
        result = torch.zeros(elements, dtype=dtype)
        split = count * item
        result[_indices(body[split:], elements)] = body[:split].clone().view(dtype)
        return result

    def most_bytes(self, elements: int, item_bytes: int) -> int:
        """Return the dense form's size: no sparse one is larger."""
        return HEADER_BYTES + elements * item_bytes


def pair_bytes(item_bytes: int) -> int:
    """Return the bytes that an element that is not zero takes in the sparse form."""
    return INDEX_BYTES + item_bytes


def _header(count: int) -> torch.Tensor:
    import torch

    return torch.tensor([count], dtype=torch.int32).view(torch.uint8)


def _indices(data: torch.Tensor, elements: int) -> torch.Tensor:
    import torch

    indices = data.clone().view(torch.int32).to(torch.int64) & 0xFFFFFFFF
    if indices.numel() and int(indices.max()) >= elements:
        raise ProtocolError(
            f"sparse stream: indices must be below {elements}, got {int(indices.max())}"
        )
    return indices


SPARSE_STREAM = SparseStream()
