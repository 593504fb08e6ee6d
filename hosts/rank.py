"""One rank's part of a collective, walked by data flow and not by global barrier.

Sans-I/O: the executor asks for sends, receives and aggregations (`take_requests`) and is told
when they are done. A rank only knows its own rows of the schedule, so the same executor runs in
virtual time and in a process of its own.

- A send may start once every earlier-step write of its chunk has been applied here.
- A write is applied once every earlier-row write of its chunk has been, and every send of
  that chunk up to its step has been acknowledged; so results don't depend on arrival order.
- A COPY lands in the tensor itself; a REDUCE lands in a staging buffer and is added by torch.
  So does a stream's first COPY, if it may come before the tensor is ready for it.
- A message that the schedule's codec writes leaves from a staging buffer, encoded when it may go,
  so its chunks may be written at once; and it lands in one, to be decoded when it is applied.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass

import torch

from ringleaf.collectives.codec import Codec
from ringleaf.collectives.schedule import Op, chunk_ranges
from ringleaf.hosts.plan import MAX_POSTED, NETWORK, Plan, PlannedMessage, Stream
from ringleaf.hosts.staging import depth, lay_out, room_bytes


@dataclass(frozen=True, slots=True)
class Send:
    """Send memory to a peer; answer with `sent`."""

    stream: Stream
    address: int
    size_bytes: int
    tag: int  # row of the schedule


@dataclass(frozen=True, slots=True)
class Receive:
    """Let the stream's next message go to `address`; answer with `received`."""

    stream: Stream
    address: int
    size_bytes: int  # or less, if the message is encoded
    tag: int


@dataclass(frozen=True, slots=True)
class Reduce:
    """Aggregate memory in the network, in place; answer with `aggregated`."""

    address: int
    size_bytes: int
    tag: int


Request = Send | Receive | Reduce


