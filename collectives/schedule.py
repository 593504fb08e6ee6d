"""A collective as data: the transfers between ranks, and the order in which they apply.

Each rank holds a tensor of the same shape, cut into `chunks` nearly equal ranges
(`chunk_ranges`). A schedule is a tuple of rows, sorted by step, each of which moves a chunk.

Ranks may have the help of servers, numbered after them: nodes that hold zeros at first, have
nothing to contribute, and of which nothing is demanded. Rows name ranks and servers alike.

Nodes may have scratch memory: layers as large as the tensor, cut in the same way. Rows name places:
place p is node p modulo the nodes, in layer p // nodes, where layer 0 is the tensor. So chunk c of
a row means the same elements at both ends. A row between layers of one node copies or adds there,
and takes no time. Scratch memory holds nothing until something is copied there.

Meaning
    Rows of one step are concurrent: they read the contents from before the step. Operations
    on one (rank, chunk) apply in row order. So every float addition has its place, and the
    result is the same bit for bit, whoever executes the schedule (`oracle.execute` is the
    reference).

Execution by data flow
    Nobody waits for a step to end. A rank knows its own rows only, and obeys two rules:

    send   A row's data leaves once all rows of earlier steps that write (src, chunk) have
           been applied there.
    apply  Arrived data is applied once all earlier rows that write (dst, chunk) have been
           applied, and all rows of this step and earlier ones that send (dst, chunk) have
           been acknowledged: until then a retransmission may still read it.

    These are the read-after-write, write-after-write and write-after-read dependencies of
    the meaning above, so the result is the same. Nothing can deadlock, because all that a
    row waits for comes earlier, as long as a message is acknowledged when it has landed
    in a buffer of its own, not when it has been applied. `verify.verify` says of a schedule
    whether such waiting ever happens (it does not in any allreduce here).

    A row within a node is applied at once when both rules allow it.

    A rank joins an `Aggregate` by the rule for sending, and takes its result by the rule
    for applying. A row whose chunk is empty moves nothing; its ends skip it.

Messages
    Adjacent rows that move neighbouring chunks between the same ranks in the same step may
    travel as one message (`messages`): halving-doubling is 2 log2(n) messages per rank, not
    2 (n - 1). Between two ranks messages of a channel go in row order, so counting suffices to
    match them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from ringleaf.collectives.circulant import CirculantRows
from ringleaf.collectives.codec import Codec
from ringleaf.collectives.collective import (
    Collective,
    check_ranks,
    check_root,
    check_segments,
)
from ringleaf.collectives.pipelined_rows import PipelinedRows
from ringleaf.collectives.rows import (
    AGGREGATE,
    ALL_OPS,
    Aggregate,
    ChunkRows,
    Columns,
    Message,
    Op,
    Row,
    Transfer,
)
from ringleaf.collectives.scratch import check_scratch, is_local
from ringleaf.core.units import format_count
from ringleaf.errors import ScheduleError

__all__ = [
    "ALL_OPS",
    "Aggregate",
    "ChunkRows",
    "Collective",
    "Columns",
    "Message",
    "Op",
    "Row",
    "Schedule",
    "Transfer",
    "check",
    "check_ranks",
    "check_root",
    "check_segments",
    "chunk_ranges",
    "messages",
    "owner",
    "rows_by_chunk",
]


@dataclass(frozen=True)
class Schedule:
    """A collective among `ranks` ranks; see the module's description for its meaning.

    Constructing one checks nothing, for speed: `check` tells whether the rows make sense,
    `verify.verify` whether they do what the collective promises.

    Attributes:
        rows: The rows, in order; they may be given as any sequence, and are kept as columns.
    """

    collective: Collective
    algorithm: str
    ranks: int
    chunks: int
    rows: Sequence[Row]
    root: int = 0
    servers: int = 0
    codec: Codec | None = None  # writes messages; None: chunks go as they are
    coded: frozenset[Op] = ALL_OPS  # messages of the other operation go as they are, too
    scratch: int = 0  # layers of memory of each node, besides its tensor

    def __post_init__(self) -> None:
        if not isinstance(self.rows, ChunkRows):
            object.__setattr__(self, "rows", ChunkRows(Columns.of(self.rows)))

    @property
    def as_rows(self) -> ChunkRows:
        """The rows, by what keeps or makes them."""
        assert isinstance(self.rows, ChunkRows)
        return self.rows

    @property
    def columns(self) -> Columns:
        """The rows as arrays: a place for each message."""
        return self.as_rows.columns

    @property
    def circulant(self) -> CirculantRows | None:
        """The rows, if all ranks do the same, turned, and there is nobody else."""
        rows = self.rows
        if not isinstance(rows, CirculantRows) or self.servers or self.scratch:
            return None
        return rows if rows.ranks == self.ranks == self.chunks else None

    @property
    def pipelined(self) -> PipelinedRows | None:
        """The rows, if each chunk goes the way of the one before, a step behind it."""
        rows = self.rows
        if not isinstance(rows, PipelinedRows) or rows.chunks != self.chunks:
            return None
        return rows

    @property
    def distinct(self) -> Columns:
        """The rows, without those that only repeat others with other ranks, chunks or steps."""
        if self.circulant is not None:
            return self.circulant.first
        return self.columns if self.pipelined is None else self.pipelined.way

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """The ranks of each aggregation."""
        return self.as_rows.groups

    @property
    def nodes(self) -> int:
        """The number of ranks and servers."""
        return self.ranks + self.servers

    @property
    def places(self) -> int:
        """The number of places: each node's tensor, then each one's layers of scratch memory."""
        return self.nodes * (1 + self.scratch)

    def is_local(self, rows: Columns) -> npt.NDArray[np.bool_]:
        """Return which of some rows stay within a node: (messages,)."""
        return is_local(rows, self.nodes)

    def codec_of(self, op: Op) -> Codec | None:
        """Return the codec that writes an operation's messages; None: chunks go as they are."""
        return self.codec if op in self.coded else None

    @cached_property
    def steps(self) -> int:
        """The number of steps; steps are numbered from 0."""
        return self.as_rows.steps

    def __str__(self) -> str:
        """Return a summary in one line."""
        return (
            f"{self.algorithm} {self.collective.value}: {format_count(self.ranks, 'rank')}, "
            f"{format_count(self.chunks, 'chunk')}, {format_count(len(self.rows), 'row')} in "
            f"{format_count(self.steps, 'step')}"
        )


