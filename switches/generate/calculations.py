"""Hashes and checksums over fields.

The input is one string of bits, padded with zeros to whole bytes (BMv2's `BufBuilder`).
"""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby

from ringleaf.switches.engine.hashing import CRCS, WIDTHS, XORS
from ringleaf.switches.generate.code import FunctionCode
from ringleaf.switches.generate.inputs import InputPiece, gather, pieces_of, rest
from ringleaf.switches.generate.marks import UPDATE, VERIFY, WRONG, LineMark
from ringleaf.switches.generate.storage import valid
from ringleaf.switches.source import Calculation, Checksum, FieldSource

LONGEST_STRAIGHT = 64  # bytes of input for which there is code without a loop


def calculate(code: FunctionCode, name: str, where: str = "") -> tuple[str, int]:
    """Write the lines that a calculation needs; return code of its result, and its bits."""
    calculation = code.source.calculations[name]
    algorithm = calculation.algorithm
    if algorithm not in WIDTHS:
        raise code.source.refuse(
            f"hash algorithm is not supported (there are {', '.join(WIDTHS)})", algorithm, where
        )
    width = WIDTHS[algorithm]
    pieces, bits = pieces_of(code, calculation)
    varying = any(piece.varbit for piece in pieces)
    if algorithm == "random":  # p4c knows it; BMv2 does not, and refuses the program
        return f"draw(state, block[RANDOM_AT], {code.u(0)}, {code.u((1 << 64) - 1)})", width
    if algorithm in ("csum16", "cksum16") and not varying:
        return _sum16(code, calculation, pieces, bits), width
    missing = any(piece.header for piece in pieces)
    if varying or missing or calculation.with_payload or not 0 < bits <= 8 * LONGEST_STRAIGHT:
        return _of_gathered(code, algorithm, gather(code, calculation, pieces)), width
    if algorithm in CRCS:
        return _crc(code, calculation, pieces, bits), width
    if algorithm == "identity":
        return _identity(code, pieces, bits), width
    return _xor(code, pieces, width), width


def _of_gathered(code: FunctionCode, algorithm: str, data: str) -> str:
    """Return code of the result for an input that is put together first."""
    if algorithm in CRCS:
        return _crc_of(code, algorithm, data)
    if algorithm in XORS:
        return f"xor_of({data}, {XORS[algorithm]})"
    if algorithm == "identity":
        return f"first_of({data})"
    return f"(fold16(sum_of({data})) ^ {code.u(0xFFFF)})"


def _crc_of(code: FunctionCode, algorithm: str, data: str) -> str:
    kind, steps = CRCS[algorithm], f"{algorithm}_steps"
    code.globals[steps] = f"crc_steps({algorithm!r})"
    final = code.u(kind.final)
    if kind.reflected:
        return f"(crc_reflected({steps}, {code.u(kind.start)}, {data}) ^ {final})"
    up = 64 - kind.width
    remainder = f"crc_upright({steps}, {code.u(kind.start << up)}, {data})"
    return f"(({remainder} >> {code.u(up)}) ^ {final})"


def update_checksum(code: FunctionCode, checksum: Checksum) -> None:
    """Write code that sets a field to its calculation's result, if its condition holds."""
    code.lines.comment(f"update {code.field_label(checksum.target)}")
    mark = LineMark(UPDATE, checksum, checksum.where, whole=True)
    with code.marked(mark), code.guarded(_condition(code, checksum)):
        result, width = calculate(code, checksum.calculation)
        code.set_word(checksum.target, result, width)


def verify_checksum(code: FunctionCode, checksum: Checksum, error: FieldSource) -> None:
    """Write code that sets `error` if the field differs from the calculation's result."""
    target = checksum.target
    code.lines.comment(f"verify {code.field_label(target)}")
    mark = LineMark(VERIFY, checksum, checksum.where)
    here = code.block(f"if {code.is_set(valid(target.header))}:")
    with code.marked(mark), here, code.guarded(_condition(code, checksum)):
        result, _ = calculate(code, checksum.calculation)
        differs = code.block(f"if {result} != {code.bits_of(target)[0]}:")
        with differs, code.marked(LineMark(WRONG, checksum, checksum.where)):
            code.set(error, [code.u(1)])


def _condition(code: FunctionCode, checksum: Checksum) -> str | None:
    condition = checksum.condition
    return None if condition is None else code.expressions.condition(condition)


def ones_sum(code: FunctionCode, name: str, where: str, *, inverted: bool = False) -> str:
    """Return code of the ones' complement sum of an input's 16-bit words.

    If they are `inverted`, it is the sum of their ones' complements.
    """
    calculation = code.source.calculations[name]
    pieces, bits = pieces_of(code, calculation)
    if any(piece.varbit for piece in pieces):
        raise code.source.refuse("an InternetChecksum of a varbit is not supported", name, where)
    if inverted:
        pieces = [
            replace(piece, code=f"({piece.code} ^ {code.u((1 << piece.width) - 1)})")
            for piece in pieces
        ]
    _add_up(code, calculation, pieces, bits)
    return "fold16(total)"


def _sum16(
    code: FunctionCode, calculation: Calculation, pieces: list[InputPiece], bits: int
) -> str:
    """Return code of the ones' complement of the words' ones' complement sum (RFC 1071)."""
    _add_up(code, calculation, pieces, bits)
    return f"(fold16(total) ^ {code.u(0xFFFF)})"


