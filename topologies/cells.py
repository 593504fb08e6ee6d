"""The sizes of a DCell's cells."""

from __future__ import annotations


def cell_sizes(ports: int, levels: int) -> list[int]:
    """Return the number of servers of a DCell of each level: n, then t (t + 1)."""
    sizes = [ports]
    for _ in range(levels):
        sizes.append(sizes[-1] * (sizes[-1] + 1))
    return sizes
