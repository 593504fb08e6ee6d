"""Code that takes headers out of a packet's head."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ringleaf.switches.generate.bits import lanes_call, read_field
from ringleaf.switches.generate.code import FunctionCode
from ringleaf.switches.generate.doubts import note_decision
from ringleaf.switches.generate.extraction import Extraction
from ringleaf.switches.generate.headers import invalidate_others
from ringleaf.switches.generate.labels import HEADER
from ringleaf.switches.generate.marks import EXTRACT, TOO_SHORT, LineMark
from ringleaf.switches.generate.paths import Paths
from ringleaf.switches.generate.storage import position, valid, varbits
from ringleaf.switches.generate.usage import PARSER_ERROR, FieldUsage
from ringleaf.switches.source import FieldSource, HeaderField, HeaderSource


def fail(code: FunctionCode, error: str, mark: LineMark | None = None) -> None:
    """Write code that ends the parser with one of BMv2's own errors."""
    with code.marked(mark or LineMark(TOO_SHORT, where=error)):
        code.set(PARSER_ERROR, [code.u(code.source.errors[error])])


class ExtractWriter:
    """Writes code of extractions into a handler's parser, for the fields that the program uses."""

    def __init__(self, code: FunctionCode, usage: FieldUsage, paths: Paths) -> None:
        self._code = code
        self._usage = usage
        self._paths = paths
        self._moving = paths.moving()

    def header(self, name: str, where: str) -> None:
        """Write code that extracts a header at byte `where` of the head, which has all of it."""
        code = self._code
        header = code.source.headers[name]
        code.lines.comment(f"extract {code.label(HEADER, name)}")
        in_run = set()
        for run in code.storage.runs_of(name):
            fields = [
                FieldSource(name, item.name) for item in header.fields[run.first :][: run.count]
            ]
            in_run |= set(fields)
            if self._usage.extracted & set(fields):
                start = header.fields[run.first].offset // 8
                code.add(lanes_call("read", run, f"{where} + {start}"))
        for item, place in placed_fields(code, header, where):
            field = FieldSource(name, item.name)
            if field in self._usage.extracted and field not in in_run:
                self._field(field, item, place)
        code.set(valid(name), [code.u(1)])
        invalidate_others(code, name)
        if name in self._moving:
            code.set(position(name), [f"U({where})"])

    def _field(self, field: FieldSource, item: HeaderField, place: str) -> None:
        code = self._code
        varbit = code.storage.varbit(field)
        if varbit is not None:
            whole, shift = divmod(item.offset, 8)
            count = f"I({code.read(varbit.length)} >> {code.u(3)})"
            where = f"{place} + {whole}"
            code.add(f"read_varbits(lanes, {varbit.start}, head, {where}, {shift}, {count})")
            return
        code.set(field, read_field(code, place, item))

    def take(self, extraction: Extraction, known: set[int] | None, where: str, line: str) -> None:
        """Extract into a header, or into the next element of a stack that is not full.

        `known` are the elements that this can be.
        """
        code = self._code
        if extraction.stack is None:
            self._one(extraction, 0, where, line)
            return
        count = code.read(extraction.count)
        elements = sorted(known) if known else range(len(extraction.headers))
        if len(elements) == 1:
            self._one(extraction, elements[0], where, line)
        else:
            keyword = "if"
            for number in elements:
                with code.block(f"{keyword} {count} == {code.u(number)}:"):
                    self._one(extraction, number, where, line)
                keyword = "elif"
        code.set(extraction.count, [f"({count} + {code.u(1)})"])

    def _one(self, extraction: Extraction, number: int, where: str, line: str) -> None:
        name = extraction.headers[number]
        with self._code.marked(LineMark(EXTRACT, self._code.source.headers[name], line)):
            if extraction.bits is not None:
                self._code.set(varbits(name), ["bits"])
            self.header(name, where)

    @contextmanager
    def checked_length(self, extraction: Extraction, at: str) -> Iterator[None]:
        """Write BMv2's checks before it extracts a varbit field of `bits`; go on inside them."""
        code = self._code
        header = code.source.headers[extraction.headers[0]]
        assert extraction.bits is not None
        note_decision(code, extraction.bits)
        code.add(f"bits = {code.expressions.fitted(extraction.bits, 32, False)[0]}")
        # BMv2 takes what does not fit an int for the largest one, which is no whole byte.
        odd = f"bits & {code.u(7)} != {code.u(0)} or bits > {code.u(0x7FFFFFFF)}"
        with code.block(f"if {odd}:"):
            fail(code, "ParserInvalidArgument")
        with code.block("else:"):
            # Bytes left by an earlier extraction count, too (`Header::get_nbytes_packet`).
            already = code.size_of(header) if extraction.stack is None else header.fixed_bytes
            code.add(f"need = {already} + I(bits >> {code.u(3)})")
            pull_up_to(code, f"{at} + need")
            with code.block(f"if have < {at} + need:"):
                fail(code, "PacketTooShort", LineMark(TOO_SHORT))
            with code.block(f"elif need > {header.size_bytes}:"):
                fail(code, "HeaderTooShort")
            with code.block("else:"):
                yield

    def mark(self, extraction: Extraction, where: str) -> LineMark:
        """Return the mark of an extraction's lines: its first header, and its source line."""
        return LineMark(EXTRACT, self._code.source.headers[extraction.headers[0]], where)


def pull_up_to(code: FunctionCode, end: str) -> None:
    """Write code that pulls in `end` bytes of the packet, or as many as the head has room for."""
    with code.block(f"if have < {end}:"):
        code.add(f"have = pull(arena, row, head, min({end}, head.size))")


def placed_fields(
    code: FunctionCode, header: HeaderSource, where: str
) -> list[tuple[HeaderField, str]]:
    """Return a header's fields, each with code of the byte that its offset counts from."""
    fields = []
    place = where
    for item in header.fields:
        fields.append((item, place))
        if item.varbit:
            place = f"{where} + I({code.read(varbits(header.name))} >> {code.u(3)})"
    return fields