def _add_up(
    code: FunctionCode, calculation: Calculation, pieces: list[InputPiece], bits: int
) -> None:
    """Write code that sets `total` to a sum of 16-bit words, which has to be folded.

    2^16 is 1 modulo 65535, so each piece counts by its place in its word alone, and all are
    added up before folding.
    """
    stretches = [(header, list(own)) for header, own in groupby(pieces, lambda item: item.header)]
    code.add(f"total = {code.u(0)}")
    if calculation.with_payload:
        code.add(f"offset = {code.u(bits)}")
    end = -1 if calculation.with_payload else bits
    if all(header is None or _is_whole(own, end) for header, own in stretches):
        for header, own in stretches:
            with code.guarded(code.is_set(valid(header)) if header else None):
                code.add(f"total += {' + '.join(_summand(code, piece) for piece in own)}")
    else:
        headers = dict.fromkeys(header for header, _ in stretches if header)
        there = " and ".join(code.is_set(valid(header)) for header in headers)
        with code.block(f"if {there}:"):
            code.add(f"total += {' + '.join(_summand(code, piece) for piece in pieces)}")
        with code.block("else:"):
            _sum_of_some(code, pieces)
    if calculation.with_payload:
        code.add(f"total += sum_from(arena, row, head, {rest(code)}, I(offset))")


def _is_whole(own: list[InputPiece], end: int) -> bool:
    """Return whether the other pieces keep their places in words if these pieces are left out."""
    last = own[-1].offset + own[-1].width == end
    return last or sum(piece.width for piece in own) % 16 == 0


def _sum_of_some(code: FunctionCode, pieces: list[InputPiece]) -> None:
    """Add up the pieces of valid headers, which close ranks: BMv2 skips the others."""
    code.add(f"offset = {code.u(0)}")
    for piece in pieces:
        with code.guarded(code.is_set(valid(piece.header)) if piece.header else None):
            code.add(f"offset += {code.u(piece.width)}")
            code.add(f"total += {_halved(code, piece)} << (({code.u(0)} - offset) & {code.u(15)})")


def _summand(code: FunctionCode, piece: InputPiece) -> str:
    shift = -(piece.offset + piece.width) % 16
    value = _halved(code, piece)
    return f"({value} << {code.u(shift)})" if shift else value


def _halved(code: FunctionCode, piece: InputPiece) -> str:
    """Return code of a number of at most 33 bits, so that there is room to shift and add it."""
    if piece.width <= 32:
        return piece.code
    return f"(({piece.code} & {code.u(0xFFFFFFFF)}) + ({piece.code} >> {code.u(32)}))"


def _bytes(code: FunctionCode, pieces: list[InputPiece], bits: int) -> list[str]:
    """Return code for each byte of the input."""
    out = []
    for start in range(0, bits, 8):
        parts = []
        for piece in pieces:
            right = piece.offset + piece.width - (start + 8)  # bits of it after this byte
            if piece.offset >= start + 8 or piece.offset + piece.width <= start:
                continue
            op, amount = ("<<", -right) if right < 0 else (">>", right)
            shifted = f"({piece.code} {op} {code.u(amount)})" if amount else piece.code
            parts.append(f"({shifted} & {code.u(0xFF)})")
        out.append(parts[0] if len(parts) == 1 else f"({' | '.join(parts)})")
    return out


def _crc(code: FunctionCode, calculation: Calculation, pieces: list[InputPiece], bits: int) -> str:
    count = -(-bits // 8)
    table = f"{calculation.algorithm}_{count}"
    code.globals[table] = f"crc_tables({calculation.algorithm!r}, {count})"
    if all(piece.offset % 8 == piece.width % 8 == 0 for piece in pieces):
        parts = [(piece.code, piece.offset // 8, piece.width // 8) for piece in pieces]
    else:
        parts = [(byte, i, 1) for i, byte in enumerate(_bytes(code, pieces, bits))]
    code.add(f"crc = {code.u(0)}")
    for value, first, size in parts:
        code.add(f"crc ^= look_up_bytes({table}, {first}, {value}, {size})")
    return "crc"


def _identity(code: FunctionCode, pieces: list[InputPiece], bits: int) -> str:
    data = _bytes(code, pieces, bits)[:8]
    terms = [f"({byte} << {code.u(8 * place)})" for place, byte in enumerate(reversed(data))]
    return f"({' | '.join(terms)})"


def _xor(code: FunctionCode, pieces: list[InputPiece], width: int) -> str:
    """Return code of the exclusive or of the input's words of `width` bits."""
    code.add(f"total = {code.u(0)}")
    for piece in pieces:
        shift = -(piece.offset + piece.width) % width
        whole = 64 - shift
        value = piece.code
        if piece.width > whole:  # its upper bits would be shifted out
            low = f"(({value} & {code.u((1 << whole) - 1)}) << {code.u(shift)})"
            code.add(f"total ^= {low} ^ ({value} >> {code.u(whole)})")
        else:
            code.add(f"total ^= ({value} << {code.u(shift)})" if shift else f"total ^= {value}")
    for half in (32, 16):
        if half >= width:
            code.add(f"total = (total ^ (total >> {code.u(half)})) & {code.u((1 << half) - 1)}")
    return "total"
