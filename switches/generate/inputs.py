"""The input of a calculation: fields and constants as one string of bits.

Fields of headers that are not valid are left out, and the others close ranks (BMv2's `BufBuilder`).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

from ringleaf.switches.generate.code import FunctionCode
from ringleaf.switches.generate.storage import TRUNCATE_LEN, Varbit, valid
from ringleaf.switches.source import Calculation, ConstantInput, FieldSource, ProgramSource


@dataclass(frozen=True, slots=True)
class InputPiece:
    """A stretch of at most 64 bits of the input, or a varbit field, which may be empty."""

    code: str
    offset: int  # bits from the start of the input, if all headers are valid
    width: int  # bits
    header: str | None  # the header that must be valid for the piece to count
    varbit: Varbit | None = None


def inputs_of(calculation: Calculation) -> set[FieldSource]:
    """Return the fields that a calculation reads, validity of their headers included."""
    fields = {item for item in calculation.inputs if isinstance(item, FieldSource)}
    return fields | {valid(item.header) for item in fields}


def longest_input(source: ProgramSource) -> int:
    """Return the bytes of the longest input of any calculation, without a payload."""
    return max((-(-_bits(source, item) // 8) for item in source.calculations.values()), default=0)


def _bits(source: ProgramSource, calculation: Calculation) -> int:
    return sum(
        item.width if isinstance(item, ConstantInput) else source.field_of(item).width
        for item in calculation.inputs
    )


def pieces_of(code: FunctionCode, calculation: Calculation) -> tuple[list[InputPiece], int]:
    """Return the input cut into words, and its length in bits when all headers are valid."""
    pieces: list[InputPiece] = []
    offset = 0
    for item in calculation.inputs:
        own = _of_constants(code, item, offset)
        if isinstance(item, FieldSource):
            own = _of_field(code, item, offset)
        pieces += own
        offset += sum(piece.width for piece in own)
    return pieces, offset


def _of_constants(
    code: FunctionCode, item: FieldSource | ConstantInput, offset: int
) -> list[InputPiece]:
    if isinstance(item, FieldSource):
        return []
    count = -(-item.width // 64)
    words = [code.u(item.value >> 64 * i & (1 << 64) - 1) for i in range(count)]
    return _cut(words, offset, item.width, None)


def _of_field(code: FunctionCode, field: FieldSource, offset: int) -> list[InputPiece]:
    shape = code.storage.shape(field)
    header = field.header if code.source.may_be_missing(field) else None
    varbit = code.storage.varbit(field)
    if varbit is not None:
        return [InputPiece(code.read(varbit.length), offset, 8 * varbit.longest, header, varbit)]
    return _cut(code.bits_of(field), offset, shape.width, header)


def _cut(words: list[str], offset: int, width: int, header: str | None) -> list[InputPiece]:
    pieces = []
    for i, word in reversed(list(enumerate(words))):
        part = min(64, width - 64 * i)
        pieces.append(InputPiece(word, offset + width - 64 * i - part, part, header))
    return pieces


def gather(code: FunctionCode, calculation: Calculation, pieces: list[InputPiece]) -> str:
    """Write code that puts the input's bits together; return code of the whole `Input`."""
    size = longest_input(code.source)
    code.add(f"gathered = window(arena.bytes, block[SCRATCH_AT], {size})")
    code.add("bits = 0")
    for header, own in groupby(pieces, lambda piece: piece.header):
        with code.guarded(code.is_set(valid(header)) if header else None):
            for piece in own:
                code.add(f"bits = {_put(code, piece)}")
    payload = rest(code) if calculation.with_payload else "-1, -1"
    return f"input_of(arena, row, head, gathered, bits, {payload})"


def rest(code: FunctionCode) -> str:
    """Return code of the head's byte after those that were parsed, and of the bytes that count.

    BMv2 takes no more than `truncate` leaves (`get_data_size`); -1 stands for all.
    """
    cuts = any(primitive.op == "truncate" for primitive in code.source.primitives())
    return f"parsed, I({code.read(TRUNCATE_LEN)}) - 1" if cuts else "parsed, -1"


def _put(code: FunctionCode, piece: InputPiece) -> str:
    if piece.varbit is None:
        return f"put_bits(gathered, bits, {piece.code}, {piece.width})"
    count = f"I({piece.code} >> {code.u(3)})"
    return f"put_varbits(gathered, bits, lanes, {piece.varbit.start}, {count})"
