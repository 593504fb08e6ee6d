"""Frames of packets: one for each packet that arrived somewhere, or was lost on its way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from itertools import count

from ringleaf.experiments.stepper.observed import Instant, Observed, RegisterEntry
from ringleaf.experiments.stepper.story import (
    BufferChange,
    Buffers,
    EntryChange,
    Frame,
    FrameAction,
    StateEntry,
    TensorCell,
    show_who,
)
from ringleaf.networks.virtual.watch import Sight


@dataclass(frozen=True, slots=True)
class PacketStory:
    """A run as a story: its cells, first state and frames."""

    cells: tuple[str, ...]
    first: Buffers
    frames: tuple[Frame, ...]


def packet_frames(observed: Observed, inputs: Sequence[Sequence[int]]) -> PacketStory:
    """Return the story of a run, packet by packet."""
    teller = _Teller(observed, [tuple(tensor) for tensor in inputs])
    return PacketStory(teller.names, teller.first, tuple(teller.frames()))


class _Teller:
    def __init__(self, observed: Observed, inputs: list[tuple[int, ...]]) -> None:
        self._observed = observed
        self._ranks = len(inputs)
        self._ranges = observed.ranges(len(inputs[0]))
        self.names = tuple(_name(start, stop) for start, stop in self._ranges)
        self.first: Buffers = tuple(
            tuple(TensorCell((rank,), tensor[start:stop]) for start, stop in self._ranges)
            for rank, tensor in enumerate(inputs)
        )
        self._buffers = [list(cells) for cells in self.first]
        self._entries: dict[str, dict[int, StateEntry]] = {}
        self._counted: dict[str, dict[str, int]] = {}

    def frames(self) -> Iterator[Frame]:
        """Yield the frames in order of time; those of one time are one step."""
        step, time_ps = -1, -1
        for frame in self._in_order():
            assert frame.time_ps is not None
            if frame.time_ps != time_ps:
                step, time_ps = step + 1, frame.time_ps
            yield replace(frame, step=step)

    def _in_order(self) -> Iterator[Frame]:
        """Yield a frame for each arrival, and for each loss when the packet was due."""
        due: list[tuple[int, int, Frame]] = []  # losses: time, order, frame
        order = count()  # of losses at the same time, whose frames have no order of their own
        for number, event in enumerate(self._observed.events):
            for place, sight in enumerate(event.sights):
                while due and due[0][0] < sight.time_ps and not sight.lost:
                    yield heappop(due)[2]
                if not sight.sent:
                    yield self._arrival(number, place, event)
                elif sight.lost:
                    frame = self._loss(number, place, sight)
                    heappush(due, (sight.time_ps, next(order), frame))
        while due:
            yield heappop(due)[2]

    def _loss(self, number: int, place: int, sight: Sight) -> Frame:
        packet = self._describe(sight.data)
        near, far = sight.place.node, sight.place.peer
        return Frame(
            0,
            FrameAction.LOST,
            f"{near} → {far}: {packet} is lost",
            f"The link loses it; {far} knows nothing of it.",
            _label(packet),
            (near, far),
            len(sight.data),
            self._carried(number, place, sight),
            time_ps=sight.time_ps,
        )

    def _arrival(self, number: int, place: int, event: Instant) -> Frame:
        sight = event.sights[place]
        near, far = sight.place.peer, sight.place.node
        packet = self._describe(sight.data)
        entries = tuple(self._entry_changes(number, event))
        buffers = tuple(self._buffer_changes(number, event))
        at_switch = far in event.held
        text = self._at_host(event, buffers)
        if at_switch:
            text = self._at_switch(far, number, event, entries)
        return Frame(
            0,
            FrameAction.UP if at_switch else FrameAction.DOWN,
            f"{near} → {far}: {packet}",
            text,
            _label(packet),
            (near, far),
            len(sight.data),
            self._carried(number, place, sight),
            buffers,
            entries,
            sight.time_ps,
        )

    def _entry_changes(self, number: int, event: Instant) -> Iterator[EntryChange]:
        for switch, registers in event.held.items():
            known = self._entries.setdefault(switch, {})
            for index in sorted(registers.keys() | known.keys()):
                before = known.get(index)
                after = (
                    self._entry(number, switch, index, registers[index])
                    if index in registers
                    else None
                )
                if before != after:
                    yield EntryChange(switch, index, before, after)
                    if after is None:
                        del known[index]
                    else:
                        known[index] = after

    def _entry(self, number: int, switch: str, index: int, register: RegisterEntry) -> StateEntry:
        if not register.lanes:
            return StateEntry(register.facts, None)
        blocks = self._observed.blocks
        if blocks is not None:
            beside = self._observed.traced[0][number].held[switch][index].lanes
            return StateEntry(register.facts, blocks.cell(register.lanes, beside, self._ranks))
        twins = [twin[number].held[switch].get(index) for twin in self._observed.traced]
        who = self._observed.who([twin.lanes[0] if twin else 0 for twin in twins])
        return StateEntry(register.facts, TensorCell(who, register.lanes))

    def _buffer_changes(self, number: int, event: Instant) -> Iterator[BufferChange]:
        for rank, tensor in enumerate(event.tensors):
            for cell, (start, stop) in enumerate(self._ranges):
                before = self._buffers[rank][cell]
                who = self._observed.who_in(number, rank, start)
                after = TensorCell(who, tensor[start:stop])
                if before != after:
                    self._buffers[rank][cell] = after
                    yield BufferChange(rank, cell, before, after)

    def _describe(self, data: bytes) -> str:
        readable = self._observed.readable
        return (readable.read_packet(data) if readable else "") or _dissect(data)

    def _carried(self, number: int, place: int, sight: Sight) -> TensorCell | None:
        readable = self._observed.readable
        numbers = readable.read_values(sight.data) if readable else ()
        if not numbers:
            return None
        twins = [twin[number].sights[place].data for twin in self._observed.traced]
        assert readable is not None
        who = self._observed.who([readable.read_values(twin)[0] for twin in twins])
        return TensorCell(who, tuple(numbers))

    def _at_switch(
        self, switch: str, number: int, event: Instant, entries: tuple[EntryChange, ...]
    ) -> str:
        sent = [sight for sight in event.sights if sight.sent]
        suffix = "".join(f", counted as {name!r}" for name in self._newly_counted(switch, event))
        if sent:
            to = ", ".join(sight.place.peer for sight in sent)
            return f"{switch} sends to {to}: {self._describe(sent[0].data)}{suffix}."
        if not entries:
            busy = ": its port is busy" if self._is_queued(switch, number) else ""
            return f"{switch} changes nothing, and sends nothing at once{busy}{suffix}."
        missing = [
            name
            for change in entries
            if change.after is not None
            for fact in change.after.facts
            for name, there in fact.bits
            if not there
        ]
        waits = f", and waits for {', '.join(missing)}" if missing else ""
        verb = "adds it" if any(_grows(change) for change in entries) else "keeps it"
        return f"{switch} {verb}{waits}{suffix}."

    def _is_queued(self, switch: str, number: int) -> bool:
        """Return whether what a switch sends next has been in it since an event, or longer.

        It has if no packet comes to the switch when it leaves.
        """
        for event in self._observed.events[number + 1 :]:
            here = [sight.sent for sight in event.sights if sight.place.node == switch]
            if any(here):
                return all(here)
        return False

    def _newly_counted(self, switch: str, event: Instant) -> list[str]:
        before = self._counted.get(switch, {})
        self._counted[switch] = dict(event.counted[switch])
        return [n for n, count in event.counted[switch].items() if count > before.get(n, 0)]

    def _at_host(self, event: Instant, buffers: tuple[BufferChange, ...]) -> str:
        parts = [
            f"Rank {change.rank} now has {show_who(change.after.who, self._ranks)} "
            f"in {self.names[change.cell]}."
            for change in buffers
        ] or ["It changes nothing there."]
        parts += [f"It sends {self._describe(sight.data)}." for sight in event.sights if sight.sent]
        return " ".join(parts)


def _grows(change: EntryChange) -> bool:
    """Return whether a sum has got more addends; if not, it was replaced by something new."""
    before, after = change.before, change.after
    if before is None or after is None or before.total is None or after.total is None:
        return False
    return set(before.total.who) < set(after.total.who)


def _name(start: int, stop: int) -> str:
    return f"elements {start}-{stop - 1}" if stop - start > 1 else f"element {start}"


def _label(packet: str) -> str:
    return packet.partition(",")[0]


def _dissect(data: bytes) -> str:
    """Return scapy's summary of a packet, for systems that do not describe their packets."""
    from scapy.layers.l2 import Ether
    from scapy.packet import Padding, Raw

    from ringleaf.ina.registry import layer_modules

    layer_modules()
    packet = Ether(data)
    for kind in (Padding, Raw):  # which would be the last name, and say nothing
        if kind in packet:
            packet[kind].underlayer.remove_payload()
    summary: str = packet.summary()
    return summary.rpartition(" / ")[2] or summary
