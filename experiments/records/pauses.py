"""Packets that switches held back or trimmed, for tables and reports of every workload."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Protocol

from ringleaf.core.units import format_count


class Counted(Protocol):
    """A row of results, or the results of a run, that counts what queues have done.

    Attributes:
        pauses: Times that a port asked the other end to pause a class.
        trims: Packets that found a queue full, and went on without their payload.
        drops: Packets that found a queue full.
    """

    @property
    def pauses(self) -> int:
        """Return the times that a port asked the other end to pause a class."""

    @property
    def trims(self) -> int:
        """Return the packets that found a queue full, and went on without their payload."""

    @property
    def drops(self) -> int:
        """Return the packets that found a queue full."""


def tell(where: str, counted: Counted) -> Iterator[str]:
    """Yield a line for each thing that switches did only because of PFC or packet trimming.

    Args:
        where: The run, as the line begins with it.
        counted: Its counts.
    """
    if counted.pauses:
        yield f"{where}: ports asked {format_count(counted.pauses, 'time')} for a pause"
    if counted.trims:
        was = "was" if counted.trims == 1 else "were"
        yield f"{where}: {format_count(counted.trims, 'packet')} {was} trimmed"


def as_html(where: str, counted: Counted) -> Iterator[str]:
    """Yield these lines as paragraphs of a report."""
    yield from (f'<p class="soft">{escape(line)}.</p>' for line in tell(where, counted))
