"""The sizes that a job of ATP may have."""

from __future__ import annotations

from collections.abc import Sequence

from ringleaf.core.units import format_count
from ringleaf.errors import ConfigError

BITS = 64
"""Bits of a bitmap."""

MAX_WORKERS = BITS * BITS
MAX_SERVERS = 255


def window_of(slots: int) -> int:
    """Return a worker's window in packets: a power of two, as a block's place in it is low bits."""
    return 1 << (slots - 1).bit_length()


def describe_window(packets: int) -> str:
    """Return how a summary calls a window: `with at most 2 packets in flight from each rank`."""
    return f"with at most {format_count(packets, 'packet')} in flight from each rank"


def check_counts(where: str, workers: int, servers: int) -> None:
    """Check the numbers of a job's workers and parameter servers.

    Raises:
        ConfigError: If packets have no room for them.
    """
    if not 0 < workers <= MAX_WORKERS:
        raise ConfigError(f"{where}: there must be 1 to {MAX_WORKERS} workers, got {workers}")
    if not 0 < servers <= MAX_SERVERS:
        raise ConfigError(
            f"{where}: there must be 1 to {MAX_SERVERS} parameter servers, got {servers}; "
            "SERVERS=1 makes the last host one"
        )


def check_racks(where: str, racks: Sequence[int], bits: int = BITS) -> None:
    """Check that workers, so many in each rack, can be told apart by bits.

    Raises:
        ConfigError: If there are more than `bits`, and more in a rack, or more racks.
    """
    if sum(racks) <= bits:
        return
    if max(racks) > bits:
        raise ConfigError(
            f"{where}: a job of more than {format_count(bits, 'worker')} may have {bits} in a "
            f"rack, got {max(racks)}; take a topology with smaller racks"
        )
    if len(racks) > bits:
        raise ConfigError(
            f"{where}: a job of more than {format_count(bits, 'worker')} may be in "
            f"{format_count(bits, 'rack')}, got {len(racks)}; take a topology with larger racks"
        )
