"""The words of an operation, written into the arena from the nodes' plans."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

import ringleaf.hosts.executor.layout as x
from ringleaf.collectives.rows import REDUCE, Column
from ringleaf.core.arena import Store, Words
from ringleaf.core.compiled import address_of
from ringleaf.core.tensors import ElementType
from ringleaf.errors import ConfigError
from ringleaf.hosts.executor.arithmetic import NOTHING, OTHER, kind_of
from ringleaf.hosts.executor.claims import choose
from ringleaf.hosts.plan import LOCAL, RECEIVE, SEND, SUM, Plans
from ringleaf.hosts.rc.landing import CHOOSE
from ringleaf.hosts.staging import Staging

Rows = npt.NDArray[np.int64]

_LINE = 8  # words of a line of the cache

_MOST_KEPT = 1 << 16
"""The most words whose state at the start is kept. For fewer, NumPy's calls take longest, so an
operation that is started again copies them; for more, a copy would be memory."""


class Executors:
    """The executors of all nodes of an operation, which can be started again and again.

    Args:
        store: The store that holds them.
        plans: The nodes' parts of the schedule.
        staging: The buffers of its streams.
        dtype: Type of the elements.
        at: A place for `words_of(plans, staging, regions)` words; None: a new one is allocated.
        has_data: Whether messages are added up and copied.
        regions: By node, the region of the network that has it; None: there is only one.
        by_callback: Whether elements are reduced by a callback, whatever their type.
    """

    def __init__(
        self,
        store: Store,
        plans: Plans,
        staging: Staging,
        dtype: ElementType,
        *,
        at: int | None = None,
        has_data: bool = True,
        regions: Sequence[int] | None = None,
        by_callback: bool = False,
    ) -> None:
        self.plans, self.dtype = plans, dtype
        self._store = store
        self._staging = staging
        self._regions = np.array([0] * plans.nodes if regions is None else regions, np.int64)
        self._places = _Places(plans, staging, int(self._regions.max(initial=0)) + 1)
        self._tensor_bytes = plans.elements * dtype.itemsize
        if plans.scratch and kind_of(dtype) == OTHER:
            raise ConfigError(
                f"run: a schedule with scratch memory needs float32 or int32, got {dtype}"
            )
        self.at = store.allocate("words", self._places.total) if at is None else at
        regions_at = range(self._places.regions)
        self.blocks = [self.at + number * x.OPERATION_WORDS for number in regions_at]
        """The addresses of the operation's blocks, by region."""
        words = self._words()
        places, start = self._places, self.at
        words[: places.chunks] = words[places.parts :] = 0  # `prepare` writes chunks anew
        blocks = self._table(0, places.regions, x.OPERATION_WORDS)
        blocks[:, x.ITEM_BYTES] = dtype.itemsize
        kind = OTHER if by_callback else kind_of(dtype)
        self.element = kind if has_data else NOTHING
        """How elements are added and copied (`arithmetic`)."""
        blocks[:, x.ELEMENT] = self.element
        blocks[:, x.EDGES_AT] = start + places.edges
        blocks[:, x.OWN_CHUNKS] = plans.own_chunks
        stacks = np.arange(places.regions) * places.stack_words
        blocks[:, x.STACK_AT] = start + places.stack + stacks
        words[places.edges : places.edges + plans.chunks + 1] = plans.edges
        words[places.after : places.after + len(plans.after)] = plans.after
        self._write_executors()
        self._write_streams()
        self._write_planned()
        self._start: tuple[list[int], Words] | None = None
        """The staging of the last `prepare`, and the words from the executors on to the parts."""

    @property
    def nodes(self) -> int:
        """The number of nodes."""
        return self.plans.nodes

    def region(self, node: int) -> int:
        """Return the region that has a node."""
        return int(self._regions[node])

    def executor(self, node: int) -> int:
        """Return the address of a node's executor."""
        return self.at + self._places.executors + node * x.EXECUTOR_WORDS

    def node_of(self, executor: int) -> int:
        """Return the node whose executor has this address."""
        return (executor - self.at - self._places.executors) // x.EXECUTOR_WORDS

    def connect(self, agents: Sequence[int], queue_pairs: Sequence[int]) -> None:
        """Say which agents carry the messages.

        Args:
            agents: By node, the block of the host's rc agent.
            queue_pairs: By stream, but for local work, the number of the agent's queue pair.
        """
        self._start = None
        self._table(self._places.executors, self.nodes, x.EXECUTOR_WORDS)[:, x.AGENT] = agents
        self._streams()[self.plans.streams.kind != LOCAL, x.QP] = queue_pairs

    def prepare(self, addresses: Sequence[int], staging: Sequence[int]) -> None:
        """Bring all executors to the start of an operation.

        Args:
            addresses: By node, the address of its tensor in registered memory.
            staging: By node, the address of memory for its buffers, and its scratch memory; there
                may be more of them than nodes.
        """
        places, words = self._places, self._words()
        for block in range(0, places.executors, x.OPERATION_WORDS):
            words[block + x.LEFT_NODES] = words[block + x.NEXT_DONE] = words[block + x.FAILED] = 0
            words[block + x.TOP] = words[block + x.STACK_AT]
        buffers = list(staging[: self.nodes])
        if self._start is None or self._start[0] != buffers:
            self._start = None
            self._lay_out(np.asarray(buffers, np.int64))
            if places.planned - places.executors <= _MOST_KEPT:
                self._start = buffers, words[places.executors : places.planned].copy()
        else:
            words[places.executors : places.planned] = self._start[1]
        if places.count_sums:
            sums = words[places.sums : places.sums + places.count_sums]
            sums[:] = self._addresses(places.parts, self._parts())[places.first_sum :]
        self._table(places.executors, self.nodes, x.EXECUTOR_WORDS)[:, x.ADDRESS] = addresses

    def _lay_out(self, buffers: Column) -> None:
        """Bring the words from the executors on to the parts to the start of an operation."""
        places = self._places
        self._prepare_executors(buffers)
        self._prepare_streams(buffers)
        chunks = self._table(places.chunks, self.nodes * self.plans.chunks, x.CHUNK_WORDS)
        chunks[:] = 0
        chunks[:, x.NEXT] = chunks[:, x.PREVIOUS] = self._addresses(places.chunks, chunks)
        self._prepare_parts()

    def lease(self, at: int) -> None:
        """Have the memory of chunks leased, by the leases at an address, until `prepare`."""
        table = self._table(self._places.executors, self.nodes, x.EXECUTOR_WORDS)
        table[:, x.LEASES_AT] = at + np.arange(self.nodes) * self.plans.chunks * x.LEASE_WORDS

    def _words(self) -> Words:
        return self._store.arena.words[self.at : self.at + self._places.total]

    def _table(self, start: int, rows: int, width: int) -> Rows:
        return self._words()[start : start + rows * width].reshape(rows, width)

    def _addresses(self, start: int, table: Rows) -> Column:
        """Return the address of each row of a table."""
        return self.at + start + np.arange(len(table)) * table.shape[1]

    def _streams(self) -> Rows:
        return self._table(self._places.streams, len(self.plans.streams), x.STREAM_WORDS)

    def _planned(self) -> Rows:
        return self._table(self._places.planned, len(self.plans.message), x.PLANNED_WORDS)

    def _write_executors(self) -> None:
        plans, places, start = self.plans, self._places, self.at
        table = self._table(places.executors, self.nodes, x.EXECUTOR_WORDS)
        table[:, x.KIND] = SUM
        table[:, x.OPERATION] = start + self._regions * x.OPERATION_WORDS
        table[:, x.OWNER] = self._addresses(places.executors, table)
        table[:, x.NODE] = np.arange(self.nodes)
        table[:, x.WRITES] = plans.counts(~plans.reads)
        streams = plans.streams
        table[:, x.SENDS] = _count(streams.node[streams.kind == SEND], self.nodes)
        table[:, x.RECEIVES] = _count(streams.node[streams.kind == RECEIVE], self.nodes)
        table[:, x.LOCALS] = _count(streams.node[streams.kind == LOCAL], self.nodes)
        first = np.searchsorted(streams.node, np.arange(self.nodes))
        table[:, x.STREAMS_AT] = start + places.streams + first * x.STREAM_WORDS
        first = np.searchsorted(plans.node[plans.first_sum :], np.arange(self.nodes))
        table[:, x.SUMS_AT] = start + places.sums + first
        chunks = np.arange(self.nodes) * plans.chunks
        table[:, x.CHUNKS_AT] = start + places.chunks + chunks * x.CHUNK_WORDS

    def _prepare_executors(self, buffers: Column) -> None:
        plans, places = self.plans, self._places
        table = self._table(places.executors, self.nodes, x.EXECUTOR_WORDS)
        table[:, [x.NEXT, x.PREVIOUS, x.CHUNK]] = 0
        table[:, x.SUMS_UNDER_WAY] = 0
        table[:, x.FIRST_REQUEST : x.LEASES_AT + 1] = 0
        # Chunks in scratch memory are counted behind the tensor's own, so their offsets begin at
        # its size.
        table[:, x.SCRATCH] = buffers + self._staging.scratch - self._tensor_bytes
        table[:, x.LEFT] = plans.counts()
        table[:, x.SUMS] = plans.counts(slice(plans.first_sum, None))

    def _write_streams(self) -> None:
        places, streams = self._places, self.plans.streams
        table = self._streams()
        table[:, x.KIND], table[:, x.PEER] = streams.kind, streams.peer
        executors = self.at + places.executors
        table[:, x.OWNER] = executors + streams.node * x.EXECUTOR_WORDS
        table[:, x.END_PLANNED] = self.at + places.planned + streams.end * x.PLANNED_WORDS
        table[:, x.TURN] = streams.node if self.plans.is_turned else 0
        table[:, x.DEPTH] = self._staging.depth
        table[:, x.SLOTS_AT] = self.at + places.slots + places.first_slot * x.SLOT_WORDS
        slots = self._table(places.slots, len(places.stream_of_slot), x.SLOT_WORDS)
        slots[:, x.KIND] = x.SLOT
        slots[:, x.CLAIM + CHOOSE] = address_of(choose)
        slots[:, x.OWNER] = executors + streams.node[places.stream_of_slot] * x.EXECUTOR_WORDS

    def _prepare_streams(self, staging: Column) -> None:
        places, streams = self._places, self.plans.streams
        table = self._streams()
        table[:, [x.NEXT, x.PREVIOUS, x.CHUNK, x.UNDER_WAY, x.NEXT_PART]] = 0
        table[:, x.NEXT_PLANNED] = self.at + places.planned + streams.first * x.PLANNED_WORDS
        table[:, x.FREE_PART] = self.at + places.parts + places.first_part * x.PART_WORDS
        table[:, x.FREE] = table[:, x.FREE_BUFFERS] = self._staging.slots
        stream = places.stream_of_slot
        slots = self._table(places.slots, len(stream), x.SLOT_WORDS)
        slots[:, [x.NEXT, x.PREVIOUS, x.CHUNK]] = 0
        slots[:, x.FREE_SLOT] = self._addresses(places.slots, slots)
        slots[:, x.BUFFER] = -1
        number = np.arange(len(stream)) - places.first_slot[stream]
        offset = self._staging.offset[stream] + number * self._staging.slot_bytes[stream]
        slots[:, x.FREE_BUFFER] = staging[streams.node[stream]] + offset

    def _write_planned(self) -> None:
        plans = self.plans
        table = self._planned()
        coded = np.array([codec is not None for codec in plans.codecs])
        flags = plans.staged * x.IS_STAGED + (plans.op == REDUCE) * x.IS_REDUCED
        flags += ((plans.kind != SUM) & coded[plans.op]) * x.IS_CODED + plans.reads * x.IS_READ
        table[:, x.PLANNED_MESSAGE], table[:, x.PLANNED_FLAGS] = plans.message, flags
        table[:, x.PLANNED_START], table[:, x.PLANNED_STOP] = plans.start, plans.stop
        table[:, x.PLANNED_AFTER] = self.at + self._places.after + plans.after_at
        table[:, x.ROOM_BYTES] = self._staging.room_bytes

    def _parts(self) -> Rows:
        places = self._places
        return self._table(places.parts, places.first_sum + places.count_sums, x.PART_WORDS)

    def _prepare_parts(self) -> None:
        """Have the parts of each stream free, and sums made."""
        plans, places = self.plans, self._places
        table, first_sum = self._parts(), places.first_sum
        addresses = self._addresses(places.parts, table)
        streams = self.at + places.streams + places.stream_of_part * x.STREAM_WORDS
        table[:first_sum, x.STREAM] = streams
        table[:first_sum, x.LATER] = addresses[:first_sum] + x.PART_WORDS
        # Each stream has a list of its own free parts, which ends at its last one.
        table[places.first_part[1:] - 1, x.LATER] = 0
        table[first_sum - 1 : first_sum, x.LATER] = 0
        sums, planned = table[first_sum:], self._planned()[plans.first_sum :]
        nodes = plans.node[plans.first_sum :]
        sums[:, x.STREAM] = self.at + places.executors + nodes * x.EXECUTOR_WORDS
        sums[:, [x.LATER, x.HELD]] = 0
        first = places.planned + plans.first_sum * x.PLANNED_WORDS
        sums[:, x.PLANNED] = self._addresses(first, planned)
        for word, of_planned in _COPIED:
            sums[:, word] = planned[:, of_planned]


