"""NetReduce on the wire: RoCEv2, to UDP ports of its own, as `p4/netreduce.p4` has it.

A packet of data is a SEND of `lanes` int32, big-endian, so the MTU is 4 * lanes bytes. Between
hosts all is as in `ringleaf.hosts.rc.wire`. Between switches the second byte of the BTH says
whether a packet has a sum of all.
"""

from __future__ import annotations

from ringleaf.hosts.rc.wire import PACKET_OVERHEAD_BYTES

LANES = (64, 256)
"""Numbers of lanes that have a program."""

FIRST_UDP_PORT = 0xBED0
UDP_PORTS = 16
OVERHEAD_BYTES = PACKET_OVERHEAD_BYTES
TO_NEXT, FROM_PREVIOUS = 0, 1
"""A worker's queue pairs."""

MOST_WINDOW = 1 << 14


def udp_port(job: int) -> int:
    """Return the UDP port that a job's packets go to; a host's jobs must not share one."""
    return FIRST_UDP_PORT + job % UDP_PORTS
