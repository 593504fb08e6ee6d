"""Code that reads and writes fields of any width, and lanes, at any place of a packet's head."""

from __future__ import annotations

from ringleaf.switches.generate.code import FunctionCode
from ringleaf.switches.generate.storage import LaneRun
from ringleaf.switches.generate.text import tuple_of
from ringleaf.switches.source import HeaderField


def lanes_call(verb: str, run: LaneRun, where: str) -> str:
    """Return code that copies a run of lanes from, or to, byte `where` of the head."""
    if run.width == 32:
        if verb == "read":
            return f"swap_items(lanes, {run.start}, head, {where}, {run.count})"
        return f"swap_items(head, {where}, lanes, {run.start}, {run.count})"
    lanes = f"window(lanes, {run.start}, {run.count})"
    return f"{verb}_lanes_{run.width}({lanes}, window(head, {where}, {run.count * run.width // 8}))"


def read_bits(code: FunctionCode, where: str, offset: int, width: int) -> list[str]:
    """Return code of `width` bits of the head, `offset` bits after byte `where`, as words."""
    words = []
    end = offset + width
    while end > offset:
        start = max(offset, end - 64)
        words.append(_read_word(code, where, start, end))
        end = start
    return words


def read_field(code: FunctionCode, where: str, item: HeaderField) -> list[str]:
    """Return code of a field's words, read from a header that begins at byte `where`."""
    words = read_bits(code, where, item.offset, item.width)
    return sign_extended(code, words, item.width) if item.signed else words


def sign_extended(code: FunctionCode, words: list[str], width: int) -> list[str]:
    """Return all words of a signed field, of which these hold its bits."""
    words = code.expressions.as_signed(words, width)
    return words if width % 64 else code.expressions.with_sign(words, len(words) + 1)


def _read_word(code: FunctionCode, where: str, start: int, end: int) -> str:
    first, last = start // 8, (end - 1) // 8
    spare = 8 * (last + 1) - end  # bits of the last byte after the value
    if last - first == 8:  # of a number of 9 bytes, the first one's bits would be shifted out
        high = f"(U(head[{_plus(where, first)}]) << {code.u(64 - spare)})"
        value = f"({high} | {_shifted(code, _number(where, first + 1, last), spare)})"
    else:
        value = _shifted(code, _number(where, first, last), spare)
    if start % 8 == 0 or end - start == 64:
        return value
    return f"({value} & {code.u((1 << (end - start)) - 1)})"


def _number(where: str, first: int, last: int) -> str:
    """Return code of the number that bytes of the head are, which is compiled as one statement."""
    if first == last:
        return f"U(head[{_plus(where, first)}])"
    return f"number_at(head, {_plus(where, first)}, {last - first + 1})"


def _shifted(code: FunctionCode, value: str, bits: int) -> str:
    return f"({value} >> {code.u(bits)})" if bits else value


def _plus(where: str, amount: int) -> str:
    if where.isdigit():
        return str(int(where) + amount)
    return f"{where} + {amount}" if amount else where


def write_bits(
    code: FunctionCode, where: str, offset: int, width: int, words: tuple[str, ...]
) -> None:
    """Write the low `width` bits of a value to the head, `offset` bits after byte `where`."""
    end = offset + width
    if offset % 8 == width % 8 == 0 and width > 8:
        for i, word in enumerate(words[: -(-width // 64)]):  # the rest are signs
            size = min(8, width // 8 - 8 * i)
            at = _plus(where, end // 8 - 8 * i - size)
            code.add(f"put_number(head, {at}, {word}, {size})")
        return
    if width > 64:
        code.add(f"write_words(head, {where}, {offset}, {width}, {tuple_of(words)})")
        return
    for byte in range(offset // 8, (end - 1) // 8 + 1):
        low = max(end - 8 * (byte + 1), 0)  # the value's lowest bit in this byte
        high = min(end - 8 * byte, width)  # and the one after its highest
        spare = max(8 * (byte + 1) - end, 0)  # bits of the byte after the value
        value = _bits(code, words[0], low, high - low)
        if spare:
            value = f"({value} << {code.u(spare)})"
        at = f"head[{int(where) + byte}]" if where.isdigit() else f"head[{where} + {byte}]"
        if high - low < 8:
            keep = 0xFF & ~(((1 << (high - low)) - 1) << spare)
            value = f"(U({at}) & {code.u(keep)}) | {value}"
        code.add(f"{at} = {value}")


def _bits(code: FunctionCode, word: str, low: int, count: int) -> str:
    """Return code of `count` (at most 8) bits of a word, from bit `low` on."""
    value = f"({word} >> {code.u(low)})" if low else word
    return f"({value} & {code.u((1 << count) - 1)})"
