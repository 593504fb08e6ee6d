"""Compares both switches packet by packet until they differ, and shrinks the difference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ringleaf.errors import BackendError
from ringleaf.switches.engine.updates import Update
from ringleaf.switches.fuzz.clocks import Clocks, Masks, matched, similar, timed_places
from ringleaf.switches.fuzz.course import FuzzCourse
from ringleaf.switches.fuzz.packets import Packet
from ringleaf.switches.fuzz.sides import Bmv2Side, EngineSide, RefusedError, cells_of
from ringleaf.switches.fuzz.sieve import Shadows, Sieve
from ringleaf.switches.program import Program

MOST_ENDS = 8
"""Ways in which BMv2 may end in a round; each costs a BMv2 of its own."""


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A difference: in the output for `packets[-1]`, or in registers and counters afterwards.

    `earlier` is what left BMv2 for each packet before the last one; `hidden` has a mask for each of
    BMv2's outputs for each packet (`clocks.py`), but for those that nothing of ours is like.
    """

    updates: tuple[Update, ...]
    packets: tuple[Packet, ...]
    ours: tuple[Packet, ...] = ()
    theirs: tuple[Packet, ...] = ()
    state: tuple[str, ...] = ()  # lines
    earlier: tuple[tuple[Packet, ...], ...] = ()
    hidden: tuple[Masks, ...] = ()


@dataclass(slots=True)
class FuzzRound:
    """The outcome of one round."""

    compared: int = 0
    sent: int = 0  # packets that left BMv2
    masked: int = 0  # of these, those of which some bytes were not compared, as they tell the time
    difference: Disagreement | None = None
    refused: list[str] = field(default_factory=list)  # updates that BMv2 does not take
    left_out: Counter[str] = field(default_factory=Counter)  # packets, by reason
    examples: dict[str, Packet] = field(default_factory=dict)  # by reason

    def leave_out(self, reason: str, packet: Packet) -> None:
        """Count a packet that is not compared; the first one of each reason is an example."""
        self.left_out[reason] += 1
        self.examples.setdefault(reason, packet)


class Contest:
    """Compares the engine and BMv2 on one program.

    Args:
        program: The program.
        unchecked: Whether BMv2 was built without its checks, and so must not access arrays out of
            their range.
    """

    def __init__(self, program: Program, *, unchecked: bool = False) -> None:
        self._program = program
        self.shadows = Shadows.of(program)
        observer = self.shadows.observed.module.observer
        assert observer is not None
        self.course = FuzzCourse(observer)
        self._timed = timed_places(self.shadows.observed)
        self._unchecked = unchecked

    def run(self, updates: Sequence[Update], packets: Iterable[Packet], count: int) -> FuzzRound:
        """Compare a round, until the first difference.

        A packet that ends BMv2 is left out, and both start anew.

        Args:
            updates: Updates for both switches.
            packets: The packets; each is drawn after it is known what the one before has reached.
            count: The number of packets to compare.
        """
        done = FuzzRound()
        accepted = self._accepted(updates, done)
        sieve = self._sieve(accepted)
        rest: Sequence[Packet] = self._kept(sieve, packets, count)
        done.left_out.update(sieve.dropped)
        done.examples.update(sieve.examples)
        while rest and done.difference is None:
            rest = self._stretch(accepted, rest, done)
        return done

    def _kept(self, sieve: Sieve, packets: Iterable[Packet], count: int) -> list[Packet]:
        """Return the first packets that the sieve keeps, and note what they reach."""
        kept: list[Packet] = []
        for packet in packets:
            if len(kept) == count:
                break
            before = sieve.engine.counts()
            if sieve.takes(packet):
                kept.append(packet)
                self.course.note(packet, before, sieve.engine)
        return kept

    def _sieve(self, updates: Sequence[Update]) -> Sieve:
        return Sieve(self.shadows, updates, unchecked=self._unchecked)

    def _accepted(self, updates: Sequence[Update], done: FuzzRound) -> list[Update]:
        """Return the updates that both sides accept.

        The engine is asked again after each that BMv2 refuses: others may refer to it.
        """
        accepted = list(updates)
        while True:
            accepted = EngineSide(self._program, accepted).accepted
            try:
                with Bmv2Side(self._program, accepted):
                    return accepted
            except RefusedError as exc:
                done.refused.append(str(exc))
                accepted.remove(exc.update)

    def _stretch(
        self, updates: Sequence[Update], packets: Sequence[Packet], done: FuzzRound
    ) -> Sequence[Packet]:
        """Compare packets on fresh switches; return those after one that ended BMv2."""
        with Bmv2Side(self._program, updates) as bmv2:
            match = self._match(updates, bmv2)
            for number, packet in enumerate(packets, 1):
                try:
                    agree = match.takes(packet)
                except BackendError as exc:
                    done.leave_out(str(exc), packet)
                    return packets[number:] if len(done.examples) < MOST_ENDS else ()
                done.compared += 1
                done.sent += len(match.answers[-1])
                done.masked += sum(map(any, match.hidden[-1]))
                if not agree:
                    done.difference = self._alone(updates, packet) or match.difference()
                    return ()
            match.compare_state(self._timed)
        if match.state:
            done.difference = match.difference()
        return ()

    def _match(self, updates: Sequence[Update], bmv2: Bmv2Side) -> Match:
        return Match(self._program, updates, bmv2, Clocks(self.shadows.observed, updates))

    def _alone(self, updates: Sequence[Update], packet: Packet) -> Disagreement | None:
        """Return the difference that a packet makes on fresh switches, if any."""
        return self.replay(updates, [packet])

    def replay(self, updates: Iterable[Update], packets: Sequence[Packet]) -> Disagreement | None:
        """Return the first difference on fresh switches; None if there is none, or BMv2 fails.

        There is none, either, if the outcome of a packet is undefined, or if an update refers to
        what the others don't make.
        """
        updates = tuple(updates)
        if len(EngineSide(self._program, updates).accepted) < len(updates):
            return None
        if len(self._sieve(updates).keep(packets)) < len(packets):
            return None
        try:
            with Bmv2Side(self._program, updates) as bmv2:
                match = self._match(updates, bmv2)
                if not all(map(match.takes, packets)):
                    return match.difference()
                match.compare_state(self._timed)
        except (BackendError, RefusedError):
            return None
        return match.difference() if match.state else None


