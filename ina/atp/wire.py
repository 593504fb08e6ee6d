"""ATP on the wire, as `p4/include/atp_headers.p4` has it; numbers are big-endian.

Ethernet | IPv4 | UDP | header, 22 bytes | 32-bit lanes, or none. Gradients go to the parameter
server, to port 0xA700 + job mod 16; parameters, to port 0xA710 + job mod 16, to the job's group or
to one worker.

    bits     field
    0:4      message     1 gradient (workers to server), 2 parameter (server to workers),
                         3 request (server to one worker): send this block again
    4:5      resend      a gradient that this worker has sent before
    5:6      collision   set by a switch: another block held the aggregator; of an A2TP parameter:
                         a worker sent its gradient late
    6:7      raw         lanes are the worker's float32 or int32 as they are; switches only
                         forward. A parameter without lanes asks for such a gradient
    7:8      congested   of a parameter: a gradient of this block was marked (ECN);
                         of a gradient: a complete sum, which a switch had sent before
    8:16     job         1 to 255
    16:24    server      of the job's parameter servers, from 0
    24:28    sender_high the sender's upper bits
    28:29    integers    1: the tensor is of int32, 0: of float32
    29:32    size        1: 64 lanes, 3: 256 lanes, 7: none
    32:64    sequence    of the job's blocks, through all tensors, modulo 2^32
    64:80    aggregator  that the block uses in all switches
    80:96    proposal    of a parameter: aggregator of the block one window later; 0xFFFF: same.
                         Of an A2TP gradient: 1 if its worker has had late results, else 0
    96:160   workers     those whose values are in the sum, as bits of a rack or of the job. A
                         gradient of no worker, a probe, asks the server, and brings along
                         aggregators' values
    160:168  sender      number of the worker that sent the packet, lower bits
    168:169  wanted      A2TP: another block wanted the aggregator of this one; set by a switch in a
                         gradient, and by the server in a parameter
    169:176  rack        0: bits are of the job; r: of rack r (see `roster`)

A gradient's lanes are fixed-point numbers (see `scaling`); a parameter's are the result as it goes
into the tensor, so that all workers have the same bits.

In a job of up to 64 workers, bit w of the job is worker w, and `rack` is 0 in all packets.

The published format has no UDP (a protocol of its own under IPv4), a sequence number of 16 bits,
and a bitmap and a fan-in degree for each of two levels; here one bitmap serves either level.
"""

from __future__ import annotations

from ringleaf.core.arena import Bytes
from ringleaf.core.compiled import inline, signed
from ringleaf.core.headers import UDP_PAYLOAD_AT, get32, put32

# Offsets from the start of the frame.
MESSAGE_AT = UDP_PAYLOAD_AT
JOB_AT = UDP_PAYLOAD_AT + 1
SERVER_AT = UDP_PAYLOAD_AT + 2
SIZE_AT = UDP_PAYLOAD_AT + 3
SEQUENCE_AT = UDP_PAYLOAD_AT + 4
AGGREGATOR_AT = UDP_PAYLOAD_AT + 8
PROPOSAL_AT = UDP_PAYLOAD_AT + 10
WORKERS_AT = UDP_PAYLOAD_AT + 12
SENDER_AT = UDP_PAYLOAD_AT + 20
RACK_AT = UDP_PAYLOAD_AT + 21
VALUES_AT = UDP_PAYLOAD_AT + 22
HEADER_BYTES = VALUES_AT - UDP_PAYLOAD_AT

GRADIENT = 1
PARAMETER = 2
REQUEST = 3  # switches only forward it: aggregators keep their values

# Flags beside the message.
RESEND = 8
COLLISION = 4
RAW = 2
CONGESTED = 1  # of a parameter
SENT_BEFORE = 1  # of a gradient
LATE = COLLISION  # of a parameter

WANTED = 0x80  # beside the rack
RACK_MASK = 0x7F

INTEGERS = 8  # beside the size
SIZE_MASK = 7
SIZE_NONE = 7
SENDER_SHIFT = 4  # of the upper bits of the sender, beside the size
SIZES = {64: 1, 256: 3}
"""Codes of the numbers of lanes that have a program."""

NO_PROPOSAL = 0xFFFF
LATE_GRADIENT = 1  # of an A2TP gradient, in place of a proposal
SEQUENCE_MASK = 0xFFFFFFFF

FIRST_UDP_PORT = 0xA700
UDP_PORTS = 16  # of either direction

_GROUPS = 239 << 24 | 0xA7 << 16  # 239.0.0.0/8 is for local use (RFC 2365)


def gradient_port(job: int) -> int:
    """Return the UDP port of a job's parameter servers; jobs on one host must not share it."""
    return FIRST_UDP_PORT + job % UDP_PORTS


def parameter_port(job: int) -> int:
    """Return the UDP port of a job's workers."""
    return FIRST_UDP_PORT + UDP_PORTS + job % UDP_PORTS


def group_address(job: int, server: int) -> int:
    """Return the IPv4 address that a server's parameters go to, 239.167.job.server."""
    return _GROUPS | job << 8 | server


def worker_set(bits: int) -> int:
    """Return a bitmap as the int64 that the arena holds."""
    return bits - (1 << 64) if bits >> 63 else bits


@inline
def get_sequence(head: Bytes) -> int:
    """Return the number of a packet's block among the job's, modulo 2^32."""
    return signed(get32(head, SEQUENCE_AT))


@inline
def get_sender(head: Bytes) -> int:
    """Return the number of the worker that sent a packet, from its two fields."""
    return signed(head[SIZE_AT]) >> SENDER_SHIFT << 8 | signed(head[SENDER_AT])


@inline
def get_rack(head: Bytes) -> int:
    """Return the rack whose bits `workers` has, from 1; 0 if the bits are of the job."""
    return signed(head[RACK_AT]) & RACK_MASK


@inline
def get_workers(head: Bytes) -> int:
    """Return the set of workers in a packet, as int64: the highest bit becomes the sign."""
    return signed(get32(head, WORKERS_AT)) << 32 | signed(get32(head, WORKERS_AT + 4))


@inline
def put_workers(head: Bytes, workers: int) -> None:
    """Write the bitmap of workers, 64 bits, of which int64 has the highest as its sign."""
    put32(head, WORKERS_AT, (workers >> 32) & 0xFFFFFFFF)
    put32(head, WORKERS_AT + 4, workers & 0xFFFFFFFF)
