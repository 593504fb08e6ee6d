"""Room in the sockets of a process: in those that packets leave by, and in no others."""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest

from ringleaf.networks.mininet.send_buffers import UNLIMITED_BYTES, give_room

OPEN = """
import socket
packets = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
others = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
print("open", flush=True)
input()
print(*(each.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) for each in (packets, others)))
"""


@pytest.mark.live
def test_packet_sockets_of_another_process_get_room() -> None:
    pipe = subprocess.PIPE
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own,
        subprocess.Popen(
            [sys.executable, "-c", OPEN], stdin=pipe, stdout=pipe, text=True
        ) as process,
    ):
        assert process.stdout
        process.stdout.readline()
        give_room(process.pid)
        packets, others = map(int, process.communicate("go on\n")[0].split())

        assert packets == 2 * UNLIMITED_BYTES
        assert others == own.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)


def test_a_process_that_has_ended_is_an_error() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()

    with pytest.raises(OSError, match="No such process"):
        give_room(process.pid)
