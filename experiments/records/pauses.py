"""Packets held back, trimmed, damaged, forbidden or led elsewhere, and circuits."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Protocol

from ringleaf.core.units import format_count
from ringleaf.experiments.records import circuit_counts


class Counted(Protocol):
    """A row of results, or the results of a run, that counts what has happened to packets.

    Attributes:
        pauses: Times that a port asked the other end to pause a class.
        trims: Packets that found a queue full, and went on without their payload.
        corrupted: Packets that receivers discarded, as a bit was wrong.
        repaths: Times that a connection took another path, as nothing got through.
        forbidden: Which switches dropped packets that their programs forbid, and why; "": none.
        drops: Packets that found a queue full.
        changes: Changes of circuits.
        dark_ps: The time in which circuits were not up because of them.
        duty: The share of the time that was not dark; None: no controller sets circuits up.
        circuit_bytes: Bytes on circuits, with headers, checksums, preambles and gaps.
        packet_bytes: Likewise, on other links between switches.
    """

    @property
    def pauses(self) -> int:
        """Return the times that a port asked the other end to pause a class."""

    @property
    def trims(self) -> int:
        """Return the packets that found a queue full, and went on without their payload."""

    @property
    def corrupted(self) -> int:
        """Return the packets that receivers discarded, as a bit was wrong."""

    @property
    def repaths(self) -> int:
        """Return the times that a connection took another path, as nothing got through."""

    @property
    def forbidden(self) -> str:
        """Return which switches dropped packets that their programs forbid, and why."""

    @property
    def drops(self) -> int:
        """Return the packets that found a queue full."""

    @property
    def changes(self) -> int:
        """Return the changes of circuits."""

    @property
    def dark_ps(self) -> int:
        """Return the time in which circuits were not up because of changes."""

    @property
    def duty(self) -> float | None:
        """Return the share of the time that was not dark; None without a controller."""

    @property
    def circuit_bytes(self) -> int:
        """Return the bytes on circuits, with what lines add."""

    @property
    def packet_bytes(self) -> int:
        """Return the bytes on other links between switches, with what lines add."""


def tell(where: str, counted: Counted) -> Iterator[str]:
    """Yield a line for each thing that only PFC, trimming, faults, programs or circuits do.

    Args:
        where: The run, as the line begins with it.
        counted: Its counts.
    """
    if counted.pauses:
        yield f"{where}: ports asked {format_count(counted.pauses, 'time')} for a pause"
    if counted.trims:
        was = "was" if counted.trims == 1 else "were"
        yield f"{where}: {format_count(counted.trims, 'packet')} {was} trimmed"
    yield from tell_damage(where, counted.corrupted)
    if counted.repaths:
        times = format_count(counted.repaths, "time")
        yield f"{where}: connections took another path {times}, as nothing got through"
    if counted.forbidden:
        yield f"{where}: {counted.forbidden}"
    values = (getattr(counted, name) for name in circuit_counts.NAMES)
    yield from (f"{where}: {phrase}" for phrase in circuit_counts.tell(*values))


def tell_damage(where: str, corrupted: int) -> Iterator[str]:
    """Yield a line on packets that receivers discarded, if there are any."""
    if corrupted:
        was = "was" if corrupted == 1 else "were"
        count = format_count(corrupted, "packet")
        yield f"{where}: {count} with a wrong bit {was} discarded by receivers"


def as_html(where: str, counted: Counted) -> Iterator[str]:
    """Yield these lines as paragraphs of a report."""
    yield from (f'<p class="soft">{escape(line)}.</p>' for line in tell(where, counted))