class Match:
    """A fresh engine beside a fresh BMv2, and what they have done since.

    `answers` and `hidden` are BMv2's outputs for each packet, and their bytes that tell the time;
    `state` has lines on what differs between the switches' registers and counters.
    """

    def __init__(
        self, program: Program, updates: Sequence[Update], bmv2: Bmv2Side, clocks: Clocks
    ) -> None:
        self._program = program
        self._updates = tuple(updates)
        self._engine = EngineSide(program, updates)
        self._bmv2 = bmv2
        self._clocks = clocks
        self._packets: list[Packet] = []
        self._ours: list[Packet] = []  # for the last packet
        self.answers: list[tuple[Packet, ...]] = []
        self.hidden: list[Masks] = []
        self.state: tuple[str, ...] = ()

    def takes(self, packet: Packet) -> bool:
        """Return whether both switches do the same with a packet, as far as it can be compared.

        Raises:
            BackendError: If BMv2 has ended, or has not finished with the packet in time.
        """
        self._packets.append(packet)
        self._ours = self._engine.process(packet)
        masks = self._clocks.masks(packet, self._ours) or tuple(
            bytes(len(data)) for _, data in self._ours
        )
        theirs = self._bmv2.process(packet)
        hidden = matched(self._ours, masks, theirs)
        self.answers.append(tuple(theirs))
        self.hidden.append(similar(self._ours, masks, theirs) if hidden is None else hidden)
        return hidden is not None

    def compare_state(self, timed: Collection[str]) -> None:
        """Compare registers and counters, but for registers that are `timed`."""
        cells = cells_of(self._program, self._updates, timed)
        ours, theirs = self._engine.state(cells), self._bmv2.state(cells)
        self.state = tuple(
            f"{label}: the engine has {ours[label]}, BMv2 {theirs[label]}"
            for label in ours
            if ours[label] != theirs[label]
        )

    def difference(self) -> Disagreement:
        """Return what differs: the outputs of the last packet, or the state."""
        *earlier, last = self.answers
        return Disagreement(
            self._updates,
            tuple(self._packets),
            ours=tuple(self._ours),
            theirs=last,
            state=self.state,
            earlier=tuple(earlier),
            hidden=tuple(self.hidden),
        )


Differs = Callable[[Sequence[Update], Sequence[Packet]], Disagreement | None]


def shrink(disagreement: Disagreement, differs: Differs, tries: int) -> Disagreement:
    """Return a difference of fewer packets and updates and a shorter last packet.

    Args:
        disagreement: The difference to start from.
        differs: Returns the difference that other updates and packets make, as `Contest.replay`.
        tries: The most calls of `differs`.
    """
    budget = iter(range(tries))
    best = disagreement
    for part in (_fewer_packets, _fewer_updates, _shorter_packet):
        best = part(best, differs, budget)
    return best


def _fewer_packets(best: Disagreement, differs: Differs, budget: Iterator[int]) -> Disagreement:
    return _delta(
        best,
        lambda one: one.packets[:-1],
        lambda one, kept: differs(one.updates, (*kept, one.packets[-1])),
        budget,
    )


def _fewer_updates(best: Disagreement, differs: Differs, budget: Iterator[int]) -> Disagreement:
    return _delta(
        best, lambda one: one.updates, lambda one, kept: differs(kept, one.packets), budget
    )


def _delta(
    best: Disagreement,
    items: Callable[[Disagreement], Sequence[object]],
    attempt: Callable[[Disagreement, tuple[Any, ...]], Disagreement | None],
    budget: Iterator[int],
) -> Disagreement:
    """Leave out stretches, halving their length (Zeller's ddmin without its complements)."""
    size = max(len(items(best)), 1)
    while size:
        at = 0
        while at < len(items(best)):
            if next(budget, None) is None:
                return best
            kept = (*items(best)[:at], *items(best)[at + size :])
            smaller = attempt(best, kept)
            if smaller is None:
                at += size
            else:
                best = smaller
        size //= 2
    return best


def _shorter_packet(best: Disagreement, differs: Differs, budget: Iterator[int]) -> Disagreement:
    """Set bytes of the last packet to zero, and cut its end off, if the difference remains."""
    size = len(best.packets[-1][1])
    while size:
        at = 0
        while at < len(best.packets[-1][1]):
            port, data = best.packets[-1]
            for changed in (data[:at] + data[at + size :], _zeroed(data, at, size)):
                if not changed or changed == data:
                    continue
                if next(budget, None) is None:
                    return best
                smaller = differs(best.updates, (*best.packets[:-1], (port, changed)))
                if smaller is not None and len(smaller.packets) == len(best.packets):
                    best = smaller
                    break
            at += size
        size //= 2
    return best


def _zeroed(data: bytes, at: int, size: int) -> bytes:
    return data[:at] + bytes(len(data[at : at + size])) + data[at + size :]
