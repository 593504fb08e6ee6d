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
        if width > 64:  # by calls: code for each byte would take long to compile
            words.append(f"read_word(head, {where}, {start}, {end - start})")
        else:
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
    last = (end - 1) // 8
    spare = 8 * (last + 1) - end  # bits of the last byte after the value
    parts = []
    for byte in range(start // 8, last + 1):
        shift = 8 * (last - byte) - spare
        value = f"U(head[{_plus(where, byte)}])"
        if shift:
            op = "<<" if shift > 0 else ">>"
            value = f"({value} {op} {code.u(abs(shift))})"
        parts.append(value)
    joined = parts[0] if len(parts) == 1 else f"({' | '.join(parts)})"
    if start % 8 == 0:
        return joined
    return f"({joined} & {code.u((1 << (end - start)) - 1)})"


def _plus(where: str, amount: int) -> str:
    if where.isdigit():
        return str(int(where) + amount)
    return f"{where} + {amount}" if amount else where


def write_bits(
    code: FunctionCode, where: str, offset: int, width: int, words: tuple[str, ...]
) -> None:
    """Write the low `width` bits of a value to the head, `offset` bits after byte `where`."""
    end = offset + width
    if width > 64:
        code.add(f"write_words(head, {where}, {offset}, {width}, {tuple_of(words)})")
        return
    for byte in range(offset // 8, (end - 1) // 8 + 1):
        low = max(end - 8 * (byte + 1), 0)  # the value's lowest bit in this byte
        high = min(end - 8 * byte, width)  # and the one after its highest
        spare = max(8 * (byte + 1) - end, 0)  # bits of the byte after the value
        value = _bits(code, words, low, high - low)
        if spare:
            value = f"({value} << {code.u(spare)})"
        at = f"head[{int(where) + byte}]" if where.isdigit() else f"head[{where} + {byte}]"
        if high - low < 8:
            keep = 0xFF & ~(((1 << (high - low)) - 1) << spare)
            value = f"(U({at}) & {code.u(keep)}) | {value}"
        code.add(f"{at} = {value}")


def _bits(code: FunctionCode, words: tuple[str, ...], low: int, count: int) -> str:
    """Return code of `count` (at most 8) bits of a value, from bit `low` on."""
    index, shift = divmod(low, 64)
    value = f"({words[index]} >> {code.u(shift)})" if shift else words[index]
    if shift + count > 64 and index + 1 < len(words):
        value = f"({value} | ({words[index + 1]} << {code.u(64 - shift)}))"
    return f"({value} & {code.u((1 << count) - 1)})"
