"""Counts of circuits, as values of results' rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ringleaf.core.units import format_count, format_time
from ringleaf.networks.outcome import RunResult

NAMES = ("changes", "dark_ps", "duty", "circuit_bytes", "packet_bytes")
"""The names of the values."""


def counts_of(outcome: RunResult) -> dict[str, Any]:
    """Return the values of a run by name; none if no controller sets circuits up."""
    use = outcome.circuits
    if use is None:
        return {}
    return {
        "changes": len(use.changes),
        "dark_ps": use.dark_ps,
        "duty": round(use.duty, 6),
        "circuit_bytes": use.circuit_bytes,
        "packet_bytes": use.packet_bytes,
    }


def tell(
    changes: int, dark_ps: int, duty: float | None, circuit_bytes: int, packet_bytes: int
) -> Iterator[str]:
    """Yield a phrase on circuits, if a controller has set some up."""
    if duty is None:
        return
    whole = max(circuit_bytes + packet_bytes, 1)
    dark = format_time(dark_ps) if dark_ps else "0"
    yield (
        f"circuits changed {format_count(changes, 'time')}, dark for {dark} (duty {duty:.4f}); "
        f"{100 * circuit_bytes / whole:.1f} % of the bytes between switches went by circuits"
    )
