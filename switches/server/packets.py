"""Packets from and to a controller: their metadata is a header before them (section 16.1)."""

from __future__ import annotations

from typing import Any

from finsy.proto import p4r

from ringleaf.errors import ConfigError
from ringleaf.switches.p4runtime.bytestrings import decode_unsigned, encode_unsigned


def join_packet(header: Any, message: Any) -> bytes:
    """Return the bytes that a PacketOut puts on the CPU port.

    Args:
        header: The p4.config.v1.ControllerPacketMetadata `packet_out`.
        message: The p4.v1.PacketOut.

    Raises:
        ConfigError: If its metadata are not exactly the header's fields.
    """
    values = {item.metadata_id: item.value for item in message.metadata}
    ids = [field.id for field in header.metadata]
    if len(values) != len(message.metadata) or values.keys() != set(ids):
        got = [item.metadata_id for item in message.metadata]
        raise ConfigError(f"packet_out: takes metadata ids {ids}, got {got}")
    bits = 0
    for field in header.metadata:
        where = f"packet_out: {field.name}"
        bits = bits << field.bitwidth | decode_unsigned(values[field.id], field.bitwidth, where)
    size = _header_bytes(header)
    bits <<= 8 * size - sum(field.bitwidth for field in header.metadata)
    return bits.to_bytes(size, "big") + message.payload


def split_packet(header: Any, data: bytes) -> Any:
    """Return the PacketIn of a packet from the CPU port; None if it is shorter than `packet_in`."""
    size = _header_bytes(header)
    if len(data) < size:
        return None
    bits, left = int.from_bytes(data[:size], "big"), 8 * size
    metadata = []
    for field in header.metadata:
        left -= field.bitwidth
        value = bits >> left & ((1 << field.bitwidth) - 1)
        metadata.append(p4r.PacketMetadata(metadata_id=field.id, value=encode_unsigned(value)))
    return p4r.PacketIn(payload=data[size:], metadata=metadata)


def _header_bytes(header: Any) -> int:
    return (sum(field.bitwidth for field in header.metadata) + 7) // 8
