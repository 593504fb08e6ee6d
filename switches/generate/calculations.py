"""Hashes and checksums over fields.

The input is one string of bits, padded with zeros to whole bytes (BMv2's `BufBuilder`).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

from switches.generate.code import Code
from switches.generate.marks import UPDATE, VERIFY, WRONG, Mark
from switches.generate.storage import valid
from switches.hashing import CRCS, WIDTHS
from switches.source import VALID, Calculation, Checksum, Constants, Field


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of at most 64 bits of the input."""

    code: str
    offset: int  # bits from the start of the input
    width: int  # bits
    header: str | None  # which must be valid for the piece to count


def inputs_of(calculation: Calculation) -> set[Field]:
    """Return the fields that a calculation reads, validity of their headers included."""
    fields = {item for item in calculation.inputs if isinstance(item, Field)}
    return fields | {valid(item.header) for item in fields}


def calculate(code: Code, name: str, where: str = "") -> tuple[str, int]:
    """Write what the calculation needs; return code of its result, and its bits."""
    calculation = code.source.calculations[name]
    algorithm = calculation.algorithm
    if algorithm not in WIDTHS:
        raise code.source.refuse(
            f"hash algorithm is not supported (there are {', '.join(WIDTHS)})", algorithm, where
        )
    pieces, bits = _pieces(code, calculation)
    if algorithm == "csum16":
        result = _sum16(code, calculation, pieces, bits)
    elif any(piece.header for piece in pieces) or calculation.with_payload:
        raise code.source.refuse(
            "a hash over headers is not supported; hash copies of their fields", name, where
        )
    elif algorithm in CRCS:
        result = _crc(code, calculation, pieces, bits)
    elif algorithm == "identity":
        result = _identity(code, pieces, bits)
    else:
        result = _xor(code, pieces, WIDTHS[algorithm])
    return result, WIDTHS[algorithm]


def update_checksum(code: Code, checksum: Checksum) -> None:
    code.lines.comment(f"update {checksum.target.header}.{checksum.target.name}")
    mark = Mark(UPDATE, checksum, checksum.where, whole=True)
    with code.marked(mark), code.guarded(_condition(code, checksum)):
        result, width = calculate(code, checksum.calculation)
        shape = code.storage.shape(checksum.target)
        if width > shape.width:
            result = f"({result} & {code.u((1 << shape.width) - 1)})"
        code.set(checksum.target, [result])


def verify_checksum(code: Code, checksum: Checksum, error: Field) -> None:
    """Set `error` where the field is not what the calculation gives."""
    target = checksum.target
    code.lines.comment(f"verify {target.header}.{target.name}")
    mark = Mark(VERIFY, checksum, checksum.where)
    here = code.block(f"if {code.is_set(valid(target.header))}:")
    with code.marked(mark), here, code.guarded(_condition(code, checksum)):
        result, _ = calculate(code, checksum.calculation)
        differs = code.block(f"if {result} != {code.read(target)}:")
        with differs, code.marked(Mark(WRONG, checksum, checksum.where)):
            code.set(error, [code.u(1)])


def _condition(code: Code, checksum: Checksum) -> str | None:
    condition = checksum.condition
    return None if condition is None else code.expressions.condition(condition)


def _pieces(code: Code, calculation: Calculation) -> tuple[list[Piece], int]:
    """Return the input cut into words, and its length in bits when all headers are valid."""
    pieces: list[Piece] = []
    offset = 0
    for item in calculation.inputs:
        header = None
        if isinstance(item, Constants):
            width = item.width
            count = -(-width // 64)
            words = [code.u(item.value >> 64 * i & (1 << 64) - 1) for i in range(count)]
        else:
            width = code.storage.shape(item).width
            words = list(code.storage.read(item))
            if code.storage.shape(item).signed and width < 64:
                words = [f"({words[0]} & {code.u((1 << width) - 1)})"]
            if item.name != VALID and not code.source.headers[item.header].metadata:
                header = item.header
        end = offset + width
        for i, word in reversed(list(enumerate(words))):
            part = min(64, width - 64 * i)
            pieces.append(Piece(word, end - 64 * i - part, part, header))
        offset = end
    return pieces, offset


def _sum16(code: Code, calculation: Calculation, pieces: list[Piece], bits: int) -> str:
    """Ones' complement of the ones' complement sum of 16-bit words (RFC 1071).

    2^16 is 1 modulo 65535, so each piece counts by its place in its word alone, and all are
    added up before folding.
    """
    stretches = [(header, list(own)) for header, own in groupby(pieces, lambda item: item.header)]
    code.add(f"total = {code.u(0)}")
    if calculation.with_payload:
        code.add(f"offset = {code.u(bits)}")
    if all(header is None or _is_whole(own, bits) for header, own in stretches):
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
        code.add("total += sum_from(arena, row, head, parsed, I(offset))")
    return f"(fold16(total) ^ {code.u(0xFFFF)})"


def _is_whole(own: list[Piece], bits: int) -> bool:
    """Whether leaving these pieces out leaves the others where they are in their words."""
    last = own[-1].offset + own[-1].width == bits
    return last or sum(piece.width for piece in own) % 16 == 0


def _sum_of_some(code: Code, pieces: list[Piece]) -> None:
    """Add up the pieces of valid headers, which close ranks: BMv2 skips the others."""
    code.add(f"offset = {code.u(0)}")
    for piece in pieces:
        with code.guarded(code.is_set(valid(piece.header)) if piece.header else None):
            code.add(f"offset += {code.u(piece.width)}")
            code.add(f"total += {_halved(code, piece)} << (({code.u(0)} - offset) & {code.u(15)})")


def _summand(code: Code, piece: Piece) -> str:
    shift = -(piece.offset + piece.width) % 16
    value = _halved(code, piece)
    return f"({value} << {code.u(shift)})" if shift else value


def _halved(code: Code, piece: Piece) -> str:
    """Return code of a number of at most 33 bits, so that there is room to shift and add it."""
    if piece.width <= 32:
        return piece.code
    return f"(({piece.code} & {code.u(0xFFFFFFFF)}) + ({piece.code} >> {code.u(32)}))"


def _bytes(code: Code, pieces: list[Piece], bits: int) -> list[str]:
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


def _crc(code: Code, calculation: Calculation, pieces: list[Piece], bits: int) -> str:
    data = _bytes(code, pieces, bits)
    table = f"{calculation.algorithm}_{len(data)}"
    code.globals[table] = f"crc_tables({calculation.algorithm!r}, {len(data)})"
    terms = [
        f"{table}[{byte} + {code.u(256 * i)}]" if i else f"{table}[{byte}]"
        for i, byte in enumerate(data)
    ]
    code.add(f"crc = U({terms[0]})")
    for term in terms[1:]:
        code.add(f"crc ^= U({term})")
    return "crc"


def _identity(code: Code, pieces: list[Piece], bits: int) -> str:
    data = _bytes(code, pieces, bits)[:8]
    terms = [
        f"({byte} << {code.u(8 * (len(data) - 1 - i))})" if i + 1 < len(data) else byte
        for i, byte in enumerate(data)
    ]
    return f"({' | '.join(terms)})"


def _xor(code: Code, pieces: list[Piece], width: int) -> str:
    """Exclusive or of the input's words of `width` bits."""
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
