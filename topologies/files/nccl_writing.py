"""Any network as a topology file of NCCL's form, with our exact attributes beside NCCL's.

NCCL's own attributes say the nearest that they can: rates in lanes and NVLinks, no latency. The
attributes `ringleaf` and `ringleaf_link`, which NCCL does not look at, say the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ringleaf.core.units import parse_rate
from ringleaf.errors import TopologyError
from ringleaf.topologies.files.attributes import BACK, HOST, SWITCH, USUAL
from ringleaf.topologies.files.markup import quoted
from ringleaf.topologies.files.notes import write_note
from ringleaf.topologies.files.rows import LinkRow, NetworkRows, NodeRow

NOTE, LINK_NOTE = "ringleaf", "ringleaf_link"

DEEPEST = 40
LANE_BPS, NVLINK_BPS = 12 * 10**9, 160 * 10**9
_GPU_CLASS, _BRIDGE_CLASS, _SWITCH_CLASS = "0x030200", "0x060400", "0x068000"
_USUAL_BPS = 10**11

_Link = tuple[int, LinkRow]
"""A link, and its place among all."""


def write(rows: NetworkRows) -> str:
    """Return the text of a file.

    A host with one link is below its switch. Switches are PCI switches, in trees as far as their
    links allow, and joined by PCI links otherwise. Servers have NVLinks.

    Raises:
        TopologyError: If switches are in too long a chain.
    """
    return "\n".join(_Writer(rows).lines()) + "\n"


class _Writer:
    def __init__(self, rows: NetworkRows) -> None:
        self._rows = rows
        self._nodes = {each.name: each for each in rows.nodes}
        self._bus = {each.name: _bus(number) for number, each in enumerate(rows.nodes, start=1)}
        self._links: dict[str, list[_Link]] = {each.name: [] for each in rows.nodes}
        for order, link in enumerate(rows.links):
            self._links[link.a].append((order, link))
            self._links[link.b].append((order, link))
        self._order = {each.name: number for number, each in enumerate(rows.nodes)}
        self._below: dict[str, list[tuple[_Link, str]]] = {each.name: [] for each in rows.nodes}
        self._tops = list(self._grow())

    def lines(self) -> Iterator[str]:
        """Yield the lines of the file."""
        yield '<system version="1" ' + _noted(NOTE, self._rows.about.values) + ">"
        yield '  <cpu numaid="0" arch="x86_64" vendor="AuthenticAMD" familyid="143" ' + (
            f'modelid="49" affinity="ffff" {_noted(NOTE, {"role": "none"})}>'
        )
        for name in self._tops:
            lines = self._switch if self._role(name) == SWITCH else self._gpu
            yield from lines(name, None, 2)
        yield "  </cpu>"
        yield "</system>"

    def _role(self, name: str) -> str:
        return self._nodes[name].row.values["role"]

    def _grow(self) -> Iterator[str]:
        """Yield the tops of trees of switches, with plain hosts, and the servers, which have none.

        Trees are found breadth first, so that chains are short.
        """
        done: set[str] = set()
        for top in sorted(self._nodes, key=lambda name: self._role(name) != SWITCH):
            if top in done:
                continue
            yield top
            done.add(top)
            waiting = [top] if self._role(top) == SWITCH else []
            for name in waiting:  # it grows
                for each in self._links[name]:
                    peer = _other(each[1], name)
                    if peer not in done and self._role(peer) in (SWITCH, HOST):
                        done.add(peer)
                        self._below[name].append((each, peer))
                        waiting += [peer] if self._role(peer) == SWITCH else []

    def _switch(self, name: str, up: _Link | None, depth: int) -> Iterator[str]:
        """Yield a switch with all below it."""
        if depth > DEEPEST:
            raise TopologyError(
                f"nccl: at most {DEEPEST} switches in a chain, got more at {name!r}"
            )
        node, below = self._nodes[name], self._below[name]
        yield "  " * depth + self._pci(node, up, _BRIDGE_CLASS, self._note(node))
        for each, peer in below:
            lines = self._gpu if self._role(peer) == HOST else self._switch
            yield from lines(peer, each, depth + 1)
        inside = {each[0] for each, _ in below} | ({up[0]} if up else set())
        for each in self._links[name]:
            peer = _other(each[1], name)
            if each[0] not in inside and self._role(peer) == SWITCH:
                note = _noted(LINK_NOTE, _one_way(each, name))
                yield "  " * (depth + 1) + f'<pcilink target="{self._bus[peer]}" {note}/>'
        yield "  " * depth + "</pci>"

    def _gpu(self, name: str, up: _Link | None, depth: int) -> Iterator[str]:
        node = self._nodes[name]
        number = node.row.values.get("rank", "0")
        yield "  " * depth + self._pci(node, up, _GPU_CLASS, "")
        gpu = f'<gpu dev="{number}" sm="80" rank="{number}" gdr="1" {self._note(node)}>'
        yield "  " * (depth + 1) + gpu
        for each in self._links[name] if up is None else []:
            peer = _other(each[1], name)
            is_switch = self._role(peer) == SWITCH
            values = _from(each, name) if is_switch else _one_way(each, name)
            count = max(1, round(_rate_bps(values) / NVLINK_BPS))
            kind = _SWITCH_CLASS if is_switch else _GPU_CLASS
            yield "  " * (depth + 2) + (
                f'<nvlink target="{self._bus[peer]}" count="{count}" tclass="{kind}" '
                f"{_noted(LINK_NOTE, values)}/>"
            )
        yield "  " * (depth + 1) + "</gpu>"
        yield "  " * depth + "</pci>"

    def _pci(self, node: NodeRow, up: _Link | None, kind: str, note: str) -> str:
        values = _from(up, node.name) if up else {}
        lanes = min(16, max(1, round(_rate_bps(values) / LANE_BPS)))
        parts = [
            f'<pci busid="{self._bus[node.name]}" class="{kind}"',
            f'link_speed="16.0 GT/s PCIe" link_width="{lanes}"',
            note,
            _noted(LINK_NOTE, values) if up else "",
        ]
        return " ".join(part for part in parts if part) + ">"

    def _note(self, node: NodeRow) -> str:
        order = str(self._order[node.name])
        return _noted(NOTE, {"name": node.name, "order": order, **node.row.values})


def _bus(number: int) -> str:
    """Return a bus id: domain, bus, device and function."""
    return f"{number >> 16:04x}:{number >> 8 & 255:02x}:{number >> 3 & 31:02x}.{number & 7}"


def _other(link: LinkRow, name: str) -> str:
    return link.b if link.a == name else link.a


def _from(each: _Link, name: str) -> dict[str, str]:
    """Return a link's place and attributes, as it is seen from one end."""
    order, link = each
    values = dict(link.row.values)
    if link.a != name:
        names = {key.removesuffix(BACK) for key in values if key.endswith(BACK)}
        for key in names:
            back = values.pop(f"{key}{BACK}")
            values[f"{key}{BACK}"] = values.get(key, USUAL)
            values[key] = back
    return {"order": str(order), **values}


def _one_way(each: _Link, name: str) -> dict[str, str]:
    return {key: value for key, value in _from(each, name).items() if not key.endswith(BACK)}


def _rate_bps(values: Mapping[str, str]) -> int:
    return parse_rate(values["rate"]) if "rate" in values else _USUAL_BPS


def _noted(name: str, values: Mapping[str, str]) -> str:
    return f"{name}={quoted(write_note(values))}"
