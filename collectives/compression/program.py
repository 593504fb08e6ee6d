"""Steps of several exchanges: what each rank asks for, in the same order as all others.

A program is one rank's side of a compressed allreduce: a generator that yields what it gives to an
exchange, gets what comes back, and returns the sum of all ranks' tensors as it knows it. It sees no
other rank's data but by exchanges, and does no I/O; whoever drives all ranks' programs carries
their exchanges over a network, or adds up in memory (tests do).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

import numpy as np

from ringleaf.collectives.codec import Codec
from ringleaf.collectives.collective import Collective
from ringleaf.collectives.compression.compressor import Compressor, Feedback, codec_of
from ringleaf.collectives.compression.member import Member
from ringleaf.collectives.compression.scaled import ScaledCompressor
from ringleaf.core.tensors import Array
from ringleaf.errors import ConfigError


@dataclass(frozen=True)
class Ask:
    """One rank's part in an exchange; all ranks ask for the same one.

    Attributes:
        collective: The collective; its result comes back, as an array of the same shape. An
            all-gather takes block `rank` of `ranks` equal blocks from here.
        values: Flat float32, the rank's input.
        codec: Writes messages; None: they go as they are.
        root: The root of a broadcast.
    """

    collective: Collective
    values: Array
    codec: Codec | None = None
    root: int = 0


@dataclass(frozen=True)
class Post:
    """Messages of one rank to others, of any lengths: {to: flat float32}.

    What comes back is {from: flat float32}, each as long as the message, or with zeros behind.
    """

    messages: Mapping[int, Array] = field(default_factory=dict)


Step: TypeAlias = Generator[Ask | Post, "Array | dict[int, Array]", Array]


class CompressedProgram(Protocol):
    """One rank's side of an allreduce, with what it keeps from step to step."""

    def step(self, values: Array, seed: int) -> Step:
        """Take part in one step: return the sum of all ranks' `values`, flat, as far as sent."""


class Compressed:
    """The program of a compressor: one allreduce, and before it an agreement on the scale, if any.

    Args:
        compressor: The kind of compressor; None: tensors go as they are.
        rank: This rank, of `ranks`.
        feedback: Whether what is not sent is added to the next step's; None: if its authors do.
    """

    def __init__(
        self, compressor: Compressor | None, rank: int, ranks: int, *, feedback: bool | None = None
    ) -> None:
        self._rank, self._ranks = rank, ranks
        self._codec = None if compressor is None else codec_of(compressor)
        wants = getattr(compressor, "wants_feedback", True)
        is_on = wants if feedback is None else feedback
        self._memory = None if compressor is None else Feedback(compressor, rank, ranks, is_on)

    def step(self, values: Array, seed: int) -> Step:
        """Take part in one step."""
        if self._memory is None:
            total = yield Ask(Collective.ALLREDUCE, values)
            assert isinstance(total, np.ndarray)
            return total
        compressor = self._memory.copy()
        if isinstance(compressor, ScaledCompressor) and compressor.shares:
            compressor.prepare(seed)
            scales = np.zeros(self._ranks, np.float32)
            scales[self._rank] = compressor.scale(values)
            agreed = yield Ask(Collective.ALLREDUCE, scales)
            assert isinstance(agreed, np.ndarray)
            compressor.agree(float(agreed.max()))
        carried = self._memory.carry(values, seed)
        total = yield Ask(Collective.ALLREDUCE, carried, self._codec)
        assert isinstance(total, np.ndarray)
        return self._memory.result(total, values.size)


class TwoSided:
    """A compressor that ranks use on what they send, and owners of chunks on the sums, too.

    Ranks scatter their compressed tensors; the owner of a block adds up, compresses the sum with an
    error feedback of its own, and all gather the blocks. Both ways take the codec's bytes.

    Args:
        compressor: A kind that changes elements only.
        rank: This rank, of `ranks`.

    Source:
        Tang et al., "1-bit Adam", ICML 2021, section 5 (compressed allreduce); Seide et al., "1-bit
        stochastic gradient descent", Interspeech 2014, quantise sums in the same way.
    """

    def __init__(self, compressor: Compressor, rank: int, ranks: int) -> None:
        self._rank, self._ranks, self._codec = rank, ranks, codec_of(compressor)
        wants = getattr(compressor, "wants_feedback", True)
        self._mine = Feedback(compressor, rank, ranks, wants)
        self._sums = Feedback(compressor, rank, ranks, wants)

    def step(self, values: Array, seed: int) -> Step:
        """Take part in one step."""
        width = -(-values.size // self._ranks)
        padded = np.zeros(width * self._ranks, np.float32)
        padded[: values.size] = self._mine.carry(values, seed)
        total = yield Ask(Collective.REDUCE_SCATTER, padded, self._codec)
        assert isinstance(total, np.ndarray)
        mine = slice(self._rank * width, (self._rank + 1) * width)
        gathered = np.zeros_like(padded)
        used = max(min(values.size - self._rank * width, width), 0)
        block = total[mine][:used] / np.float32(self._ranks)
        gathered[mine][:used] = self._sums.carry(block, seed)
        result = yield Ask(Collective.ALL_GATHER, gathered, self._codec)
        assert isinstance(result, np.ndarray)
        return result[: values.size] * np.float32(self._ranks)


def changes_elements_only(compressor: Compressor) -> bool:
    """Return whether a compressor's result is what is carried, so that sums may be compressed."""
    if not isinstance(compressor, Member) or compressor.has_memory:
        return False
    kind = type(compressor)
    return kind.own is Member.own and kind.result is Member.result


Carry = Callable[[Sequence["Ask | Post"]], list["Array | dict[int, Array]"]]
"""Carries one exchange: from each rank's part of it to what comes back to each."""


def drive(steps: Sequence[Step], exchange: Carry) -> list[Array]:
    """Go through all ranks' steps, exchange by exchange; return what each of them returns.

    Raises:
        ConfigError: If they don't all ask for the same.
    """
    asks, results = _first(steps)
    while asks:
        if len(asks) < len(steps) or len({_kind(ask) for ask in asks}) > 1:
            raise ConfigError(f"program: all ranks must ask for the same, got {asks[:2]}")
        answers = exchange(asks)
        asks, results = [], []
        for step, answer in zip(steps, answers, strict=True):
            try:
                asks.append(step.send(answer))
            except StopIteration as end:
                results.append(end.value)
    return results


def _first(steps: Sequence[Step]) -> tuple[list[Ask | Post], list[Array]]:
    asks: list[Ask | Post] = []
    results: list[Array] = []
    for step in steps:
        try:
            asks.append(next(step))
        except StopIteration as end:
            results.append(end.value)
    return asks, results


def _kind(ask: Ask | Post) -> object:
    if isinstance(ask, Post):
        return None
    return ask.collective, ask.values.size, ask.codec, ask.root
