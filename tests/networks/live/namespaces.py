"""Network namespaces for tests, with names of their own, gone afterwards."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

MTU_BYTES = "9000"


def name_of(number: int) -> str:
    """A namespace's name, or interface's; those of other test runs differ."""
    return f"rt{os.getpid()}n{number}"


def ip(*words: str) -> None:
    subprocess.run(("ip", *words), check=True, capture_output=True)


@contextmanager
def namespaces(count: int) -> Iterator[list[Path]]:
    """Yield so many namespaces' files; nothing is in them but a loopback interface."""
    with ExitStack() as stack:
        paths = []
        for number in range(count):
            ip("netns", "add", name_of(number))
            stack.callback(ip, "netns", "del", name_of(number))
            quiet = "net.ipv6.conf.default.disable_ipv6=1"
            ip("netns", "exec", name_of(number), "sysctl", "-q", "-w", quiet)
            paths.append(Path("/run/netns", name_of(number)))
        yield paths


def join(first: tuple[int, str], second: tuple[int, str]) -> None:
    """Join two namespaces by a veth pair; each end is a namespace's number and a new name."""
    (a, one), (b, other) = first, second
    left, right = f"{name_of(a)}a", f"{name_of(b)}b"
    ip("link", "add", left, "type", "veth", "peer", "name", right)
    for number, made, wanted in ((a, left, one), (b, right, other)):
        ip("link", "set", made, "netns", name_of(number))
        inside = ("-n", name_of(number), "link", "set")
        ip(*inside, made, "name", wanted, "mtu", MTU_BYTES)
        ip(*inside, wanted, "up")


def join_outside(number: int, name: str) -> str:
    """Join a namespace by a veth pair to the one we are in; return the name of our end."""
    ours, theirs = f"{name_of(number)}s", f"{name_of(number)}t"
    ip("link", "add", ours, "type", "veth", "peer", "name", theirs)
    ip("link", "set", theirs, "netns", name_of(number))
    inside = ("-n", name_of(number), "link", "set")
    ip(*inside, theirs, "name", name, "mtu", MTU_BYTES)
    ip(*inside, name, "up")
    ip("link", "set", ours, "mtu", MTU_BYTES, "up")
    return ours
