"""The state of a program that is followed: values, messages, thread blocks, and what was done."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ringleaf.collectives.files.msccl.buffers import Place
from ringleaf.collectives.files.msccl.document import Block, Instruction

Clock = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Contents:
    """The contents of a place: contributions of ranks to a logical chunk, as sets of bits."""

    chunk: int
    once: int
    twice: int = 0

    def plus(self, other: Contents) -> Contents:
        """Return the sum with another value of the same chunk."""
        twice = self.twice | other.twice | self.once & other.once
        return Contents(self.chunk, self.once | other.once, twice)


@dataclass(slots=True)
class Parcel:
    """A message: its contents, and the sender's clock."""

    thread: Thread
    step: int
    values: list[Contents]
    clock: Clock


@dataclass(frozen=True, slots=True)
class DoneInstruction:
    """A step that was done.

    Attributes:
        thread: Its thread block.
        number: Its number there.
        step: The step.
        taken: The message that it has received, if any.
        sent: The message that it has sent, if any.
        src: The places that it reads.
        dst: The places that it writes.
        chunks: The logical chunk of each.
    """

    thread: Thread
    number: int
    step: Instruction
    taken: Parcel | None
    sent: Parcel | None
    src: list[Place]
    dst: list[Place]
    chunks: list[int]


@dataclass(slots=True, eq=False)
class Thread:
    """A thread block at work."""

    rank: int
    block: Block
    number: int  # among all thread blocks
    clock: Clock
    next: int = 0  # the next step
    kept: dict[int, Clock] = field(default_factory=dict)  # clocks after steps others may wait for

    @property
    def is_done(self) -> bool:
        """Return whether the thread block has done all of its steps."""
        return self.next == len(self.block.steps)


def show(place: Place) -> str:
    """Return a place as text."""
    return f"{place[0]}[{place[1]}]"


def members(bits: int) -> Iterator[int]:
    """Yield the ranks of a set of bits."""
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest
