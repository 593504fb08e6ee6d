"""Comparison of the packets that a port sends with the expected ones, as they come."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

import numpy as np
import numpy.typing as npt

from ringleaf.core import native_types as types
from ringleaf.core.arena import Bytes, Words
from ringleaf.core.compiled import compiled
from ringleaf.core.views import window
from ringleaf.networks.traces.pcap_read import PacketFile

LOOK_AHEAD = 16
"""Packets after the first difference that tell a missing packet from a changed one."""

Mask = Callable[[bytes], bytes]
Flags = npt.NDArray[np.bool_]


class Deviation(Enum):
    """The way in which a packet differs from the expected one; values are its words in reports."""

    CHANGED = "is different"
    LATE = "has another time"
    MISSING = "is missing"
    UNEXPECTED = "was not expected"


@dataclass(frozen=True, slots=True)
class ComparedPacket:
    """A packet of one port, sent or expected."""

    number: int  # among those of its port, from 0
    time_ns: int | None  # None where there is no such thing (BMv2)
    data: bytes


@dataclass(frozen=True, slots=True)
class PacketDifference:
    """The first difference of a port; `expected` or `got` is None if there is no such packet."""

    kind: Deviation
    expected: ComparedPacket | None
    got: ComparedPacket | None


@dataclass(slots=True)
class PortResult:
    """The outcome of the comparison of one port: counts of packets, and the first difference."""

    port: int  # from 1
    received: int  # by the switch
    expected: int
    got: int = 0
    first: PacketDifference | None = None

    @property
    def equal(self) -> bool:
        """Return whether no difference was found."""
        return self.first is None


@dataclass(frozen=True, slots=True)
class ReorderWindow:
    """The distance that a packet may be from its place; both None: any distance."""

    packets: int | None = None
    time_ns: int | None = None


@dataclass(frozen=True, slots=True)
class ComparisonRules:
    """The rules by which packets count as the expected ones."""

    mask: Mask | None = None  # sets to zero the bytes that are not compared
    window: ReorderWindow | None = None  # None: packets must be in order
    times: bool = False  # compare times, too, in ns

    def masked(self, data: bytes) -> bytes:
        """Return the bytes of a packet that are compared, with all others set to zero."""
        return self.mask(data) if self.mask else data


_BYTES, _WORDS, _FLAGS = types.uint8[::1], types.int64[::1], types.boolean[::1]


@compiled(types.void(_BYTES, _WORDS, _WORDS, _BYTES, _WORDS, _WORDS, _FLAGS))
def _compare(
    a: Bytes, a_at: Words, a_sizes: Words, b: Bytes, b_at: Words, b_sizes: Words, differs: Flags
) -> None:
    """Set in `differs` whether each packet differs between a and b."""
    for i in range(differs.size):
        differs[i] = a_sizes[i] != b_sizes[i]
        if not differs[i]:
            left = window(a, a_at[i], a_sizes[i])
            right = window(b, b_at[i], b_sizes[i])
            bits = 0
            for k in range(a_sizes[i]):  # to the end, so that it becomes vector code
                bits |= left[k] ^ right[k]
            differs[i] = bits != 0


@dataclass(frozen=True, slots=True)
class SentBatch:
    """A batch of packets that a port has sent."""

    data: Bytes
    starts: Words
    sizes: Words
    times_ns: Words | None  # None where there is no such thing (BMv2)

    def packet(self, index: int, number: int) -> ComparedPacket:
        """Return the packet at `index`, which has this number among all of its port."""
        start = self.starts[index]
        time_ns = None if self.times_ns is None else int(self.times_ns[index])
        return ComparedPacket(
            number, time_ns, self.data[start : start + self.sizes[index]].tobytes()
        )


class Check(Protocol):
    """Compares one port's packets."""

    result: PortResult

    def take(self, sent: SentBatch) -> None:
        """Compare the next packets that the port has sent."""

    def finish(self) -> None:
        """Note expected packets that are missing, as the port sends no more."""


def make_check(port: int, received: int, file: PacketFile | None, rules: ComparisonRules) -> Check:
    """Return the check of a port against a file; None: the port must send nothing."""
    result = PortResult(port, received, expected=0 if file is None else len(file))
    return (InOrder if rules.window is None else InWindow)(result, file, rules)


def _packet_of(file: PacketFile, number: int) -> ComparedPacket:
    return ComparedPacket(number, int(file.stamps_ns[number]), file.packet(number))


