"""A network as a file describes it: what its attributes mean, in numbers, with defaults open."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LinkDirection:
    """One direction of a link; None: as the experiment has it for all links.

    `buffer_bytes` is the queue of the switch that sends. `beside` is the number of links of the
    experiment's rate that are part of it, beside one of `rate_bps`.
    """

    rate_bps: int | None = None
    delay_ps: int | None = None
    loss: float | None = None
    buffer_bytes: int | None = None
    beside: int = 0


@dataclass(frozen=True, slots=True)
class FileNode:
    """A host or switch.

    A server is a host that forwards for others, through a switch of its own; `inner_rate_bps` and
    `inner_delay_ps` are of the link to that.
    """

    name: str
    line: int
    is_host: bool
    is_server: bool = False
    label: str = ""
    kind: str = ""
    tier: int | None = None  # of a switch
    pos: tuple[float, float] | None = None
    inner_rate_bps: int | None = None
    inner_delay_ps: int | None = None
    ipv4: int | None = None  # of a host
    mac: int | None = None
    in_grid: int | None = None  # its place in the grid


@dataclass(frozen=True, slots=True)
class Cable:
    """A link from `a` to `b`, and back; None for a port: it follows from the order of links."""

    a: str
    b: str
    line: int
    there: LinkDirection
    back: LinkDirection
    ports: tuple[int | None, int | None] = (None, None)


@dataclass(frozen=True, slots=True)
class Description:
    """A whole network; hosts are in rank order, and links in the order of ports.

    Empty `hierarchy`, `routing` and `layout` are found by looking at the network. `machine` is
    the number of GPUs of each machine, and that of tiers of switches in it; empty: hosts are not
    parts of machines. `grid` has the sizes of a grid of hosts whose dimensions close into rings;
    empty: there is none. `notes` are lines for people: what is not used, or was assumed.
    """

    source: str
    hosts: tuple[FileNode, ...]
    switches: tuple[FileNode, ...]
    cables: tuple[Cable, ...]
    hierarchy: tuple[int, ...] = ()
    routing: str = ""
    shape: tuple[int, ...] = ()
    layout: str = ""
    machine: tuple[int, ...] = ()
    grid: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()
