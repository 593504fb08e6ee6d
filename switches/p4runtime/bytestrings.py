"""P4Runtime's bytestrings (section 8.4): big-endian, of any length that holds the value."""

from __future__ import annotations

from ringleaf.core.units import format_count
from ringleaf.errors import Code, ConfigError


def decode_unsigned(data: bytes, width: int, where: str) -> int:
    """Return the value of a `bit<width>`.

    Raises:
        ConfigError: OUT_OF_RANGE, if the string is empty or the value has more bits.
    """
    _check_filled(data, where)
    value = int.from_bytes(data, "big")
    if value >> width:
        raise ConfigError(
            f"{where}: has {format_count(width, 'bit')}, got {value:#x}", Code.OUT_OF_RANGE
        )
    return value


def decode_signed(data: bytes, width: int, where: str) -> int:
    """Return the value of an `int<width>`; as above."""
    _check_filled(data, where)
    value = int.from_bytes(data, "big", signed=True)
    if not -(1 << (width - 1)) <= value < 1 << (width - 1):
        raise ConfigError(
            f"{where}: has {format_count(width, 'bit')}, signed, got {value}", Code.OUT_OF_RANGE
        )
    return value


def encode_unsigned(value: int) -> bytes:
    """Return the canonical, shortest, string."""
    return value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")


def encode_signed(value: int) -> bytes:
    """Return a signed number in two's complement, in the fewest bytes that hold it."""
    bits = (value if value >= 0 else ~value).bit_length() + 1
    return value.to_bytes((bits + 7) // 8, "big", signed=True)


def _check_filled(data: bytes, where: str) -> None:
    if not data:
        raise ConfigError(
            f"{where}: must not be empty, got b''; zero is one byte", Code.OUT_OF_RANGE
        )
