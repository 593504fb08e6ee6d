"""Code of bits of the packet that the parser has not taken yet."""

from __future__ import annotations

from switches.generate.bits import read_bits
from switches.generate.code import Code
from switches.generate.extract import signed_words
from switches.source import LookAhead


def end_of(value: LookAhead, at: int | None) -> str:
    """Return code of the head's byte after those that are looked at."""
    size = -(-(value.offset + value.width) // 8)
    return f"parsed + {size}" if at is None else str(at + size)


def look(code: Code, value: LookAhead, at: int | None, width: int, signed: bool) -> list[str]:
    """Return code of the words of a field of `width` bits that is set to the bits."""
    where = "parsed" if at is None else str(at)
    words = read_bits(code, where, value.offset, value.width)
    words += [code.u(0)] * (-(-width // 64) - len(words))
    return signed_words(words, width) if signed else words[: -(-width // 64)]
