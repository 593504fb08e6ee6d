"""Operations: collectives that nodes of a group run, each by its executor in the arena."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

import ringleaf.hosts.executor.layout as x
from ringleaf.collectives.codec import OnArrays, decoded, encoded
from ringleaf.core.arena import Store
from ringleaf.core.callbacks import Callback, weakly
from ringleaf.core.tensors import Array, use_one_thread
from ringleaf.core.units import format_count
from ringleaf.hosts.executor import parts
from ringleaf.hosts.executor.arithmetic import OTHER
from ringleaf.hosts.executor.build import Executors
from ringleaf.hosts.plan import RECEIVE, SEND
from ringleaf.networks.endpoints.leases import ChunkLeases
from ringleaf.networks.endpoints.memory import RegisteredMemory
from ringleaf.networks.endpoints.segments import SegmentLeases

if TYPE_CHECKING:
    from ringleaf.ina.systems import JobAggregator

_BYTES = np.dtype(np.uint8)

Hear = Callable[["CollectiveOperation", int, bool, int], bool]
"""A function that is told at once of an operation's node: whether only its message has left, but it
has not done its part yet; and the time. It returns whether there is more to start."""

Combine = Callable[[Array, Array], None]
"""A function that reduces the second array, elementwise, into the first."""


def add(target: Array, source: Array) -> None:
    """Add up elements, with whatever overflows their type has."""
    with np.errstate(all="ignore"):
        target += source


class CollectiveOperation:
    """A collective that can be started once.

    Args:
        store: The store that holds the executors.
        memory: The memory that holds the tensors.
        executors: The executors, prepared.
        tensors: By node, in registered memory.
        staging: By node, addresses of memory for its buffers.
        aggregator: Sums that are asked of the network; None: there are none.
        group: The group's place among the network's groups.
        channel: A channel that no other operation of the group uses.
        ranks: The number of ranks; the nodes after them are servers.
        priority: Priority of its packets: 0 to 7, the most urgent.
        rate_bps: Rate of each host's queue pairs together; 0: as fast as possible.
        gain: Factor on the growth of windows, for controllers that have one.
        marks: Whether packets carry the priority, so that switches obey it, too.
        combine: Reduces elements that compiled code does not add.
    """

    def __init__(
        self,
        store: Store,
        memory: RegisteredMemory,
        executors: Executors,
        tensors: Sequence[Array],
        *,
        staging: Sequence[int] = (),
        aggregator: JobAggregator | None = None,
        group: int,
        channel: int,
        ranks: int,
        priority: int = 0,
        rate_bps: int = 0,
        gain: float = 1.0,
        marks: bool = True,
        combine: Combine = add,
    ) -> None:
        self.executors = executors
        self.group, self.channel, self.ranks = group, channel, ranks
        self.priority, self.rate_bps, self.gain, self.marks = priority, rate_bps, gain, marks
        self.nodes: Sequence[int] = range(executors.nodes)  # those that run here
        self.staging = staging
        self._store, self._memory = store, memory
        self._tensors = tensors
        self._aggregator = aggregator
        self._combine = combine
        codecs = [codec for codec in executors.plans.codecs if codec is not None]
        if not all(isinstance(codec, OnArrays) for codec in codecs):
            use_one_thread()
        self._callbacks: list[Callback] = []
        if codecs:
            self._call(x.ENCODE, weakly(self._encode))
        if codecs or executors.element == OTHER:
            self._call(x.APPLY, weakly(self._apply))
        if aggregator is not None:
            self._call(x.AGGREGATE, weakly(self._aggregate))
        self._hear: Hear | None = None
        self._write(x.HEAR, 0)

    def listen(self, hear: Hear) -> None:
        """Have a function told at once of nodes here; before the start."""
        self._hear = hear
        self._call(x.HEAR, weakly(self._heard))

    @property
    def is_heard(self) -> bool:
        """Whether somebody wants to know of nodes at once."""
        return self._hear is not None

    def _heard(self, what: int) -> int:
        executor, has_left = divmod(what, 2)
        node = self.executors.node_of(executor)
        now_ps = int(self._store.arena.words[executor + x.NOW_PS])
        return int(self._pass_on(node, bool(has_left), now_ps))

    def _pass_on(self, node: int, has_left: bool, now_ps: int) -> bool:
        return self._hear is not None and self._hear(self, node, has_left, now_ps)

    def lease(self, leases: ChunkLeases | SegmentLeases) -> None:
        """Have memory for pieces of tensors only while they need it; before the start."""
        if isinstance(leases, ChunkLeases):
            self._call(x.OPEN, leases.open)
            self._call(x.CLOSE, leases.close)
        else:
            leases.connect(self._address(leases.open), self._address(leases.close))

    def _call(self, word: int, function: Callable[[int], int]) -> None:
        """Have executors call a function, whose address this word is for."""
        self._write(word, self._address(function))

    def _write(self, word: int, value: int) -> None:
        """Set a word of all blocks."""
        words = self._store.arena.words
        for block in self.executors.blocks:
            words[block + word] = value

    def _address(self, function: Callable[[int], int]) -> int:
        self._callbacks.append(Callback(function, failed=-1))
        return self._callbacks[-1].address

    @property
    def at(self) -> int:
        """The address of its first block."""
        return self.executors.at

    @property
    def left(self) -> int:
        """The number of nodes here that have not done their parts."""
        words = self._store.arena.words
        return sum(words.item(block + x.LEFT_NODES) for block in self.executors.blocks)

    def finish_ps(self, node: int) -> int:
        """Return the time at which a node had its result."""
        return int(self._store.arena.words[self.executors.executor(node) + x.FINISH_PS])

    @property
    def end_ps(self) -> int:
        """The time of the last report to its nodes; if it is done, that at which it ended."""
        words = self._store.arena.words
        first = self.executors.executor(0) + x.NOW_PS
        return max(words.item(first + node * x.EXECUTOR_WORDS) for node in self.nodes)

    def end(self, node: int, now_ps: int) -> None:
        """Note that a node has done its part, in a process of its own."""
        words = self._store.arena.words
        words[self.executors.executor(node) + np.array([x.NOW_PS, x.FINISH_PS])] = now_ps
        self._pass_on(node, False, now_ps)

    def leave(self, node: int, now_ps: int) -> None:
        """Note that a node's message has left, in a process of its own."""
        self._pass_on(node, True, now_ps)

    @property
    def addresses(self) -> list[int]:
        """The addresses of the nodes' tensors."""
        return [self._memory.address(tensor) for tensor in self._tensors]

    def unfinished(self) -> list[int]:
        """Return the nodes here that have not done their parts."""
        return [node for node in self.nodes if self.left_of(node)]

    def left_of(self, node: int) -> int:
        """Return the number of a node's messages and sums that are not done."""
        return int(self._store.arena.words[self.executors.executor(node) + x.LEFT])

    def check(self) -> None:
        """Raise the exception of a codec, a lease, or of the network's system, that was called."""
        for callback in self._callbacks:
            callback.check()

    def waits(self, node: int, names: Sequence[str]) -> list[str]:
        """Return, for people, a node's requests that are not answered; `names` are the nodes'."""
        words = self._store.arena.words
        at = self.executors.executor(node)
        first = int(words[at + x.STREAMS_AT])
        count = int(words[at + x.SENDS] + words[at + x.RECEIVES])
        table = words[first : first + count * x.STREAM_WORDS].reshape(count, x.STREAM_WORDS)
        sends, receives = (_by_peer(table[table[:, x.KIND] == kind]) for kind in (SEND, RECEIVE))
        aggregator = self._aggregator
        return [
            *(f"{names[peer]} to take {_messages(count)}" for peer, count in sends.items()),
            *(f"{_messages(count)} from {names[peer]}" for peer, count in receives.items()),
            *([aggregator.awaited] if aggregator and words[at + x.SUMS_UNDER_WAY] else []),
        ]

    def _node(self, part: int) -> int:
        words = self._store.arena.words
        return int(words[parts.executor_of(words, part) + x.NODE])

    def _elements(self, part: int) -> Array:
        """Return a part's chunks of its node's tensor."""
        start, stop = self._store.arena.words[[part + x.START, part + x.STOP]]
        edges = self.executors.plans.edges
        return self._tensors[self._node(part)][edges[start] : edges[stop]]

    def _encode(self, part: int) -> int:
        """Write a part's message to its buffer; return its bytes."""
        words = self._store.arena.words
        reduces = parts.flags_of(words, part) & x.IS_REDUCED
        codec = self.executors.plans.codecs[0 if reduces else 1]
        assert codec is not None
        data = encoded(codec, self._elements(part))
        buffer = int(parts.address_of(words, part))
        self._memory.view(buffer, data.size, _BYTES)[:] = data
        return data.size

    def _apply(self, part: int) -> int:
        """Move the message in a part's buffer into the tensor."""
        words = self._store.arena.words
        reduces = parts.flags_of(words, part) & x.IS_REDUCED
        codec = self.executors.plans.codecs[0 if reduces else 1]
        target, buffer = self._elements(part), int(parts.address_of(words, part))
        if codec is None:
            source = self._memory.view(buffer, target.size, target.dtype)
        else:
            size = int(words[part + x.SIZE_BYTES])
            data = self._memory.view(buffer, size, _BYTES)
            source = decoded(codec, data, target.size, target.dtype)
        if reduces:
            self._combine(target, source)
        else:
            target[:] = source
        return 0

    def _aggregate(self, part: int) -> int:
        """Give a part's sum to the network; return the agent that works for it."""
        assert self._aggregator is not None
        words = self._store.arena.words
        target = self._elements(part)
        return self._aggregator.start(
            self._store.arena,
            self._node(part),
            int(parts.address_of(words, part)),
            target.size,
            part,
            target.dtype,
            int(words[part + x.HELD]) - 1,
            self.priority if self.marks else 0,
        )


def _by_peer(streams: npt.NDArray[np.int64]) -> dict[int, int]:
    """Return the messages under way by peer, for those with any."""
    counts: dict[int, int] = {}
    for peer, count in streams[:, [x.PEER, x.UNDER_WAY]].tolist():
        if count:
            counts[peer] = counts.get(peer, 0) + count
    return counts


def _messages(count: int) -> str:
    return "a message" if count == 1 else f"{format_count(count, 'message')}"
