"""Reliable connected transport, framed as RoCEv2: SEND with posted receives, go-back-N.

UDP port 4791 and the base transport header (InfiniBand Architecture vol. 1, 9.2 and annex
A17), so that scapy and Wireshark can dissect it. A queue pair (QP) delivers messages in order,
each into the receive that was posted next. Acknowledgements carry credits, the receives that
are posted (9.7.7.2); a sender without credit waits for some, unless its QP is eager. A packet for
which no receive is posted all the same is refused (RNR NAK). After a timeout a sender asks by a
probe, an opcode of our own.
The ICRC is sent as zero, and checked where it is not (`icrc.py`).

Packet sequence numbers (PSN) are 64-bit counters here and 24 bits on the wire.
"""

from ringleaf.hosts.rc.agent import fire_timer, receive, transmit
from ringleaf.hosts.rc.landing import COPY
from ringleaf.hosts.rc.receiver import post_receive
from ringleaf.hosts.rc.sender import post_send
from ringleaf.hosts.rc.state import (
    ACKED_PSN,
    LEFT,
    MIN_TIMEOUT_PS,
    MTU,
    OVERRUN,
    POSTED_PSN,
    PROBES_SENT,
    QP_COUNT,
    QP_WORDS,
    QPS_AT,
    QUIET_PS,
    RECEIVED,
    RING,
    SENT,
    WINDOW,
    QpEnd,
    add_qps,
    connect_qps,
    control_qp,
    make_rc,
    renew_qp,
    set_gain,
    set_priority,
    set_rate,
)
from ringleaf.hosts.rc.wire import (
    DEFAULT_PARTITION,
    FULL_MEMBER,
    PACKET_OVERHEAD_BYTES,
    UDP_PORT,
)

__all__ = [
    "ACKED_PSN",
    "COPY",
    "DEFAULT_PARTITION",
    "FULL_MEMBER",
    "LEFT",
    "MIN_TIMEOUT_PS",
    "MTU",
    "OVERRUN",
    "PACKET_OVERHEAD_BYTES",
    "POSTED_PSN",
    "PROBES_SENT",
    "QPS_AT",
    "QP_COUNT",
    "QP_WORDS",
    "QUIET_PS",
    "RECEIVED",
    "RING",
    "SENT",
    "UDP_PORT",
    "WINDOW",
    "QpEnd",
    "add_qps",
    "connect_qps",
    "control_qp",
    "fire_timer",
    "make_rc",
    "post_receive",
    "post_send",
    "receive",
    "renew_qp",
    "set_gain",
    "set_priority",
    "set_rate",
    "transmit",
]
