"""Finds the bytes of a program's output that depend on time, of which every switch has its own.

The engine runs beside copies of itself whose clocks show other times, run faster, and let packets
wait between ingress and egress: a byte that differs is hidden when outputs are compared. Packets
for which time decides anything are not compared at all (`sieve.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from ringleaf.switches.engine.updates import Update
from ringleaf.switches.fuzz.packets import Packet
from ringleaf.switches.fuzz.sides import EngineSide, PacketClock, Snapshot
from ringleaf.switches.program import Program
from ringleaf.switches.source import Named

Masks = tuple[bytes, ...]
"""For each output, in the engine's order, a byte 0xff for each that depends on time, else 0."""

CLOCKS = (
    PacketClock(0x25A_C396_F01E, 0x4203_0507, 0xB7_6543),
    PacketClock(0x1A5_3C69_0FE1, 0x3129_2B2F, 0x48_9ABC),
    PacketClock(0x3C6_395A_69B4, 0x2543_4761, 0x31_0F1E),
)
"""In microseconds; at first all bits of the first two are opposite, of the waits as well."""


class Clocks:
    """Copies of the engine with other clocks; none for a program that does not ask for the time.

    Args:
        observed: The program, observed.
        updates: Updates for the switches.
    """

    def __init__(self, observed: Program, updates: Sequence[Update]) -> None:
        asks = bool(timed_places(observed))
        self._sides = [EngineSide(observed, updates, clock) for clock in CLOCKS if asks]

    def masks(self, packet: Packet, out: Sequence[Packet]) -> Masks | None:
        """Process a packet, and return what to hide of the engine's outputs for it.

        Returns:
            None if there are other outputs, ports or lengths at other times.
        """
        hidden = [bytearray(len(data)) for _, data in out]
        shape = [(port, len(data)) for port, data in out]
        others = [side.process(packet) for side in self._sides]
        if any([(port, len(data)) for port, data in other] != shape for other in others):
            return None
        for other in others:
            for mask, (_, ours), (_, data) in zip(hidden, out, other, strict=True):
                for at in (i for i, (a, b) in enumerate(zip(ours, data, strict=True)) if a != b):
                    mask[at] = 0xFF
        return tuple(map(bytes, hidden))

    def snapshot(self) -> list[Snapshot]:
        """Return the state of each copy."""
        return [side.snapshot() for side in self._sides]

    def restore(self, states: Sequence[Snapshot]) -> None:
        """Put each copy back into a state that `snapshot` has returned."""
        for side, state in zip(self._sides, states, strict=True):
            side.restore(state)


def timed_places(observed: Program) -> set[str]:
    """Return the names of the registers and headers of an observed program that time gets into."""
    observer = observed.module.observer
    assert observer is not None
    return {
        place.name if isinstance(place, Named) else place.header for place in observer.doubts.timed
    }


def matched(ours: Sequence[Packet], masks: Masks, theirs: Sequence[Packet]) -> Masks | None:
    """Return what is hidden of each of their outputs; None if these are others than ours.

    Outputs may come in any order.
    """
    left = list(enumerate(theirs))
    hidden = [b""] * len(theirs)
    for (port, data), mask in zip(ours, masks, strict=True):
        shown = port, _shown(data, mask)
        for at, (number, (other_port, other)) in enumerate(left):
            if len(other) == len(data) and (other_port, _shown(other, mask)) == shown:
                hidden[number] = mask
                del left[at]
                break
        else:
            return None
    return None if left else tuple(hidden)


def similar(ours: Sequence[Packet], masks: Masks, theirs: Sequence[Packet]) -> Masks:
    """Return what to hide of each of their outputs where they differ: as of ours of its length."""
    known = {(port, len(data)): mask for (port, data), mask in zip(ours, masks, strict=True)}
    return tuple(known.get((port, len(data)), b"") for port, data in theirs)


def _shown(data: bytes, mask: bytes) -> bytes:
    if not any(mask):
        return data
    return bytes(0 if hidden else byte for byte, hidden in zip(data, mask, strict=True))
