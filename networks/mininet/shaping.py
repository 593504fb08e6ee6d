"""LinkEnd rates, queues, delays and losses, as queueing disciplines of interfaces.

They are for ports of BMv2, and for hosts whose programs are not Ringleaf's agents: nothing else
paces these.

BMv2 sends as fast as it can, so that the backlog of a slow line is in the kernel: tail drop after
`queue_bytes`, and where the kernel has the classifier `u32`, a queue per class selector (the upper
three bits of DSCP, RFC 2474 section 4.2.2), the greater first. BMv2's own priority queues can't do
that, as its rates are per queue and not per port.

The queues are leaves of `htb` that have no rate of their own to speak of and borrow the line's: it
lends to the most urgent first. (The least rate is a byte per second, so that each queue may have
one packet a minute out of turn.)
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from ringleaf.core.units import PS_PER_US
from ringleaf.networks.live.engine import LinkEnd

LEAST_DELAY_PS = 100 * PS_PER_US
"""The least delay that is set: a shorter one is lost in the time BMv2 and the kernel take."""

LEAST_BURST_BYTES = 1_600  # less than a frame: htb lets one go while it has any credit, and owes
BURST_S = 0.001  # with more, short messages would go faster than their line
CLASSES = 8
BORROWS_ALL = "rate 8bit burst 1 ceil 1tbit quantum 10000"  # a quantum, lest it is worked out
NETEM_LIMIT = 1_000_000  # packets, on their way


def netem_options(line: LinkEnd) -> str:
    """Return the options of netem on a line; empty if it is not needed."""
    options = []
    if line.delay_ps >= LEAST_DELAY_PS:
        options.append(f"delay {line.delay_ps // PS_PER_US}us")
    if line.loss:
        options.append(f"loss {100 * line.loss:.6f}%")
    return " ".join(options)


def disciplines(line: LinkEnd, *, priorities: bool) -> list[str]:
    """Return lines for `tc -batch` that shape the traffic an interface sends.

    Args:
        line: The interface, and its rate, delay, loss and queue.
        priorities: Whether it has a queue per class selector.
    """
    device = f"dev {line.interface}"
    burst = max(LEAST_BURST_BYTES, round(line.rate_bps / 8 * BURST_S))
    rate = f"rate {line.rate_bps}bit ceil {line.rate_bps}bit burst {burst} cburst {burst}"
    commands = [
        f"qdisc add {device} root handle 2: htb default {'10' if priorities else '1'}",
        f"class add {device} parent 2: classid 2:1 htb {rate}",
    ]
    if not priorities:
        return [*commands, *_queue(device, "2:1", 0, line)]
    for selector in range(CLASSES):
        leaf = f"2:{0x10 + selector:x}"
        commands += [
            f"class add {device} parent 2:1 classid {leaf} htb {BORROWS_ALL} "
            f"prio {CLASSES - 1 - selector}",
            *_queue(device, leaf, selector, line),
            f"filter add {device} parent 2: protocol ip prio 1 "
            f"u32 match ip dsfield {selector << 5:#04x} 0xe0 flowid {leaf}",
        ]
    return commands


def host_disciplines(line: LinkEnd, there: Collection[str]) -> list[str]:
    """Return lines for `tc -batch` that shape what a host's programs send.

    Args:
        line: The host's interface, and its rate, delay, loss and queue.
        there: Those of the disciplines `htb` and `netem` that the kernel has.
    """
    if "htb" not in there:
        return []
    if "netem" not in there:
        line = replace(line, delay_ps=0, loss=0.0)
    return disciplines(line, priorities=False)


def unshaped(line: LinkEnd, there: Collection[str]) -> str:
    """Return a warning of what a host's programs send without; empty: nothing is missing."""
    if "htb" not in there:
        return (
            "packets of hosts have no rate, delay or loss up to their first switch: this kernel "
            "lacks the queueing discipline htb; modprobe sch_htb"
        )
    if "netem" not in there and (options := netem_options(line)):
        return (
            f"packets of hosts reach their first switch without {options}: this kernel lacks the "
            "queueing discipline netem; modprobe sch_netem"
        )
    return ""


def _queue(device: str, parent: str, number: int, line: LinkEnd) -> list[str]:
    """Return the disciplines of a class: netem, if the line has delay or loss, and a queue."""
    commands = []
    if netem := netem_options(line):
        handle = f"{0x10 + number:x}:"
        commands.append(
            f"qdisc add {device} parent {parent} handle {handle} netem {netem} limit {NETEM_LIMIT}"
        )
        parent = f"{handle}1"
    handle = f"{0x20 + number:x}:"
    return [*commands, f"qdisc add {device} parent {parent} handle {handle} {_fifo(line)}"]


def _fifo(line: LinkEnd) -> str:
    return f"bfifo limit {line.queue_bytes}"