class InOrder:
    """A check that packets are the expected ones, in order."""

    def __init__(self, result: PortResult, file: PacketFile | None, rules: ComparisonRules) -> None:
        self.result = result
        self._file = file
        self._rules = rules
        self._after: list[bytes] = []  # the packets that followed the first difference

    def take(self, sent: SentBatch) -> None:
        """Compare packets with the expected ones at their places; note the first difference."""
        result, count = self.result, sent.starts.size
        done, result.got = result.got, result.got + count
        known = max(0, min(count, result.expected - done))
        for index in [*self._changed(sent, done, known), *range(known, min(count, known + 1))]:
            if result.first is None:
                kind = self._kind(sent, index, done) if index < known else Deviation.UNEXPECTED
                expected = self._expected(done + index) if index < known else None
                result.first = PacketDifference(kind, expected, sent.packet(index, done + index))
                self._remember(sent, index + 1)
                return
        if result.first is not None:
            self._remember(sent, 0)

    def _changed(self, sent: SentBatch, done: int, known: int) -> Iterator[int]:
        """Yield the indices of packets that are not as expected, the masked parts aside."""
        if not known or self.result.first is not None:
            return
        assert self._file is not None
        starts, sizes = (
            each[done : done + known] for each in (self._file.offsets, self._file.lengths)
        )
        differs = np.empty(known, np.bool_)
        _compare(sent.data, sent.starts, sent.sizes, self._file.data, starts, sizes, differs)
        late = np.zeros(known, np.bool_)
        if self._rules.times and sent.times_ns is not None:
            late = sent.times_ns[:known] != self._file.stamps_ns[done : done + known]
        for index in np.flatnonzero(differs | late).tolist():
            if late[index] or not self._same(sent, index, done):
                yield index

    def _same(self, sent: SentBatch, index: int, done: int) -> bool:
        """Return whether a packet is as expected, the masked parts aside."""
        got, expected = sent.packet(index, 0).data, self._expected(done + index).data
        return self._rules.masked(got) == self._rules.masked(expected)

    def _kind(self, sent: SentBatch, index: int, done: int) -> Deviation:
        return Deviation.LATE if self._same(sent, index, done) else Deviation.CHANGED

    def _remember(self, sent: SentBatch, first: int) -> None:
        for index in range(first, sent.starts.size)[: LOOK_AHEAD - len(self._after)]:
            self._after.append(self._rules.masked(sent.packet(index, 0).data))

    def _expected(self, number: int) -> ComparedPacket:
        assert self._file is not None
        return _packet_of(self._file, number)

    def finish(self) -> None:
        """Note a missing packet; decide whether the first difference is one missing or too many."""
        result = self.result
        if result.first is None and result.got < result.expected:
            result.first = PacketDifference(Deviation.MISSING, self._expected(result.got), None)
        first = result.first
        if first is None or first.kind is not Deviation.CHANGED:
            return
        assert first.expected is not None
        assert first.got is not None
        number = first.expected.number
        following = range(number + 1, min(number + 1 + LOOK_AHEAD, result.expected))
        masked = self._rules.masked
        if masked(first.got.data) in [masked(self._expected(i).data) for i in following]:
            result.first = PacketDifference(Deviation.MISSING, first.expected, None)
        elif masked(first.expected.data) in self._after:
            result.first = PacketDifference(Deviation.UNEXPECTED, None, first.got)


class InWindow:
    """A check that packets, each matched with one expected packet, are near their places.

    The earliest match is taken. Only the masked bytes of the window are kept.
    """

    def __init__(self, result: PortResult, file: PacketFile | None, rules: ComparisonRules) -> None:
        assert rules.window is not None
        self.result = result
        self._file = file
        self._rules = rules
        self._window = rules.window
        self._next = 0  # expected packet that is not in the window yet
        self._open: dict[bytes, deque[int]] = {}  # masked bytes -> expected packets, oldest first
        self._unexpected: ComparedPacket | None = None
        self._missing: int | None = None  # the earliest expected packet without a match

    def take(self, sent: SentBatch) -> None:
        """Match each packet with the earliest expected one of the same bytes within the window."""
        for index in range(sent.starts.size):
            self._take_one(sent.packet(index, self.result.got))
            self.result.got += 1

    def _take_one(self, packet: ComparedPacket) -> None:
        self._widen(packet)
        key = self._rules.masked(packet.data)
        candidates = self._open.get(key, deque())
        while candidates and self._is_past(candidates[0], packet):
            number = candidates.popleft()
            self._missing = number if self._missing is None else min(self._missing, number)
        if candidates:
            candidates.popleft()
        elif self._unexpected is None:
            self._unexpected = packet
        if not candidates:
            self._open.pop(key, None)

    def _widen(self, packet: ComparedPacket) -> None:
        """Add all packets that are expected by the end of the packet's window."""
        while self._next < self.result.expected and not self._is_ahead(self._next, packet):
            assert self._file is not None
            key = self._rules.masked(self._file.packet(self._next))
            self._open.setdefault(key, deque()).append(self._next)
            self._next += 1

    def _distance(self, number: int, packet: ComparedPacket) -> tuple[int, int]:
        """Return how far an expected packet is behind this one, and the limit; in packets or ns."""
        if self._window.time_ns is not None and packet.time_ns is not None:
            assert self._file is not None
            return packet.time_ns - int(self._file.stamps_ns[number]), self._window.time_ns
        most = self.result.expected if self._window.packets is None else self._window.packets
        return packet.number - number, most

    def _is_ahead(self, number: int, packet: ComparedPacket) -> bool:
        behind, most = self._distance(number, packet)
        return self._window != ReorderWindow() and -behind > most

    def _is_past(self, number: int, packet: ComparedPacket) -> bool:
        behind, most = self._distance(number, packet)
        return self._window != ReorderWindow() and behind > most

    def finish(self) -> None:
        """Report the earliest packet that is missing, beside the first that was not expected."""
        left = [number for numbers in self._open.values() for number in numbers]
        if self._next < self.result.expected:
            left.append(self._next)
        left += [] if self._missing is None else [self._missing]
        unexpected = self._unexpected
        if not left and unexpected is None:
            return
        assert self._file is not None or not left
        missing = _packet_of(self._file, min(left)) if left and self._file is not None else None
        kind = Deviation.CHANGED
        if missing is None or unexpected is None:
            kind = Deviation.UNEXPECTED if missing is None else Deviation.MISSING
        self.result.first = PacketDifference(kind, missing, unexpected)
