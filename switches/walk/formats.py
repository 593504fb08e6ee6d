"""Values as people write them."""

from __future__ import annotations

import ipaddress
import re

MAC_BITS, IPV4_BITS, IPV6_BITS = 48, 32, 128

_ADDRESS = re.compile(r"(?:^|[._])(?:\w*addr\w*|src|dst|ip\w*|source|destination|nexthop)$", re.I)


def show(value: int, width: int, name: str = "") -> str:
    """Return a value in the form that its width, and its name where it has one, suggest."""
    if width == MAC_BITS:
        return ":".join(f"{byte:02x}" for byte in value.to_bytes(6, "big"))
    if name.endswith(".isValid()") or width == 0:
        return "true" if value else "false"
    if _ADDRESS.search(name):
        if width == IPV4_BITS:
            return str(ipaddress.IPv4Address(value))
        if width == IPV6_BITS:
            return str(ipaddress.IPv6Address(value))
    if value < 10:
        return str(value)
    return hex(value) if width > 64 else f"{value} ({value:#x})"


def show_match(kind: str, pair: tuple[int, int], width: int, name: str) -> str:
    """Return one key of a table entry; `pair` is as in `ringleaf.switches.engine.updates.Match`."""
    first, second = pair
    full = (1 << width) - 1
    if kind == "range":
        return f"{show(first, width, name)}..{show(second, width, name)}"
    if second == 0:
        return "any"
    if kind == "lpm":
        return f"{show(first, width, name)}/{second.bit_count()}"
    if second == full:
        return show(first, width, name)
    return f"{show(first, width, name)} &&& {second:#x}"
