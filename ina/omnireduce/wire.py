"""OmniReduce on the wire; the header's numbers are big-endian, values are as in memory.

Ethernet | IPv4 | UDP | header, 12 bytes and 4 per column | blocks of 32 values of 4 bytes:

    bits    field
    0:4     message   1 update (worker to aggregator), 2 result (aggregator to worker)
    4:8     type      0 float32, 1 int32
    8:16    job       1 to 255
    16:32   slot
    32:64   round     of the slot, mod 2^32
    64:80   worker    rank of the worker that sends the update, or gets the result
    80:88   present   bit c: a block of column c follows
    88:96   columns   the number of columns of the slot
    96:     next      32 bits per column: a block's position in it, or NONE

A slot of c columns handles those blocks of a tensor that lie in its columns. In each round
all its workers send an update, and get a result. A column has one position at a time, at first
0; the result names the next one. An update holds the worker's blocks there that
aren't zero, and the position of the worker's next block that is not zero. The result holds
the sums of the blocks that any worker had, and the least of the workers' next positions. So
blocks that are zero everywhere are skipped (the first of each column, too, is sent only if it is
not zero: the bits say so).

Aggregators and workers have UDP ports of their own, as both may be on one host.
"""

from __future__ import annotations

from ringleaf.core.compiled import inline
from ringleaf.core.headers import UDP_PAYLOAD_AT

# Offsets from the start of the frame.
MESSAGE_AT = UDP_PAYLOAD_AT
JOB_AT = UDP_PAYLOAD_AT + 1
SLOT_AT = UDP_PAYLOAD_AT + 2
ROUND_AT = UDP_PAYLOAD_AT + 4
WORKER_AT = UDP_PAYLOAD_AT + 8
PRESENT_AT = UDP_PAYLOAD_AT + 10
COLUMNS_AT = UDP_PAYLOAD_AT + 11
NEXT_AT = UDP_PAYLOAD_AT + 12

UPDATE = 1
RESULT = 2
NONE = 0xFFFFFFFF
ROUND_MASK = 0xFFFFFFFF

BLOCK = 32
"""Values in a block."""

BLOCK_BYTES = 4 * BLOCK
MAX_COLUMNS = 8
# Slots and workers are numbers of 16 bits on the wire.
MAX_SLOTS = 1 << 16
MAX_WORKERS = 1 << 16

FIRST_UDP_PORT = 0xB700
UDP_PORTS = 16


@inline
def values_at(columns: int) -> int:
    """Return the offset of the blocks in a frame."""
    return NEXT_AT + 4 * columns


@inline
def count_bits(mask: int) -> int:
    """Return how many of a mask's MAX_COLUMNS bits are set."""
    count = 0
    for bit in range(MAX_COLUMNS):
        count += mask >> bit & 1
    return count


def aggregator_port(job: int) -> int:
    """Return the UDP port that a job's updates go to, and results come from."""
    return FIRST_UDP_PORT + job % UDP_PORTS


def worker_port(job: int) -> int:
    """Return the UDP port that a job's results go to, and updates come from."""
    return FIRST_UDP_PORT + UDP_PORTS + job % UDP_PORTS
