"""Packets as scapy dissects them, field by field, each with the range of its bits."""

from __future__ import annotations

import logging
import struct
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from ringleaf.core.units import format_count
from ringleaf.ina.registry import layer_modules


class FieldView(NamedTuple):
    """One field of a packet."""

    layer: str  # scapy's short name, with #2 for the second of its kind
    name: str
    value: str
    start_bit: int
    end_bit: int

    @property
    def full_name(self) -> str:
        """Return the name by which masks take the field, such as `IP.ttl`."""
        return f"{self.layer}.{self.name}"


@cache
def _ethernet() -> Any:
    """Load the layers, which takes a second."""
    logging.getLogger("scapy").setLevel(logging.ERROR)
    from scapy.layers import inet6, l2, vxlan  # noqa: F401 - so that they are known

    import ringleaf.hosts.rc.layers  # noqa: F401

    layer_modules()
    return l2.Ether


def dissect(data: bytes) -> list[FieldView]:
    """Return all fields in the order of their bits; bytes that no layer knows are `Raw.load`."""
    try:
        packet = _ethernet()(data)
    except (struct.error, ValueError, IndexError, TypeError, KeyError, AttributeError):
        packet = None  # scapy assumes that headers are complete
    fields: list[FieldView] = []
    seen: dict[str, int] = {}
    start = 0
    for layer in _layers(packet):
        name = type(layer).__name__
        seen[name] = seen.get(name, 0) + 1
        shown = name if seen[name] == 1 else f"{name}#{seen[name]}"
        size = _header_bytes(layer)
        fields += _fields(layer, shown, 8 * size, 8 * start)
        start += size
    if start < len(data):  # padding, or bytes that scapy left out
        rest = data[start:]
        fields.append(FieldView("Padding", "load", _hex(rest), 8 * start, 8 * len(data)))
    return fields


def _layers(packet: Any) -> Iterator[Any]:
    while packet and type(packet).__name__ not in ("NoPayload", "Padding"):
        yield packet
        packet = packet.payload


def _header_bytes(layer: Any) -> int:
    """Return the bytes of a layer without its payload.

    Scapy keeps them, but for layers that it has changed after reading them, as errors of ICMP,
    whose extension stands behind the payload.
    """
    if layer.raw_packet_cache is not None or not layer.original:
        return len(layer.raw_packet_cache or b"")
    rest = layer.original
    for field in layer.fields_desc:
        rest, _ = field.getfield(layer, rest)
    if layer.original.endswith(rest):
        return len(layer.original) - len(rest)
    return int(layer.original.index(rest))


def _fields(layer: Any, shown: str, size_bits: int, base: int) -> Iterator[FieldView]:
    """Parse a layer's bytes once more, to find the bits of each field; yield the fields."""
    rest: Any = layer.original
    before = 0
    for field in layer.fields_desc:
        if before >= size_bits:
            break
        rest, value = field.getfield(layer, rest)
        left = 8 * len(rest[0]) - rest[1] if isinstance(rest, tuple) else 8 * len(rest)
        after = 8 * len(layer.original) - left
        if after > before:
            yield FieldView(
                shown, field.name, _show(field, layer, value), base + before, base + after
            )
        before = after


def _show(field: Any, layer: Any, value: Any) -> str:
    if isinstance(value, bytes):
        return _hex(value)
    shown = field.i2repr(layer, value)
    if field.name in ("chksum", "icrc", "type") and isinstance(value, int):
        shown = f"{value:#06x}"
    return str(shown)


def _hex(data: bytes, most: int = 16) -> str:
    tail = f"... ({format_count(len(data), 'byte')})" if len(data) > most else ""
    return data[:most].hex(" ") + tail
