"""Line rates, queues, delays and losses of BMv2's ports: disciplines of their interfaces.

BMv2 sends as fast as it can, so that the backlog of a slow line is in the kernel: tail drop after
`queue_bytes`, and where the kernel has `prio`, a queue per class selector (the upper three bits
of DSCP, RFC 2474 section 4.2.2), the greater first. BMv2's own priority queues can't do that, as
its rates are per queue and not per port.
"""

from __future__ import annotations

from networks.live.engine import Line
from ringleaf.units import PS_PER_US

LEAST_DELAY_PS = 100 * PS_PER_US
"""A shorter delay is lost in what BMv2 and the kernel take anyway, so it is left out."""

LEAST_BURST_BYTES = 1_600  # less than a frame: htb lets one go while it has any credit, and owes
BURST_S = 0.001  # of more, short messages would go faster than their line
CLASSES = 8
NETEM_LIMIT = 1_000_000  # packets, on their way


def netem_options(line: Line) -> str:
    """What netem is to do on a line; empty if nothing."""
    options = []
    if line.delay_ps >= LEAST_DELAY_PS:
        options.append(f"delay {line.delay_ps // PS_PER_US}us")
    if line.loss:
        options.append(f"loss {100 * line.loss:.6f}%")
    return " ".join(options)


def disciplines(line: Line, *, prio: bool) -> list[str]:
    """Lines for `tc -batch` that shape what an interface sends.

    Args:
        line: The interface, and how it is to be.
        prio: Whether the kernel has `prio`.
    """
    device, netem = f"dev {line.interface}", netem_options(line)
    burst = max(LEAST_BURST_BYTES, round(line.rate_bps / 8 * BURST_S))
    rate = f"rate {line.rate_bps}bit ceil {line.rate_bps}bit burst {burst} cburst {burst}"
    commands = [
        f"qdisc add {device} root handle 2: htb default 1",
        f"class add {device} parent 2: classid 2:1 htb {rate}",
    ]
    parent = "2:1"
    if netem:  # what it lets go waits in the queue below it, which has the limit
        commands.append(
            f"qdisc add {device} parent {parent} handle 10: netem {netem} limit {NETEM_LIMIT}"
        )
        parent = "10:1"
    if not prio:
        return [*commands, f"qdisc add {device} parent {parent} handle 3: {_fifo(line)}"]
    return [*commands, *_priorities(device, parent, line)]


def _priorities(device: str, parent: str, line: Line) -> list[str]:
    """A band per class selector: 0, the first to be sent, for the greatest."""
    bands = " ".join([str(CLASSES - 1)] * 16)
    commands = [
        f"qdisc add {device} parent {parent} handle 3: prio bands {CLASSES} priomap {bands}",
    ]
    for band in range(1, CLASSES + 1):
        commands.append(f"qdisc add {device} parent 3:{band} handle {16 + band}: {_fifo(line)}")
        selector = (CLASSES - band) << 5  # in the byte that holds DSCP and ECN
        commands.append(
            f"filter add {device} parent 3: protocol ip prio 1 "
            f"u32 match ip dsfield {selector:#04x} 0xe0 flowid 3:{band}"
        )
    return commands


def _fifo(line: Line) -> str:
    return f"bfifo limit {line.queue_bytes}"
