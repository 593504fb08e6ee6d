"""The memory that caches of NICs take."""

from __future__ import annotations

CACHE_HEADER = 8  # integers of 64 bits


def cache_bytes(rows: int, capacity: int) -> int:
    """Return the memory of a cache for so many of a table's rows (`nic/cache.py`)."""
    return 8 * (CACHE_HEADER + 2 * rows + 4 * capacity)
