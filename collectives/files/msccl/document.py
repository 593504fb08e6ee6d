"""MSCCL's programs as data: each rank's thread blocks and their steps, with their lines.

algo name proto nchannels nchunksperloop ngpus coll inplace
gpu id i_chunks o_chunks s_chunks
copy i_off o_off
tb id send recv chan
step s type srcbuf srcoff dstbuf dstoff cnt depid deps hasdep
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum


class InstructionKind(Enum):
    """An instruction, as `type` names it."""

    NOP = "nop"
    SEND = "s"
    RECEIVE = "r"
    RECEIVE_COPY_SEND = "rcs"
    RECEIVE_REDUCE_SEND = "rrs"
    RECEIVE_REDUCE_COPY = "rrc"
    RECEIVE_REDUCE_COPY_SEND = "rrcs"
    COPY = "cpy"
    REDUCE = "re"

    @property
    def sends(self) -> bool:
        """Whether it sends to the thread block's peer."""
        return self in _SENDS

    @property
    def receives(self) -> bool:
        """Whether it receives from the thread block's peer."""
        return self in _RECEIVES


_SENDS = {
    InstructionKind.SEND,
    InstructionKind.RECEIVE_COPY_SEND,
    InstructionKind.RECEIVE_REDUCE_SEND,
    InstructionKind.RECEIVE_REDUCE_COPY_SEND,
}
_RECEIVES = {
    InstructionKind.RECEIVE,
    InstructionKind.RECEIVE_COPY_SEND,
    InstructionKind.RECEIVE_REDUCE_SEND,
    InstructionKind.RECEIVE_REDUCE_COPY,
    InstructionKind.RECEIVE_REDUCE_COPY_SEND,
}
ADDS = {
    InstructionKind.RECEIVE_REDUCE_COPY,
    InstructionKind.RECEIVE_REDUCE_SEND,
    InstructionKind.RECEIVE_REDUCE_COPY_SEND,
}
"""Instructions that add what they receive to what is at `src` here."""

USES_SRC = {InstructionKind.SEND, InstructionKind.COPY, InstructionKind.REDUCE, *ADDS}
USES_DST = (_RECEIVES - {InstructionKind.RECEIVE_REDUCE_SEND}) | {
    InstructionKind.COPY,
    InstructionKind.REDUCE,
}

BUFFERS = ("i", "o", "s")


@dataclass(frozen=True, slots=True)
class Range:
    """Neighbouring chunks of a buffer: `i`, `o` or `s` (input, output, scratch)."""

    buffer: str
    start: int
    count: int

    def __iter__(self) -> Iterator[tuple[str, int]]:
        return ((self.buffer, self.start + i) for i in range(self.count))

    def __str__(self) -> str:
        last = f" to {self.start + self.count - 1}" if self.count > 1 else ""
        return f"{self.buffer}[{self.start}{last}]"


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction; `src` and `dst` are local, and None where it does not use them.

    Attributes:
        after: The thread block, and the number of its step, that must be done before; None: none.
        is_awaited: Whether others may wait for it (`hasdep`).
    """

    line: int
    kind: InstructionKind
    src: Range | None
    dst: Range | None
    after: tuple[int, int] | None
    is_awaited: bool


@dataclass(frozen=True, slots=True)
class Block:
    """A thread block: steps that a rank does one after the other; peers are ranks, or -1."""

    line: int
    id: int
    send: int
    recv: int
    channel: int
    steps: list[Instruction] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Gpu:
    """One rank: the sizes of its buffers in chunks, and its thread blocks by id.

    Attributes:
        copies: Chunks of the input that are in the output at first: their places in both, and the
            line that says so.
    """

    line: int
    id: int
    chunks: Mapping[str, int]
    blocks: dict[int, Block] = field(default_factory=dict)
    copies: list[tuple[int, int, int]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class MscclProgram:
    """A whole program; `where` is the file's name, and `unused` what it has that has no meaning."""

    where: str
    name: str
    collective: str
    in_place: bool
    chunks: int
    gpus: list[Gpu] = field(default_factory=list)
    unused: dict[str, int] = field(default_factory=dict)  # the first line of each

    @property
    def ranks(self) -> int:
        """The number of ranks."""
        return len(self.gpus)

    def at(self, rank: int, block: int, step: int) -> str:
        """Return the place of a step, as messages name it."""
        line = self.gpus[rank].blocks[block].steps[step].line
        return f"line {line} (rank {rank}, thread block {block}, step {step})"