class RankExecutor:
    """Executes one rank's plan.

    Args:
        plan: The rank's part of the schedule.
        tensor: The rank's buffer, of shape (elements,); reduced in place.
        address: Address of `tensor` in registered memory.
        chunks: Number of chunks that the schedule cuts the buffer into.
        staging: Address of `staging_bytes` of registered memory.
        view: Returns the tensor at an address, with a number of elements of a type.
        ahead_bytes: Bytes of receives posted ahead per stream, at least two messages.
    """

    def __init__(
        self,
        plan: Plan,
        tensor: torch.Tensor,
        address: int,
        chunks: int,
        *,
        staging: int,
        view: Callable[[int, int, torch.dtype], torch.Tensor],
        ahead_bytes: int,
    ) -> None:
        self._plan = plan
        self._tensor = tensor
        self._address = address
        self._ranges = chunk_ranges(tensor.numel(), chunks)
        self._view = view
        self._applied = [0] * chunks
        self._acked = [0] * chunks
        self._in_flight: dict[int, PlannedMessage] = {}  # by tag
        self._sending: dict[Stream, int] = defaultdict(int)
        self._receiving: dict[Stream, int] = defaultdict(int)
        self._blocked: dict[int, dict[Hashable, Callable[[], None]]] = defaultdict(dict)  # by chunk
        self._requests: list[Request] = []
        self._receives = bool(plan.receives or plan.aggregates)
        self._left = sum(len(rows) for rows in plan.sends.values())
        self._left += sum(len(rows) for rows in plan.receives.values()) + len(plan.aggregates)
        item = tensor.element_size()
        self._depth = {
            stream: depth(rows, self._ranges, item, ahead_bytes)
            for stream, rows in plan.receives.items()
        }
        self._free = lay_out(plan, self._ranges, item, staging, ahead_bytes)

    @property
    def receives(self) -> bool:
        """Whether any row writes to this rank."""
        return self._receives

    @property
    def streams(self) -> tuple[Stream, ...]:
        """The streams that it sends messages on."""
        return tuple(self._plan.sends)

    @property
    def done(self) -> bool:
        return self._left == 0

    def waits(self, names: Sequence[str]) -> list[str]:
        """Return the requests that are not answered yet, for people; `names` are the nodes'."""
        sends, receives = _by_peer(self._sending), _by_peer(self._receiving)
        aggregates = sum(row.stream == NETWORK for row in self._in_flight.values())
        return [
            *(f"{names[peer]} to take {_messages(count)}" for peer, count in sends.items()),
            *(f"{_messages(count)} from {names[peer]}" for peer, count in receives.items()),
            *(["the switches to aggregate"] if aggregates else []),
        ]

    def start(self) -> None:
        for stream in self._plan.receives:
            self._post_receives(stream)
        for stream in self._plan.sends:
            self._post_sends(stream)
        self._post_aggregates()

    def take_requests(self) -> list[Request]:
        requests, self._requests = self._requests, []
        return requests

    def sent(self, tag: int) -> None:
        """Note that the peer has the whole message of this row."""
        row = self._in_flight.pop(tag)
        self._sending[row.stream] -= 1
        self._left -= 1
        if row.codec is not None:
            self._free.sends[row.stream].append(row.slot)
        self._post_sends(row.stream)
        if row.codec is None:
            self._count(row, self._acked)

    def received(self, tag: int, size_bytes: int) -> None:
        """Note that the message of this row, of this size, has landed at the requested address."""
        row = self._in_flight.pop(tag)
        row.came_bytes = size_bytes
        if row.staged:
            self._apply(row)
        else:
            self._written(row)

    def aggregated(self, tag: int) -> None:
        """Note that the aggregate of this row has replaced the rank's chunk."""
        self._left -= 1
        self._count(self._in_flight.pop(tag), self._applied)

    def _count(self, row: PlannedMessage, counts: list[int]) -> None:
        """Count a row that is applied or acknowledged; retry rows that waited for its chunks."""
        for chunk in range(row.start, row.stop):
            counts[chunk] += 1
        for chunk in range(row.start, row.stop):
            for again in self._blocked.pop(chunk, {}).values():
                again()

    def _missing(self, row: PlannedMessage) -> int:
        """Return the first chunk of the row that waits for an earlier write or send; -1 if none."""
        for chunk, writes in enumerate(row.after_writes, row.start):
            if self._applied[chunk] < writes:
                return chunk
        for chunk, sends in enumerate(row.after_sends, row.start):
            if self._acked[chunk] < sends:
                return chunk
        return -1

    def _waits(self, row: PlannedMessage, who: Hashable, again: Callable[[], None]) -> bool:
        """Return whether the row must wait; if so call `again` once when that may have changed."""
        chunk = self._missing(row)
        if chunk >= 0:
            self._blocked[chunk][who] = again
        return chunk >= 0

    def _bytes(self, row: PlannedMessage) -> tuple[int, int]:
        """Return the address and size of a row's chunks."""
        start, stop = self._ranges[row.start][0], self._ranges[row.stop - 1][1]
        item = self._tensor.element_size()
        return self._address + start * item, (stop - start) * item

    def _post_sends(self, stream: Stream) -> None:
        rows = self._plan.sends[stream]
        while rows and self._sending[stream] < MAX_POSTED:
            row = rows[0]
            if self._waits(row, (Send, stream), lambda: self._post_sends(stream)):
                return
            if row.codec is not None and not self._free.sends[stream]:
                return  # a buffer comes back when a message has been sent
            rows.popleft()
            self._sending[stream] += 1
            self._in_flight[row.tag] = row
            if row.codec is None:
                self._requests.append(Send(stream, *self._bytes(row), row.tag))
            else:
                self._requests.append(self._encode(row, row.codec))
                self._count(row, self._acked)  # the message is a copy, not the tensor itself

    def _encode(self, row: PlannedMessage, codec: Codec) -> Send:
        """Write a row's message to a buffer of its own."""
        row.slot = self._free.sends[row.stream].pop()
        data = codec.encode(self._chunks(row))
        self._view(row.slot, data.numel(), torch.uint8).copy_(data)
        return Send(row.stream, row.slot, data.numel(), row.tag)

    def _post_receives(self, stream: Stream) -> None:
        rows = self._plan.receives[stream]
        while rows and self._receiving[stream] < self._depth[stream]:
            row = rows[0]
            address, size = self._bytes(row)
            if row.staged:
                if not self._free.receives[stream]:
                    return  # a buffer comes back when a held write is applied
                row.slot = address = self._free.receives[stream].pop()  # most recently used
                size = room_bytes(row, self._ranges, self._tensor.element_size())
            elif self._waits(row, (Receive, stream), lambda: self._post_receives(stream)):
                return
            rows.popleft()
            self._receiving[stream] += 1
            self._in_flight[row.tag] = row
            self._requests.append(Receive(stream, address, size, row.tag))

    def _post_aggregates(self) -> None:
        rows, self._plan.aggregates = self._plan.aggregates, []
        for row in rows:
            if self._missing(row) >= 0:
                self._plan.aggregates.append(row)
                continue
            self._in_flight[row.tag] = row
            self._requests.append(Reduce(*self._bytes(row), row.tag))
        if self._plan.aggregates:
            self._waits(self._plan.aggregates[0], Reduce, self._post_aggregates)

    def _apply(self, row: PlannedMessage) -> None:
        """Move a staged message into the tensor, when its turn has come."""
        if self._waits(row, row.tag, lambda: self._apply(row)):
            return
        target = self._chunks(row)
        elements, dtype = target.numel(), target.dtype
        if row.codec is None:
            source = self._view(row.slot, elements, dtype)
        else:
            data = self._view(row.slot, row.came_bytes, torch.uint8)
            source = row.codec.decode(data, elements, dtype)
        if row.stream.op is Op.REDUCE:
            target.add_(source)
        else:
            target.copy_(source)
        self._free.receives[row.stream].append(row.slot)
        self._written(row)

    def _chunks(self, row: PlannedMessage) -> torch.Tensor:
        """Return a row's part of the tensor."""
        return self._tensor[self._ranges[row.start][0] : self._ranges[row.stop - 1][1]]

    def _written(self, row: PlannedMessage) -> None:
        self._left -= 1
        self._receiving[row.stream] -= 1
        self._post_receives(row.stream)
        self._count(row, self._applied)


def _by_peer(counts: Mapping[Stream, int]) -> dict[int, int]:
    found: dict[int, int] = defaultdict(int)
    for stream, count in counts.items():
        if count:
            found[stream.peer] += count
    return found


def _messages(count: int) -> str:
    return "a message" if count == 1 else f"{count} messages"
