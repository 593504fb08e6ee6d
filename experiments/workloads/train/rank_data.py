"""The data of ranks on their way: out of their buffers into tensors, and results back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ringleaf.core.tensors import Array
from ringleaf.experiments.workloads.train.parts import MatchedCalls
from ringleaf.experiments.workloads.train.ways import CallCarrier, CallCarriers


class Data(Protocol):
    """The ranks' data."""

    def buffer(self, rank: int, name: str) -> Array:
        """Return a rank's buffer, bytes."""

    def item_bytes(self, dtype: str) -> int:
        """Return the size of an element of a type, by torch's name."""


@dataclass(frozen=True, slots=True)
class FinishedCollective:
    """A collective that is over."""

    collective: MatchedCalls
    way: CallCarrier
    size_bytes: int
    begin_ps: int
    end_ps: int
    wrong: int | None  # elements; None: they were not checked


Check = Callable[[MatchedCalls, CallCarrier, Sequence[Array], Sequence[Array]], int | None]
"""Return the number of wrong elements, given all members' buffers before and after."""


Note = Callable[[FinishedCollective], None]
"""Takes each collective that is over."""


def buffers_of(data: Data, collective: MatchedCalls) -> list[Array]:
    """Return the members' buffers."""
    return [data.buffer(part.rank, part.buffer) for part in collective.parts]


def inputs_of(data: Data, collective: MatchedCalls, way: CallCarrier) -> list[Array]:
    """Return copies of what members give, as results are written over it."""
    pairs = zip(buffers_of(data, collective), way.layout.loads, strict=True)
    return [
        buffer[: max((each.buffer_at + each.size_bytes for each in pieces), default=0)].copy()
        for buffer, pieces in pairs
    ]


def pass_on(
    data: Data, collective: MatchedCalls, way: CallCarrier
) -> tuple[list[Array], list[Array]]:
    """Carry out a collective of one rank, or of nothing; return what is given, and the results."""
    inputs, buffers = inputs_of(data, collective, way), buffers_of(data, collective)
    tensor = np.zeros(way.layout.tensor_bytes, np.uint8)
    for gift, loads in zip(inputs, way.layout.loads, strict=True):
        load(tensor, gift, loads)
    for buffer, unloads in zip(buffers, way.layout.unloads, strict=True):
        unload(buffer, tensor, unloads)
    return inputs, buffers


def way_of(data: Data, ways: CallCarriers, collective: MatchedCalls) -> CallCarrier:
    """Return the way of a collective."""
    parts = [part.call for part in collective.parts]
    return ways.way(parts, data.item_bytes(collective.call.dtype))


def load(tensor: Array, buffer: Array, pieces: Sequence[tuple[int, int, int]]) -> None:
    """Copy pieces of a buffer to their places in a tensor, bytes."""
    for at, to, size in pieces:
        tensor[to : to + size] = buffer[at : at + size]


def unload(buffer: Array, tensor: Array, pieces: Sequence[tuple[int, int, int]]) -> None:
    """Copy pieces of a tensor to their places in a buffer, bytes."""
    for to, at, size in pieces:
        buffer[to : to + size] = tensor[at : at + size]
