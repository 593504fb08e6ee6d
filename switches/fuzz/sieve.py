"""Filters out packets that BMv2 can't be compared by: those whose outcome P4 leaves open.

A header that was not extracted still has fields; BMv2's hold the values of an earlier packet,
ours are zero (`switches/generate/undefined_fields.py` lists the cases). P4 allows both. So packets
go through twins of the engine in which such fields are not zero: an output that differs there was
undefined. Decisions by such a field (`field == 0x806`) may be the same in all twins, and so their
values are compared, too (`switches/generate/doubts.py`). Packets for which time decides, that draw
random numbers, that would loop forever in BMv2, or abort it (`assert`), are kept from it, too; and
those that access an array out of its range from a BMv2 that was built without its checks
(`switches/bmv2/build.py`); and those whose copies change what other copies find in egress, as BMv2
takes copies for different ports in any order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from ringleaf.switches.engine.updates import Update
from ringleaf.switches.fuzz.clocks import Clocks
from ringleaf.switches.fuzz.decisions import Counts, Decisions
from ringleaf.switches.fuzz.packets import Packet
from ringleaf.switches.fuzz.sides import EngineSide
from ringleaf.switches.generate.observing import OPEN, TIMED, Variant
from ringleaf.switches.program import Program

UNDEFINED = "reads headers that are not there, whose fields BMv2 leaves undefined"
TIME = "decides by time, of which every switch has its own"
CHANCE = "draws a random number, of which every switch has its own"
OUTSIDE = "accesses registers, counters or meters out of their range, which BMv2 does not check"
CROWDED = "leads to more packets at once than BMv2's queues hold for certain"
ORDER = "leads to copies that differ by the order of egress, which is up to BMv2's threads"
ENDLESS = "goes round for ever, or violates an assertion"

MOST_OUTPUTS = 32
"""Outputs of a packet, at most; BMv2's queues hold 64, and their overflow is up to its threads."""


@dataclass(frozen=True, slots=True)
class Shadows:
    """A program in other forms: observed, and with other leftovers.

    Leftovers are all alike in one twin and all different in the other: fields that are compared
    with each other would be equal all the same.
    """

    observed: Program
    twins: tuple[Program, ...]

    @classmethod
    def of(cls, program: Program) -> Self:
        """Load the program's file once more for each form."""
        path = program.source.path
        observed = Program.load(path, variant=Variant(observed=True))
        twins = (Program.load(path, variant=Variant(True, leftovers=kind)) for kind in (1, 2))
        return cls(observed, tuple(twins))


class Sieve:
    """The engine and its twins, with some updates.

    Args:
        shadows: The program's shadows.
        updates: Updates for the switches.
        unchecked: Whether BMv2 must not access arrays out of their range.
    """

    def __init__(
        self, shadows: Shadows, updates: Sequence[Update], *, unchecked: bool = False
    ) -> None:
        self.engine = EngineSide(shadows.observed, updates)
        self._decisions = Decisions(shadows.observed, updates)
        self._clocks = Clocks(shadows.observed, updates)
        self._reverse = EngineSide(shadows.observed, updates)
        self._reverse.switch.last_first = True
        self._twins = [EngineSide(twin, updates) for twin in shadows.twins]
        self._unchecked = unchecked
        self.dropped: Counter[str] = Counter()
        self.examples: dict[str, Packet] = {}

    def keep(self, packets: Sequence[Packet]) -> list[Packet]:
        """Return the packets that both switches must agree on; the others leave no trace."""
        return [packet for packet in packets if self.takes(packet)]

    def takes(self, packet: Packet) -> bool:
        """Process a packet if both switches must agree on it; return whether they must.

        Twins only see packets that pass all other tests.
        """
        before, counts = self.engine.snapshot(), self.engine.counts()
        endless, chance, outside = self.engine.endless, self.engine.chance, self.engine.outside
        out = self.engine.process(packet)
        if self.engine.endless > endless:
            reason = ENDLESS
        elif self.engine.chance != chance:
            reason = CHANCE
        elif self._unchecked and self.engine.outside > outside:
            reason = OUTSIDE
        elif len(out) > MOST_OUTPUTS:
            reason = CROWDED
        elif self._by_time(counts):
            reason = TIME
        elif not self._twins_agree(packet, out, counts):
            reason = UNDEFINED
        elif not self._same_in_any_order(packet, out):
            reason = ORDER
        elif not self._same_at_all_times(packet, out):
            reason = TIME
        else:
            return True
        self.dropped[reason] += 1
        self.examples.setdefault(reason, packet)
        self.engine.restore(before)
        return False

    def _same_in_any_order(self, packet: Packet, out: list[Packet]) -> bool:
        """Return whether copies may pass egress in any order; if not, forget the packet."""
        before = self._reverse.snapshot()
        if (self._reverse.process(packet), self._reverse.memory()) == (out, self.engine.memory()):
            return True
        self._reverse.restore(before)
        return False

    def _same_at_all_times(self, packet: Packet, out: list[Packet]) -> bool:
        """Return whether outputs differ in bytes at most with time; if not, forget the packet."""
        before = self._clocks.snapshot()
        if self._clocks.masks(packet, out) is not None:
            return True
        self._clocks.restore(before)
        return False

    def _by_time(self, before: Counts) -> bool:
        """Return whether time has decided anything since these counts."""
        return self._decisions.differ(TIMED, self.engine.counts(), before, before, self.engine)

    def _twins_agree(self, packet: Packet, out: list[Packet], counts: Counts) -> bool:
        """Return whether the twins do as the engine did, by the same values; else restore them."""
        before = [twin.snapshot() for twin in self._twins]
        expected, notes = (out, self.engine.memory()), self.engine.counts()
        if all(
            (twin.process(packet), twin.memory()) == expected
            and not self._decisions.differ(OPEN, notes, twin.counts(), counts, self.engine)
            for twin in self._twins
        ):
            return True
        for twin, state in zip(self._twins, before, strict=True):
            twin.restore(state)
        return False
