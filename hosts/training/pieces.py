"""Gradients cut for the network: small layers are fused, large ones partitioned."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ringleaf.hosts.training.model import DTYPE_BYTES, Model


@dataclass(frozen=True, slots=True)
class GradientPiece:
    """A range of the model's gradient, reduced by one collective.

    Gradients lie in a model's buffer as backward passes make them: the last layer's first.
    """

    number: int
    start: int  # elements of the buffer
    stop: int
    layers: tuple[int, ...]  # the layers whose gradients it has a part of

    @property
    def elements(self) -> int:
        """Return the number of elements of the piece."""
        return self.stop - self.start

    @property
    def front(self) -> int:
        """The layer whose backward pass completes it, and whose next forward pass needs it."""
        return min(self.layers)


def cut(
    model: Model, *, fuse_bytes: int = 0, partition_bytes: int | None = None
) -> list[GradientPiece]:
    """Cut a model's gradient into pieces, in the order in which they become ready.

    Args:
        model: Layers without a gradient are passed over.
        fuse_bytes: Layers are put together until they have this size (PyTorch DDP's buckets,
            Horovod's fusion buffer); 0: each is by itself.
        partition_bytes: Larger parts are cut into equal pieces of at most this size
            (ByteScheduler, P3); None: nothing is cut.
    """
    item = DTYPE_BYTES[model.dtype]
    pieces: list[GradientPiece] = []
    for bucket in _buckets(model, fuse_bytes // item):
        start, stop = bucket[0][1], bucket[-1][2]
        most = stop - start if partition_bytes is None else max(partition_bytes // item, 1)
        parts = -(-(stop - start) // most)
        edges = [start + (stop - start) * part // parts for part in range(parts + 1)]
        for a, b in pairwise(edges):
            layers = tuple(layer for layer, first, end in bucket if first < b and a < end)
            pieces.append(GradientPiece(len(pieces), a, b, layers))
    return pieces


def group(model: Model, groups: Sequence[Sequence[int]]) -> list[GradientPiece]:
    """Return a piece for each group of layers; together they are all layers that have a gradient.

    Args:
        model: The model.
        groups: Layers that are next to each other, from the back to the front.
    """
    pieces: list[GradientPiece] = []
    at = 0
    for layers in groups:
        stop = at + sum(model.layers[layer].elements for layer in layers)
        pieces.append(GradientPiece(len(pieces), at, stop, tuple(layers)))
        at = stop
    assert at == model.elements
    return pieces


def _buckets(model: Model, least: int) -> Iterator[list[tuple[int, int, int]]]:
    """Yield runs of layers with `least` elements together: (layer, start, stop) each."""
    bucket: list[tuple[int, int, int]] = []
    at = 0
    for index in reversed(range(len(model.layers))):
        elements = model.layers[index].elements
        if not elements:
            continue
        bucket.append((index, at, at + elements))
        at += elements
        if at - bucket[0][1] >= least:
            yield bucket
            bucket = []
    if bucket:
        yield bucket