_COPIED = (
    (x.MESSAGE, x.PLANNED_MESSAGE),
    (x.START, x.PLANNED_START),
    (x.STOP, x.PLANNED_STOP),
    (x.SIZE_BYTES, x.ROOM_BYTES),
)
"""Words of sums, and those of planned parts that they are copied from."""


class _Places:
    """Where the tables of an operation begin, counted from its block."""

    def __init__(self, plans: Plans, staging: Staging, regions: int) -> None:
        streams = plans.streams
        self.regions = regions
        # One of local work makes what it reads and what it writes together.
        at_once = np.where(streams.kind == LOCAL, 2, staging.depth)
        parts = np.minimum(at_once, streams.end - streams.first)
        self.stream_of_part = np.repeat(np.arange(len(streams)), parts)
        self.first_part = np.cumsum(parts) - parts
        self.first_sum = int(parts.sum())
        self.count_sums = len(plans.message) - plans.first_sum
        self.stream_of_slot = np.repeat(np.arange(len(staging.slots)), staging.slots)
        self.first_slot = np.cumsum(staging.slots) - staging.slots
        self.executors = regions * x.OPERATION_WORDS
        self.streams = self.executors + plans.nodes * x.EXECUTOR_WORDS
        self.slots = self.streams + len(plans.streams) * x.STREAM_WORDS
        self.chunks = _in_lines(self.slots + len(self.stream_of_slot) * x.SLOT_WORDS)
        self.parts = _in_lines(self.chunks + plans.nodes * plans.chunks * x.CHUNK_WORDS)
        self.planned = self.parts + (self.first_sum + self.count_sums) * x.PART_WORDS
        self.after = self.planned + len(plans.message) * x.PLANNED_WORDS
        self.edges = self.after + len(plans.after)
        self.sums = self.edges + plans.chunks + 1
        self.stack = _in_lines(self.sums + self.count_sums)
        slots = np.bincount(streams.node, staging.slots, plans.nodes).max(initial=0)
        local = np.bincount(streams.node, streams.kind == LOCAL, plans.nodes)
        # Each message that is held, or encoded, is counted once; local work counts both its parts.
        frames = 2 * int(slots) + 3 * int(local.max(initial=0)) + 4
        self.stack_words = _in_lines(frames * x.FRAME_WORDS)
        self.total = self.stack + regions * self.stack_words


def words_of(plans: Plans, staging: Staging, regions: int) -> int:
    """Return the words that executors take."""
    return _Places(plans, staging, regions).total


def _in_lines(words: int) -> int:
    """Return the words of as many whole lines of the cache as so many words take."""
    return -(-words // _LINE) * _LINE


def _count(nodes: Column, most: int) -> Column:
    return np.bincount(nodes, minlength=most)
