"""In-network telemetry as `p4/hpcc.p4` writes it: the hops that a packet has passed, newest first.

Two bytes, the first of which counts hops, then room for MOST_HOPS hops of four 32-bit numbers.
"""

from __future__ import annotations

from ringleaf.core.arena import Bytes
from ringleaf.core.compiled import inline
from ringleaf.core.headers import get32

MOST_HOPS = 5
HOP_BYTES = 16
HOPS_AT = 2
TELEMETRY_BYTES = HOPS_AT + MOST_HOPS * HOP_BYTES
# Offsets in a hop.
RATE_KBPS = 0
SENT_BYTES = 4  # modulo 2**32
QUEUE_PACKETS = 8
TIME_US = 12  # modulo 2**32


@inline
def hop_at(told_at: int, hops: int, hop: int) -> int:
    """Return the offset of a hop, the first on the way being 0, in telemetry at `told_at`."""
    return told_at + HOPS_AT + (hops - 1 - hop) * HOP_BYTES


@inline
def passed(later: int, earlier: int) -> int:
    """Return the difference of two numbers that are modulo 2**32."""
    return (later - earlier) & 0xFFFFFFFF


@inline
def word_of(telemetry: Bytes, at: int, number: int) -> int:
    """Return one of a hop's numbers."""
    return get32(telemetry, at + number)
