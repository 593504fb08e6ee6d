"""A check that the machine has all that a live network needs; it names all missing parts."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import cache

from ringleaf.core import extras
from ringleaf.errors import ConfigError

PROGRAMS = {
    "mnexec": "apt install mininet",
    "ifconfig": "apt install net-tools",
    "ip": "apt install iproute2",
    "ethtool": "apt install ethtool",
}
MODULES = "apt install linux-modules-extra-$(uname -r)"
RIGHTS = "root's right to make networks (CAP_SYS_ADMIN and CAP_NET_ADMIN)"
CONTAINER = "start the container with --privileged"
BMV2_HELP = (
    "https://github.com/p4lang/behavioral-model has packages, and how to build it; "
    "or take SWITCH=embedded"
)

SYSTEM_PATH = "/usr/local/sbin:/usr/sbin:/sbin"
"""Where programs for root lie, which are not on every user's path."""


def check_machine(
    *, bmv2: bool = False, netem_for: str | None = None, interactive: bool = False
) -> None:
    """Make sure that a network can be brought up.

    Args:
        bmv2: Whether its switches are BMv2.
        netem_for: The properties of links that BMv2 needs netem for, if there are any.
        interactive: Whether people will use it, and `ping`.

    Raises:
        ConfigError: If a part is missing; the message names each one, and how to get it.
    """
    programs = {**PROGRAMS, **({"ping": "apt install iputils-ping"} if interactive else {})}
    missing = list(_missing(programs, bmv2, netem_for))
    if missing:
        lines = "".join(f"\n  {what}: {remedy}" for what, remedy in missing)
        raise ConfigError(f"mininet: live networks need more than this machine has:{lines}")


def has_qdisc(*words: str) -> bool:
    """Return whether the kernel has a queueing discipline, like `netem`, with the given options.

    It is tried on the loopback interface of a new namespace, which is gone afterwards.
    """
    return _try("tc", "qdisc", "add", "dev", "lo", "root", *words)


@cache
def shaping_disciplines() -> frozenset[str]:
    """Return those of the disciplines `htb` and `netem` that the kernel has."""
    if shutil.which("tc") is None:
        return frozenset()
    tried = {"htb": ("handle", "1:", "htb"), "netem": ("netem", "delay", "1ms")}
    return frozenset(name for name, words in tried.items() if has_qdisc(*words))


@cache
def has_priorities() -> bool:
    """Return whether the kernel has `u32`; if not, explain the effect on stderr, once."""
    there = _try(
        *("sh", "-c"),
        "tc qdisc add dev lo root handle 2: htb && "
        "tc class add dev lo parent 2: classid 2:1 htb rate 8bit quantum 10000 && "
        "tc filter add dev lo parent 2: protocol ip u32 match ip dsfield 0 0xe0 flowid 2:1",
    )
    if not there:
        sys.stderr.write(
            "ringleaf: BMv2's ports serve packets in the order they come, whatever their priority:"
            " this kernel lacks the classifier u32; modprobe cls_u32\n"
        )
    return there


def _missing(
    programs: Mapping[str, str], bmv2: bool, netem_for: str | None
) -> Iterator[tuple[str, str]]:
    is_root = os.geteuid() == 0
    if not is_root:
        yield "root", "run it with sudo"
    absent = {name: remedy for name, remedy in programs.items() if not _is_there(name, is_root)}
    yield from absent.items()
    if extras.is_missing("mininet"):
        yield "mininet, the Python package", extras.remedy("mininet")
    if bmv2:
        if shutil.which("tc") is None:
            yield "tc", PROGRAMS["ip"]
        if shutil.which("simple_switch_grpc") is None:
            yield "simple_switch_grpc", BMV2_HELP
    if not is_root or absent:
        return
    if not _try("ip", "link", "set", "dev", "lo", "up"):
        yield RIGHTS, CONTAINER  # so nobody knows what the kernel has
        return
    yield from _missing_of_kernel(bmv2 and shutil.which("tc") is not None, netem_for)


def _is_there(program: str, is_root: bool) -> bool:
    """Return whether a program is on the path, or on that which sudo will give to this user."""
    if shutil.which(program) is not None:
        return True
    return not is_root and shutil.which(program, path=SYSTEM_PATH) is not None


def _missing_of_kernel(bmv2: bool, netem_for: str | None) -> Iterator[tuple[str, str]]:
    if not _try("ip", "link", "add", "name", "left", "type", "veth", "peer", "name", "right"):
        yield "veth (a kernel module)", MODULES
    if bmv2 and not has_qdisc("handle", "1:", "htb"):
        yield "htb (a queueing discipline, for rates with BMv2)", MODULES
    if bmv2 and netem_for and not has_qdisc("netem", "delay", "1ms"):
        what = f"netem (a queueing discipline, for {netem_for} with BMv2)"
        yield what, f"{MODULES}, or take SWITCH=embedded, whose links do without"


def _try(*command: str) -> bool:
    """Return whether a command succeeds in a network namespace of its own."""
    done = subprocess.run(["mnexec", "-n", *command], capture_output=True, check=False)
    return done.returncode == 0
