"""Room for packets that wait in the kernel for a slow line of BMv2.

One thread of BMv2 gives all ports' packets to their sockets, and waits where one is full: with the
usual 208 KiB some 90 packets of 1 KiB behind a slow line stop all other ports, and urgent packets.
Disciplines have limits of their own, so sockets need none.
"""

from __future__ import annotations

import ctypes
import errno
import os
import socket
from pathlib import Path

SO_SNDBUFFORCE = 32
UNLIMITED_BYTES = 1 << 29  # the kernel doubles it
SYS_PIDFD_GETFD = 438  # on every architecture

_C = ctypes.CDLL(None, use_errno=True)


def give_room(pid: int) -> None:
    """Let each packet socket of a process hold all packets it is given, without waiting.

    Raises:
        OSError: If the process has ended.
    """
    process = os.pidfd_open(pid)
    try:
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            try:
                if os.readlink(entry).startswith("socket:"):
                    _widen(_same(process, int(entry.name)))
            except OSError as error:
                if error.errno not in (errno.ENOENT, errno.EBADF):  # closed since it was listed
                    raise
    finally:
        os.close(process)


def _same(process: int, descriptor: int) -> socket.socket:
    """Return a descriptor of another process's socket in this process (`pidfd_getfd(2)`)."""
    got = _C.syscall(SYS_PIDFD_GETFD, process, descriptor, 0)
    if got < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), "pidfd_getfd")
    return socket.socket(fileno=got)


def _widen(endpoint: socket.socket) -> None:
    with endpoint:
        if endpoint.family == socket.AF_PACKET:
            endpoint.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, UNLIMITED_BYTES)
