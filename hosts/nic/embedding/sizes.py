"""The sizes of an embedding exchange, and of the memory that it takes."""

from __future__ import annotations

from dataclasses import dataclass

from ringleaf.errors import ConfigError
from ringleaf.hosts.nic.layout import cache_bytes

MOST_ROWS = 1 << 29
MOST_RANKS = 256
PEER_LISTS = 4  # numbers by rank
LOOKUP_LISTS = 5  # numbers by look-up
ROW_LISTS = 2  # numbers by row of a rank's own
NUMBERS = 40

FORWARD, BACKWARD = range(2)
INVALIDATE, UPDATE = range(2)
"""Cached copies of rows that have changed are given up, or get the new vector."""


@dataclass(frozen=True, slots=True)
class ExchangeSizes:
    """The sizes of an exchange, and the NICs' part in it.

    Args:
        ranks: Number of ranks; row r of the table is on rank r modulo `ranks`.
        rows: Rows of the table.
        dim: Elements of a vector, float32.
        bags: Bags of a rank's batch.
        per_bag: Look-ups of each bag.
        cache: Rows of other ranks that a NIC caches.
        policy: LRU or LFU (`nic/cache.py`).
        pools: Whether the owner's NIC adds up the vectors of a bag, and sends their sum.
        coherence: INVALIDATE or UPDATE.
        local_cache: Rows of its own that a NIC caches.
        row_ps: Time to read or write a row of the table that is not in the NIC's memory.

    Raises:
        ConfigError: If a number is out of range.
    """

    ranks: int
    rows: int
    dim: int
    bags: int
    per_bag: int
    cache: int = 0
    policy: int = 0
    pools: bool = False
    coherence: int = UPDATE
    local_cache: int = 0
    row_ps: int = 0

    def __post_init__(self) -> None:
        if not 2 <= self.ranks <= MOST_RANKS:
            raise ConfigError(f"embedding: ranks must be 2 to {MOST_RANKS}, got {self.ranks}")
        if not self.ranks <= self.rows <= MOST_ROWS:
            raise ConfigError(
                f"embedding: rows must be {self.ranks} to {MOST_ROWS}, a row for each rank at "
                f"least, got {self.rows}"
            )
        for name in ("dim", "bags", "per_bag"):
            if getattr(self, name) < 1:
                raise ConfigError(f"embedding: {name} must be >= 1, got {getattr(self, name)}")

    @property
    def lookups(self) -> int:
        """Look-ups of a rank's batch."""
        return self.bags * self.per_bag

    @property
    def own_rows(self) -> int:
        """The most rows of any rank."""
        return -(-self.rows // self.ranks)

    @property
    def vector_bytes(self) -> int:
        """Return the bytes of one row of the table: `dim` float32."""
        return 4 * self.dim

    @property
    def first_stride(self) -> int:
        """Bytes of the longest first message: look-ups, or gradients and notices."""
        return _round_up(self.lookups * (8 + self.vector_bytes), 64)

    @property
    def second_stride(self) -> int:
        """Bytes of the longest second message: vectors, or changes of cached rows."""
        changes = min(self.cache, self.own_rows) * (4 + self.vector_bytes)
        return _round_up(max(self.lookups * self.vector_bytes, changes), 64)

    @property
    def parts(self) -> list[int]:
        """The bytes of the parts of a rank's memory, in their order."""
        numbers = NUMBERS + PEER_LISTS * self.ranks + LOOKUP_LISTS * self.lookups
        numbers += ROW_LISTS * self.own_rows
        return [
            8 * numbers,
            self.own_rows * self.vector_bytes,
            8 * self.lookups,
            self.cache * (8 + self.vector_bytes),
            cache_bytes(self.rows, self.cache),
            cache_bytes(self.own_rows, self.local_cache),
            self.own_rows * self.ranks,
            2 * self.ranks * (self.first_stride + self.second_stride),
        ]

    @property
    def memory_bytes(self) -> int:
        """The memory that each rank takes."""
        return sum(_round_up(size, 4096) for size in self.parts)


def _round_up(size: int, to: int) -> int:
    return -(-size // to) * to