def chunk_ranges(elements: int, chunks: int) -> list[tuple[int, int]]:
    """Return where each chunk starts and stops; sizes differ by at most one element.

    Any run of neighbouring chunks is within one element of its fair share too. With fewer
    elements than chunks some chunks are empty.

    Raises:
        ScheduleError: If `elements` < 0 or `chunks` < 1.
    """
    if elements < 0:
        raise ScheduleError(f"chunk_ranges: elements must be >= 0, got {elements}")
    if chunks < 1:
        raise ScheduleError(f"chunk_ranges: chunks must be >= 1, got {chunks}")
    edges = [chunk * elements // chunks for chunk in range(chunks + 1)]
    return list(pairwise(edges))


def owner(schedule: Schedule, chunk: int) -> int:
    """Return the rank that ends a reduce-scatter with `chunk`, or brings it to an all-gather."""
    return chunk * schedule.ranks // schedule.chunks


def rows_by_chunk(schedule: Schedule) -> list[list[tuple[int, Row]]]:
    """Return each chunk's rows with their numbers; rows of different chunks never meet."""
    rows_of: list[list[tuple[int, Row]]] = [[] for _ in range(schedule.chunks)]
    for number, row in enumerate(schedule.rows):
        rows_of[row.chunk].append((number, row))
    return rows_of


def messages(schedule: Schedule) -> Iterator[Message | Aggregate]:
    """Yield the rows in order, adjacent ones that can travel together as one message."""
    return schedule.columns.messages()


def check(schedule: Schedule) -> None:
    """Raise ScheduleError unless the rows are sorted by step and name existing nodes and chunks."""
    where = f"{schedule.algorithm} {schedule.collective.value}"
    check_ranks(where, schedule.ranks)
    if schedule.chunks < 1:
        raise ScheduleError(f"{where}: chunks must be >= 1, got {schedule.chunks}")
    check_root(where, schedule.root, schedule.ranks)
    if schedule.servers < 0:
        raise ScheduleError(f"{where}: servers must be >= 0, got {schedule.servers}")
    if schedule.scratch < 0:
        raise ScheduleError(f"{where}: scratch must be >= 0, got {schedule.scratch}")
    if schedule.scratch and schedule.codec is not None:
        raise ScheduleError(
            f"{where}: a codec can't go with scratch memory, got {schedule.codec.name}"
        )
    if not _make_sense(schedule):
        _refuse(schedule, where)
    if schedule.scratch:
        check_scratch(schedule.columns, schedule.nodes, schedule.places, schedule.chunks, where)


def check_asked_root(schedule: Schedule, root: int) -> None:
    """Refuse a root that someone has asked for, unless the schedule has it.

    Raises:
        ScheduleError: If a file has another one, or the collective has none.
    """
    if schedule.collective.is_rooted and root == schedule.root:
        return
    has = (
        f"root must be {schedule.root}, as it is there"
        if schedule.collective.is_rooted
        else "has no root"
    )
    where = f"{schedule.algorithm} {schedule.collective.value}"
    raise ScheduleError(f"{where}: {has}, got {root}; leave it out")


def _make_sense(schedule: Schedule) -> bool:
    """Return whether the rows are sorted by step and name existing nodes and chunks."""
    rows = schedule.distinct
    transfers = rows.take(rows.op != AGGREGATE)
    ends = np.stack([transfers.src, transfers.dst])
    return bool(
        (np.diff(rows.step, prepend=0) >= 0).all()
        and (rows.start >= 0).all()
        and (rows.stop <= schedule.chunks).all()
        and ((ends >= 0) & (ends < schedule.places)).all()
        and (transfers.src != transfers.dst).all()
        and all(_are_nodes(ranks, schedule.nodes) for ranks in rows.groups)
        and (rows.channel >= 0).all()
    )


def _are_nodes(ranks: tuple[int, ...], nodes: int) -> bool:
    return bool(ranks) and len(set(ranks)) == len(ranks) and 0 <= min(ranks) <= max(ranks) < nodes


def _refuse(schedule: Schedule, where: str) -> None:
    """Raise ScheduleError for the first row that makes no sense."""
    step = 0
    for number, row in enumerate(schedule.rows):
        at = f"{where}: row {number}"
        if row.step < step:
            raise ScheduleError(f"{at}: step must be {step} or more, got {row.step}")
        step = row.step
        if not 0 <= row.chunk < schedule.chunks:
            raise ScheduleError(f"{at}: chunk must be below {schedule.chunks}, got {row.chunk}")
        members = row.ranks if isinstance(row, Aggregate) else (row.src, row.dst)
        if not members:
            raise ScheduleError(f"{at}: there must be ranks, got ()")
        if len(set(members)) != len(members):
            raise ScheduleError(f"{at}: ranks must differ, got {members}")
        most = schedule.nodes if isinstance(row, Aggregate) else schedule.places
        if not _are_nodes(members, most):
            raise ScheduleError(f"{at}: ranks must be below {most}, got {members}")
        if isinstance(row, Transfer) and row.channel < 0:
            raise ScheduleError(f"{at}: channel must be >= 0, got {row.channel}")
    raise AssertionError("rows make no sense, and each of them does")
