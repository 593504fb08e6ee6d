"""A network of its own for BMv2, where nobody else reaches it.

BMv2's Thrift port listens at all of a machine's addresses, and lets in whoever comes; no option
changes that. Packets and P4Runtime go through files and Unix sockets, so such a BMv2 needs no
network, and is given an empty one. Where the kernel has none for us, it has the machine's.

This file is run by itself, `python -I -S enclosed.py new COMMAND ...` or `... join PROCESS
COMMAND ...`, and becomes the command, which ends with its parent. Code of ours between fork and
exec would disturb gRPC's threads.
"""

import ctypes
import fcntl
import os
import signal
import socket
import struct
import sys

_NEW_USER, _NEW_NETWORK = 0x10000000, 0x40000000  # CLONE_NEWUSER, CLONE_NEWNET of <sched.h>
_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG of <linux/prctl.h>
_SET_FLAGS, _IS_UP = 0x8914, 0x1  # SIOCSIFFLAGS of <linux/sockios.h>, IFF_UP of <net/if.h>
_KINDS = {"user": _NEW_USER, "net": _NEW_NETWORK}

_C = ctypes.CDLL(None)


def alone(*command: str) -> list[str]:
    """Return the command line by which a command has a network of its own, and ends with us."""
    return [sys.executable, "-I", "-S", __file__, "new", *command]


def beside(process: int, *command: str) -> list[str]:
    """Return the command line by which a command is in the network of a process."""
    return [sys.executable, "-I", "-S", __file__, "join", str(process), *command]


def leave() -> bool:
    """Move this process to an empty network; return whether the kernel lets it."""
    user, group = os.getuid(), os.getgid()
    if _C.unshare(_NEW_NETWORK if user == 0 else _NEW_USER | _NEW_NETWORK) != 0:
        return False
    if user:
        _write("setgroups", "deny")
        _write("uid_map", f"{user} {user} 1")
        _write("gid_map", f"{group} {group} 1")
    with socket.socket() as one:  # its command line comes by 127.0.0.1
        fcntl.ioctl(one, _SET_FLAGS, struct.pack("16sh14x", b"lo", _IS_UP))
    return True


def _write(name: str, text: str) -> None:
    with open(f"/proc/self/{name}", "w") as file:
        file.write(text)


def follow(process: int) -> None:
    """Move this process to the network of another one, if that has one of its own."""
    for kind, flag in _KINDS.items():
        place = f"ns/{kind}"
        if os.readlink(f"/proc/{process}/{place}") == os.readlink(f"/proc/self/{place}"):
            continue
        space = os.open(f"/proc/{process}/{place}", os.O_RDONLY | os.O_CLOEXEC)
        if _C.setns(space, flag) != 0:
            raise SystemExit(f"can't enter the {kind} namespace of process {process}")


def main() -> None:
    """Move to a network, and become the command."""
    how, *command = sys.argv[1:]
    if how == "new":
        leave()
    else:
        follow(int(command.pop(0)))
    _C.prctl(_DIE_WITH_PARENT, signal.SIGKILL)
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
