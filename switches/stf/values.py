"""Numbers as STF writes them, with `*` for digits that don't matter.

Source: p4c `backends/bmv2/bmv2stf.py`, `makeMask` and `makeLpm`: the length of a
mask or a prefix follows from the digits given, not from the key's width (`0x12` for a 32-bit
ternary key leaves the upper 24 bits open).
"""

from __future__ import annotations

from ringleaf.core.units import format_count
from ringleaf.errors import ConfigError

_DIGIT_BITS = {"0x": 4, "0o": 3, "0b": 1}


def number(where: str, text: str, width: int) -> int:
    """Return an exact value of at most `width` bits."""
    try:
        value = int(text, 0) if not text.isdecimal() else int(text)
    except ValueError:
        raise ConfigError(f"{where}: must be a number, got {text!r}") from None
    if value >> width:
        raise ConfigError(f"{where}: must have at most {format_count(width, 'bit')}, got {text!r}")
    return value


def ternary(where: str, text: str, width: int) -> tuple[int, int]:
    """Return value and mask."""
    bits = _DIGIT_BITS.get(text[:2].lower())
    if bits is None:  # p4c refuses a decimal here; it leaves nothing open
        return number(where, text, width), (1 << width) - 1
    value = number(where, text.replace("*", "0"), width)
    digit_mask = (1 << bits) - 1
    mask = 0
    for digit in text[2:]:
        mask = mask << bits | (0 if digit == "*" else digit_mask)
    if mask >> width and text[2] not in "01*":
        raise ConfigError(f"{where}: must have at most {format_count(width, 'bit')}, got {text!r}")
    return value & mask, mask & ((1 << width) - 1)


def prefix(where: str, text: str, width: int) -> tuple[int, int]:
    """Return value and mask of `VALUE/LENGTH`, or of a value with only the digits that matter."""
    digits, slash, length = text.partition("/")
    bits = _DIGIT_BITS.get(digits[:2].lower())
    if slash:
        size = number(where, length, 16)
    elif bits is None:
        size = width
    else:
        size = bits * (len(digits) - 2 - digits.count("*"))
    if size > width:
        raise ConfigError(
            f"{where}: prefix must have at most {format_count(width, 'bit')}, got {text!r}"
        )
    mask = ((1 << size) - 1) << (width - size)
    return number(where, digits.replace("*", "0"), width) & mask, mask
