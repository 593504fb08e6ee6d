"""Links between Mininet's nodes: veth pairs that carry frames unchanged, and no others.

The kernel must not touch the frames: offloads would leave checksums to hardware that isn't there
and merge packets, and IPv6 would send packets of its own.
"""

from __future__ import annotations

from typing import Any

from mininet.link import Intf, Link

from ringleaf.errors import BackendError
from ringleaf.networks.live.engine import LinkEnd

MTU_BYTES = 9000
OFFLOADS = ("rx", "tx", "sg", "tso", "gso", "gro", "rxvlan", "txvlan")
PORT_RATE_BPS = 10**9  # by default


class VethInterface(Intf):
    """One end of a link.

    Args:
        mtu_bytes: MTU of the interface, as IP counts.
        rate_bps: Rate at which the node sends at most; as the following, it is for the node to see
            to.
        delay_ps: Delay of packets that the node sends.
        loss: Probability, per packet that the node sends.
        queue_bytes: Size of the queue in front of the line.
        discipline: Discipline of a switch's port, in the form that
            `switches/engine/disciplines.py` reads.
        pfc: Priority flow control of a switch's port, as `parse_pausing` reads it; "": none.
    """

    rate_bps = PORT_RATE_BPS
    delay_ps = 0
    loss = 0.0
    queue_bytes = 4 << 20
    discipline = "strict"
    pfc = ""

    def config(
        self,
        mtu_bytes: int = MTU_BYTES,
        rate_bps: int | None = None,
        delay_ps: int | None = None,
        loss: float | None = None,
        queue_bytes: int | None = None,
        discipline: str | None = None,
        pfc: str | None = None,
        **params: Any,
    ) -> dict[str, Any]:
        """Set it up with one command to the node's shell, which takes most of the time."""
        self.rate_bps = self.rate_bps if rate_bps is None else rate_bps
        self.delay_ps = self.delay_ps if delay_ps is None else delay_ps
        self.loss = self.loss if loss is None else loss
        self.queue_bytes = self.queue_bytes if queue_bytes is None else queue_bytes
        self.discipline = self.discipline if discipline is None else discipline
        self.pfc = self.pfc if pfc is None else pfc
        ip = params.get("ip")
        run(self.node, " && ".join(_setup(self.name, mtu_bytes, ip)))
        if ip is not None:
            self.ip, _, self.prefixLen = ip.partition("/")
        return {}

    def updateIP(self) -> str | None:  # noqa: N802
        """Return its address; Mininet's own method asks ifconfig each time."""
        return self.ip or super().updateIP()


class VethLink(Link):
    """A veth pair of `VethInterface`s; usable as `mn --link` and `Mininet(link=...)`.

    Mininet's own would first delete interfaces with the names of the new ones; this one doesn't.
    """

    intf1: Any
    intf2: Any

    def __init__(self, node1: Any, node2: Any, **params: Any) -> None:
        super().__init__(node1, node2, **{"cls1": VethInterface, "cls2": VethInterface, **params})

    def delete(self) -> None:
        """Delete one end, and with it the other."""
        ends = [end for end in (self.intf1, self.intf2) if end is not None]
        if not ends:
            return
        outside = next((end for end in ends if not end.node.inNamespace), ends[0])
        outside.cmd(f"ip link delete dev {outside.name} 2>/dev/null")
        for end in ends:
            end.node.delIntf(end)
        self.intf1 = self.intf2 = None


def line_of(end: Any) -> LinkEnd:
    """Return an interface as the end of a link, with what its node sends."""
    kind = end if isinstance(end, VethInterface) else VethInterface  # a foreign class: defaults
    return LinkEnd(
        end.name,
        kind.rate_bps,
        kind.delay_ps,
        kind.loss,
        kind.queue_bytes,
        kind.discipline,
        kind.pfc,
    )


def run(node: Any, command: str) -> None:
    """Run a command that prints nothing if it succeeds in a node's shell.

    Raises:
        BackendError: If it prints anything; the message contains its output.
    """
    output = (node.cmd(command) or "").strip()
    if output:
        raise BackendError(f"{node.name}: {command}: {output}")


def _setup(name: str, mtu_bytes: int, ip: str | None) -> list[str]:
    ipv6 = f"/proc/sys/net/ipv6/conf/{name}/disable_ipv6"
    offloads = " ".join(f"{each} off" for each in OFFLOADS)
    commands = [
        # A kernel without IPv6 has no such file.
        f"{{ ! test -e {ipv6} || echo 1 > {ipv6}; }}",
        f"ethtool -K {name} {offloads} > /dev/null",
        f"ip link set dev {name} mtu {mtu_bytes} up",
    ]
    if ip is not None:
        commands.append(f"ip address add {ip} dev {name}")
    return commands
