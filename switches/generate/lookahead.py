"""Code of bits of the packet that the parser has not taken yet."""

from __future__ import annotations

from ringleaf.switches.generate.bits import read_bits, sign_extended
from ringleaf.switches.generate.code import FunctionCode
from ringleaf.switches.source import FieldSource, LookAhead


def end_of(value: LookAhead, at: int | None) -> str:
    """Return code of the head's byte after those that are looked at."""
    size = -(-(value.offset + value.width) // 8)
    return f"parsed + {size}" if at is None else str(at + size)


def look(code: FunctionCode, value: LookAhead, at: int | None) -> list[str]:
    """Return code of the bits' words."""
    where = "parsed" if at is None else str(at)
    return read_bits(code, where, value.offset, value.width)


def set_ahead(code: FunctionCode, target: FieldSource, value: LookAhead, at: int | None) -> None:
    """Set a field to bits that are looked at.

    BMv2 extracts them where the widths are equal, and else takes no bit for a sign.
    """
    shape, words = code.storage.shape(target), look(code, value, at)
    if shape.signed and shape.width == value.width:
        code.set(target, sign_extended(code, words, shape.width))
    else:
        code.set_unsigned(target, words, value.width)
