"""Ports and addresses that P4-Utils gives what its file leaves open.

Source:
    nsg-ethz/p4-utils, p4utils/mininetlib/network_API.py (`auto_assignment`, `l2`, `mixed`, `l3`):
    links in natural order of their ends get the lowest free ports, from 1, and switches in natural
    order the lowest free numbers; host h3 of switch 5 is 10.0.0.3, 10.0.5.3 or 10.5.3.2 by
    strategy, with its address after two bytes of zeros as MAC.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ringleaf.core.units import is_whole
from ringleaf.topologies.files.attributes import BACK, IPV4, MAC, OUT_PORT
from ringleaf.topologies.files.rows import FileRow, LinkRow

STRATEGIES = ("l2", "mixed", "l3")
_CPU = "sw-cpu"  # the node behind the port for a switch's controller
_MOST_HOSTS = 254  # numbers of hosts of a switch


def _natural(name: str) -> list[tuple[bool, int, str]]:
    """Return a key that sorts s10 after s9."""
    parts = re.split(r"(\d+)", name)
    return [(is_whole(part), int(part) if is_whole(part) else 0, part) for part in parts]


def _in_natural_order(ends: tuple[str, str]) -> list[list[tuple[bool, int, str]]]:
    return [*map(_natural, ends)]


def with_ports(
    links: Sequence[LinkRow],
    switches: Collection[str],
    with_cpu: Collection[str],
    order: Callable[[tuple[str, str]], Any] = _in_natural_order,
) -> tuple[LinkRow, ...]:
    """Return links with ports of switches, where they have none.

    Args:
        links: The links.
        switches: The names of switches.
        with_cpu: Those that have a port for their controller, which is numbered with the others.
        order: Of the ends of a link, what links are sorted by before they are numbered.
    """
    ends = [*((link.a, link.b) for link in links), *((name, _CPU) for name in with_cpu)]
    values = [*(dict(link.row.values) for link in links), *({} for _ in with_cpu)]
    sides = ((0, OUT_PORT), (1, f"{OUT_PORT}{BACK}"))
    taken: dict[str, set[int]] = {name: set() for name in switches}
    for pair, own in zip(ends, values, strict=True):
        for side, name in sides:
            if pair[side] in taken and is_whole(own.get(name, "")):
                taken[pair[side]].add(int(own[name]))
    for number in sorted(range(len(ends)), key=lambda each: order(ends[each])):
        for side, name in sides:
            node = ends[number][side]
            if node in taken and name not in values[number]:
                values[number][name] = str(_lowest_free(taken[node]))
                taken[node].add(int(values[number][name]))
    return tuple(
        replace(link, row=FileRow(link.row.line, own))
        for link, own in zip(links, values, strict=False)
    )


def _lowest_free(taken: Collection[int]) -> int:
    return next(number for number in range(1, len(taken) + 2) if number not in taken)


def addresses(
    strategy: str, switches: Mapping[str, Any], links: Sequence[LinkRow]
) -> dict[str, dict[str, str]]:
    """Return the addresses of hosts called h1, h2 and so on, by a strategy; others have none here.

    Args:
        strategy: One of `STRATEGIES`.
        switches: By name, what the file says of each switch.
        links: The links.
    """
    numbers = _numbers(switches)
    by_host: dict[str, tuple[int, ...]] = {}
    for link in links:
        for host, switch in ((link.a, link.b), (link.b, link.a)):
            named = re.fullmatch(r"h(\d{1,5})", host, re.ASCII)
            if not named or host in switches or switch not in switches:
                continue
            high, low = divmod(int(named[1]), 256)
            if strategy == "l2":
                by_host[host] = (10, 0, high, low)
            elif int(named[1]) < _MOST_HOSTS and 0 <= numbers[switch] < 1 << 16:
                upper, lower = divmod(numbers[switch], 256)
                by_host[host] = (10, upper, lower, low)
                if strategy == "l3":
                    by_host[host] = (10, lower, low, 2)
    return {
        host: {
            IPV4: ".".join(map(str, address)),
            MAC: ":".join(f"{byte:02x}" for byte in (0, 0, *address)),
        }
        for host, address in by_host.items()
    }


def _numbers(switches: Mapping[str, Any]) -> dict[str, int]:
    """Return the numbers of switches: their own, or the lowest free one in natural order."""
    own = {
        name: about["device_id"]
        for name, about in switches.items()
        if isinstance(about, dict) and isinstance(about.get("device_id"), int)
    }
    for name in sorted(switches, key=_natural):
        if name not in own:
            own[name] = _lowest_free(own.values())
    return own
