"""One end of a benchmark: a process in a network namespace of its own, with one interface.

It is started as `mnexec -n python -m bench.station INTERFACE`; when it prints
{"ready": pid}, an interface can be moved to its namespace, /proc/PID/ns/net. Then commands come as
lines of JSON, {name: {argument: value}}, and each is answered by one.

The sender is compiled. It sends frames that are due together as one long UDP packet, which the
kernel cuts (`struct virtio_net_hdr`): handing over each by itself takes longer than our switch
takes for it, so the sender would be measured in place of the switch.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from ringleaf.core import native_types as types
from ringleaf.core.arena import Words
from ringleaf.core.compiled import compiled
from ringleaf.core.headers import (
    IP_SRC_AT,
    PROTOCOL_UDP,
    UDP_CHECKSUM_AT,
    UDP_PAYLOAD_AT,
    UDP_SRC_AT,
)
from ringleaf.core.orphans import die_with_parent
from ringleaf.core.units import PS_PER_NS, PS_PER_S, PS_PER_US
from ringleaf.networks.live.processes import hurry
from ringleaf.networks.live.sockets import (
    ETH_P_ALL,
    PACKET_IGNORE_OUTGOING,
    SOL_PACKET,
)
from ringleaf.networks.live.state import MESSAGE_WORDS, PARTS_OF_MESSAGE, VECTORS_OF_MESSAGE
from ringleaf.networks.live.syscalls import address_in, await_input, clock_ps, send_batch

BATCH = 32
MOST_DUE = 2 * BATCH  # packets late by more are left out: sending them would be another load
NAP_PS = 50 * PS_PER_US
MTU_BYTES = "9000"
IPV6_OFF = Path("/proc/sys/net/ipv6/conf/default/disable_ipv6")

PACKET_VNET_HDR = 15  # of linux/if_packet.h
_NEEDS_CHECKSUM, _UDP_SEGMENTS = 1, 5  # of linux/virtio_net.h, whose header this is
_CUT = struct.Struct("<BBHHHH")

_SCRATCH = 0
_VECTOR = 2
_MESSAGE = 4


@compiled(
    types.int64(types.int64[::1], types.int64, types.int64, types.int64, types.int64), nogil=True
)
def offer(words: Words, descriptor: int, body_bytes: int, gap_ps: int, duration_ps: int) -> int:
    """Send a packet every `gap_ps` for `duration_ps`; return how many were sent.

    Args:
        words: The message as `lay_out` makes it.
        descriptor: Descriptor of a packet socket.
        body_bytes: Length of a packet's UDP payload.
        gap_ps: Time from packet to packet.
        duration_ps: Time to send for.
    """
    start_ps = clock_ps(words, _SCRATCH)
    sent = skipped = 0
    all_bytes = words[_VECTOR + 1]
    while True:
        elapsed_ps = clock_ps(words, _SCRATCH) - start_ps
        if elapsed_ps >= duration_ps:
            return sent
        due = elapsed_ps // gap_ps + 1 - sent - skipped
        if due < 1:
            words[_SCRATCH] = 0
            words[_SCRATCH + 1] = min(gap_ps, NAP_PS) // PS_PER_NS
            await_input(0, 0, address_in(words, _SCRATCH), 0)
            continue
        if due > MOST_DUE:
            skipped += due - MOST_DUE
        count = min(due, BATCH)
        words[_VECTOR + 1] = all_bytes - (BATCH - count) * body_bytes
        if send_batch(descriptor, address_in(words, _MESSAGE), 1, 0) > 0:
            sent += count
        else:
            skipped += count


def join(frame: bytes) -> bytes:
    """Return BATCH UDP packets as one that the kernel cuts; its beginning has fewer of them.

    The kernel writes the parts' lengths, identifications and checksums. It wants UDP's checksum to
    hold the sum of the pseudo header (RFC 768).
    """
    head, body = bytearray(frame[:UDP_PAYLOAD_AT]), frame[UDP_PAYLOAD_AT:]
    total = int(np.frombuffer(head, ">u2", 4, IP_SRC_AT).sum()) + PROTOCOL_UDP
    total += len(frame) - UDP_SRC_AT
    head[UDP_CHECKSUM_AT:] = ((total & 0xFFFF) + (total >> 16)).to_bytes(2)
    checksum_at = UDP_CHECKSUM_AT - UDP_SRC_AT
    cut = (_NEEDS_CHECKSUM, _UDP_SEGMENTS, len(head), len(body), UDP_SRC_AT, checksum_at)
    return _CUT.pack(*cut) + head + body * BATCH


def lay_out(data: np.ndarray[Any, np.dtype[np.uint8]]) -> Words:
    """Return one message, as sendmmsg(2) takes it, behind two scratch words."""
    words = np.zeros(_MESSAGE + MESSAGE_WORDS, np.int64)
    words[_VECTOR : _VECTOR + 2] = data.ctypes.data, len(data)
    words[_MESSAGE + VECTORS_OF_MESSAGE] = words.ctypes.data + 8 * _VECTOR
    words[_MESSAGE + PARTS_OF_MESSAGE] = 1
    return words


class Station:
    """The commands that one end executes."""

    def __init__(self, interface: str) -> None:
        self._interface = interface
        self._socket: socket.socket | None = None

    def open(self) -> None:
        """Set up the interface, which is here by now; it has no address, so nobody answers."""
        if IPV6_OFF.exists():
            IPV6_OFF.write_text("1")
        command = ("ip", "link", "set", "dev", self._interface, "mtu", MTU_BYTES, "up")
        subprocess.run(command, check=True)
        # As on live networks: what is on the wire has been cut before, and has its checksums.
        no_offload = ("ethtool", "-K", self._interface, "tx", "off")
        subprocess.run(no_offload, check=True, stdout=subprocess.DEVNULL)

    def listen(self) -> None:
        """Keep incoming frames from now on."""
        self._socket = self._open(ETH_P_ALL)

    def hear(self, timeout_s: float) -> str:
        """Return the next frame since `listen`, in hex; empty if none has come in time."""
        assert self._socket is not None, "it must listen"
        self._socket.settimeout(timeout_s)
        try:
            return self._socket.recv(1 << 16).hex()
        except TimeoutError:
            return ""

    def ignore(self) -> None:
        """Stop keeping frames, as that takes time."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def count(self) -> int:
        """Return the number of frames that have come so far, by the kernel's count."""
        return int(Path(f"/sys/class/net/{self._interface}/statistics/rx_packets").read_text())

    def send(self, frame: str, rate_pps: float, duration_s: float) -> list[float]:
        """Send a UDP frame again and again; return the number sent, and begin and end times."""
        data = np.frombuffer(join(bytes.fromhex(frame)), np.uint8)
        body_bytes = len(bytes.fromhex(frame)) - UDP_PAYLOAD_AT
        with self._open(0) as one:
            one.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
            began_s = time.monotonic()
            gap_ps, duration_ps = int(PS_PER_S / rate_pps), int(duration_s * PS_PER_S)
            sent = offer(lay_out(data), one.fileno(), body_bytes, gap_ps, duration_ps)
            return [sent, began_s, time.monotonic()]

    def _open(self, protocol: int) -> socket.socket:
        one = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        one.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
        one.bind((self._interface, protocol))
        return one


def main() -> None:
    die_with_parent()
    hurry()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # a switch, woken by it, runs elsewhere
    station = Station(sys.argv[1])
    sys.stdout.write(json.dumps({"ready": os.getpid()}) + "\n")
    sys.stdout.flush()
    for line in sys.stdin:
        ((name, arguments),) = json.loads(line).items()
        sys.stdout.write(json.dumps(getattr(station, name)(**arguments)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
