"""The meaning of programs' buffers: which chunk of which data is where, at first and in the end.

A logical chunk is a chunk of our tensors (`Collective` says which one), `nchunksperloop` in all.
In place, one of input and output is a window of the other, and places are named by the whole one.

Source:
    The collectives of MSCCL's language (github.com/microsoft/msccl-tools, msccl/language).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ringleaf.collectives.collective import Collective
from ringleaf.collectives.files.msccl.document import MscclProgram, Range
from ringleaf.core.units import format_count
from ringleaf.errors import ScheduleError

NAMES: Mapping[str, Collective] = {
    "allreduce": Collective.ALLREDUCE,
    "allgather": Collective.ALL_GATHER,
    "reduce_scatter": Collective.REDUCE_SCATTER,
    "reducescatter": Collective.REDUCE_SCATTER,
    "alltoall": Collective.ALL_TO_ALL,
    "broadcast": Collective.BROADCAST,
    "reduce": Collective.REDUCE,
}
"""Collectives as `coll` names them."""

SHARED = (Collective.ALL_GATHER, Collective.REDUCE_SCATTER, Collective.ALL_TO_ALL)
"""Collectives whose chunks are dealt to ranks."""

Place = tuple[str, int]
"""A chunk of a rank's buffer."""


@dataclass(frozen=True, slots=True)
class RankBuffers:
    """The buffers of a program's ranks.

    Attributes:
        collective: The collective.
        ranks: Number of ranks.
        chunks: Number of logical chunks.
        in_place: Whether input and output share memory.
        scratch: By rank, the chunks of its scratch buffer.
        copies: By rank, places in its input whose chunks are in its output at first, too, and
            their places there.
    """

    collective: Collective
    ranks: int
    chunks: int
    in_place: bool
    scratch: tuple[int, ...]
    copies: tuple[tuple[tuple[int, int], ...], ...]

    @classmethod
    def of(cls, program: MscclProgram) -> RankBuffers:
        """Return a program's buffers.

        Raises:
            ScheduleError: If its collective is unknown, chunks can't be dealt to ranks, or a copy
                does not fit.
        """
        if program.collective not in NAMES:
            valid = ", ".join(NAMES)
            raise ScheduleError(
                f"{program.where}: coll must be a collective whose result is known, got "
                f"{program.collective[:40]!r}; valid: {valid}"
            )
        buffers = cls(
            NAMES[program.collective],
            program.ranks,
            program.chunks,
            program.in_place,
            tuple(gpu.chunks["s"] for gpu in program.gpus),
            tuple(tuple((i, o) for i, o, _ in gpu.copies) for gpu in program.gpus),
        )
        if buffers.collective in SHARED and program.chunks % program.ranks:
            raise ScheduleError(
                f"{program.where}: nchunksperloop must be a multiple of "
                f"{format_count(program.ranks, 'rank')} for "
                f"{program.collective}, got {program.chunks}"
            )
        buffers._check_copies(program)
        return buffers

    def _check_copies(self, program: MscclProgram) -> None:
        """Check that copies are within buffers, and write over no other part of the input."""
        for gpu in program.gpus:
            own = dict(self._own(gpu.id))
            for source, target, line in gpu.copies:
                at = f"{program.where}: line {line}: <copy>"
                (here,) = self.places(gpu.id, Range("i", source, 1), at)
                (there,) = self.places(gpu.id, Range("o", target, 1), at)
                if own.get(there, own[here]) != own[here]:
                    raise ScheduleError(
                        f"{at} must leave the input as it is, got o[{target}], which is in place"
                    )

    @property
    def share(self) -> int:
        """The number of chunks of one rank, where chunks are dealt to ranks."""
        return self.chunks // self.ranks

    def size(self, rank: int, buffer: str) -> int:
        """Return the chunks of a rank's buffer."""
        if buffer == "s":
            return self.scratch[rank]
        small = {Collective.ALL_GATHER: "i", Collective.REDUCE_SCATTER: "o"}.get(self.collective)
        return self.share if buffer == small else self.chunks

    def places(self, rank: int, span: Range, at: str) -> list[Place]:
        """Return the chunks of a range.

        Raises:
            ScheduleError: If the buffer has fewer; the message begins with `at`.
        """
        size = self.size(rank, span.buffer)
        if span.start + span.count > size:
            raise ScheduleError(
                f"{at}: {span.buffer} has {format_count(size, 'chunk')}, got {span}"
            )
        return [self.place(rank, *each) for each in span]

    def place(self, rank: int, buffer: str, offset: int) -> Place:
        """Return the name of a chunk, the same for input and output that share it."""
        if not self.in_place or buffer == "s":
            return buffer, offset
        match self.collective:
            case Collective.ALL_GATHER:
                return ("o", rank * self.share + offset) if buffer == "i" else ("o", offset)
            case Collective.REDUCE_SCATTER:
                return ("i", rank * self.share + offset) if buffer == "o" else ("i", offset)
            case _:
                return "i", offset

    def inputs(self, rank: int) -> Iterator[tuple[Place, int]]:
        """Yield where a rank has its data at first, and the logical chunk of each place."""
        yield from self._own(rank)
        for source, target in self.copies[rank]:
            yield self.place(rank, "o", target), self._chunk_in(rank, source)

    def _own(self, rank: int) -> Iterator[tuple[Place, int]]:
        for offset in range(self.size(rank, "i")):
            yield self.place(rank, "i", offset), self._chunk_in(rank, offset)

    def _chunk_in(self, rank: int, offset: int) -> int:
        match self.collective:
            case Collective.ALL_GATHER:
                return rank * self.share + offset
            case Collective.ALL_TO_ALL:
                return self._rotated(offset, offset // self.share - rank)
            case _:
                return offset

    def outputs(self, rank: int) -> Iterator[tuple[Place, int]]:
        """Yield where a rank must have results, and the logical chunk of each place.

        Of a reduce, these are the root's places, on every rank.
        """
        for offset in range(self.size(rank, "o")):
            yield self.place(rank, "o", offset), self._chunk_out(rank, offset)

    def _chunk_out(self, rank: int, offset: int) -> int:
        match self.collective:
            case Collective.REDUCE_SCATTER:
                return rank * self.share + offset
            case Collective.ALL_TO_ALL:
                return self._rotated(offset, rank - offset // self.share)
            case _:
                return offset

    def _rotated(self, offset: int, distance: int) -> int:
        return distance % self.ranks * self.share + offset % self.share
