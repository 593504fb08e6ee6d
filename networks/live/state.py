"""The state of a live process per socket: rows of words in the arena.

Source: packet(7), sendmmsg(2); Linux `include/uapi/linux/if_packet.h`.
"""

from __future__ import annotations

from ringleaf.core.arena import Store, Words
from ringleaf.core.compiled import inline

# The process's block.
SOCKETS = 0  # number of sockets
SOCKETS_AT = 1  # rows
POLL_AT = 2  # `struct pollfd` of all sockets, of the wake-up descriptor, and of the caller's
SCRATCH_AT = 3  # two words
START_PS = 4  # time 0 of this process, on the monotonic clock
ASKED = 5  # 1: return to Python as soon as possible
TURN_PS = 6  # start of the last turn: events due by then have been handled
LIVE_WORDS = 16

# A socket's row.
DESCRIPTOR = 0
PORT = 1  # number of the port at which its frames arrive
RING_AT = 2  # offset in the rings
FRAME = 3  # number of the next one
PENDING = 4  # packets to be sent together
MESSAGES_AT = 5  # BATCH `struct mmsghdr`
VECTORS_AT = 6  # BATCH * PARTS `struct iovec`
PACKETS_AT = 7  # BATCH numbers
RECEIVED = 8
CUT = 9  # frames longer than a frame of the ring, or than a packet's head: dropped
SENT = 10
REFUSED = 11  # packets that the kernel did not take
ZEROS_AT = 12  # TAIL_WORDS of them, for packets' tails
FRAMES = 13  # of its ring
SOCKET_WORDS = 16

TAIL_WORDS = 8
BATCH = 32
PARTS = 3  # head, payload, tail
MESSAGE_WORDS = 8
VECTOR_WORDS = 2
VECTORS_OF_MESSAGE = 2  # words of a `struct mmsghdr`
PARTS_OF_MESSAGE = 3
READABLE = 1 << 32  # POLLIN in the upper half of a `struct pollfd`
HAPPENED = 48  # the bit from which on the kernel writes what has happened
NOBODY = 0xFFFFFFFF  # a descriptor of -1, which the kernel leaves alone

# A receive ring (TPACKET_V2): a frame's header, and the fields of it that we read.
FRAME_BYTES = 1 << 14  # holds any packet
MIN_FRAMES = 256
MAX_FRAMES = 4096  # at 300,000 packets/s those of 14 ms, while another process has the core
RINGS_BYTES = 1 << 27  # of all sockets of a process, which share it, if they are not too many
STATUS_AT = 0  # 32 bits each, in the machine's byte order
LENGTH_AT = 4
KEPT_AT = 8
START_AT = 12  # 16 bits: where the packet begins
STATUS_USER = 1


def frames_each(sockets: int) -> int:
    """Return the number of frames in each socket's ring: a power of two."""
    share = RINGS_BYTES // FRAME_BYTES // max(sockets, 1)
    return min(max(1 << share.bit_length() >> 1, MIN_FRAMES), MAX_FRAMES)


def make_live(store: Store, sockets: int) -> int:
    """Lay out the state of a process with `sockets` sockets; return its block's offset."""
    at = store.allocate("words", LIVE_WORDS)
    rows = store.allocate("words", sockets * SOCKET_WORDS)
    poll = store.allocate("words", sockets + 2)
    scratch = store.allocate("words", 2)
    zeros = store.allocate("words", TAIL_WORDS)
    places = [
        (
            store.allocate("words", BATCH * MESSAGE_WORDS),
            store.allocate("words", BATCH * PARTS * VECTOR_WORDS),
            store.allocate("words", BATCH),
        )
        for _ in range(sockets)
    ]
    frames = frames_each(sockets)
    words = store.arena.words
    words[at + SOCKETS], words[at + SOCKETS_AT] = sockets, rows
    words[at + POLL_AT], words[at + SCRATCH_AT] = poll, scratch
    words[poll + sockets + 1] = NOBODY
    for number, place in enumerate(places):
        row = rows + number * SOCKET_WORDS
        words[row + MESSAGES_AT : row + PACKETS_AT + 1] = place
        words[row + FRAMES], words[row + ZEROS_AT] = frames, zeros
        words[row + RING_AT] = number * frames * FRAME_BYTES
    return at


@inline
def socket_row(words: Words, live: int, number: int) -> int:
    """Return the offset in `arena.words` of a socket's row; `live` is the process's block."""
    return words[live + SOCKETS_AT] + number * SOCKET_WORDS
