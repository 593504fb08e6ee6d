"""The deparser: changed fields go back into the head.

Headers mostly leave in the order and the places in which they came; then only the fields that
the program can have changed are written. Where headers were added, removed or moved, their
bytes are first laid out anew.
"""

from __future__ import annotations

from ringleaf.switches.generate.bits import lanes_call, write_bits
from ringleaf.switches.generate.code import FunctionCode
from ringleaf.switches.generate.extract import placed_fields
from ringleaf.switches.generate.jumps import deparser_body
from ringleaf.switches.generate.labels import HEADER
from ringleaf.switches.generate.parser_primitives import write_body
from ringleaf.switches.generate.paths import Paths
from ringleaf.switches.generate.storage import position, valid
from ringleaf.switches.generate.usage import FieldUsage
from ringleaf.switches.source import FieldSource, HeaderField, HeaderSource


class DeparserWriter:
    """Writes the deparser into a handler: headers go in order, and changed fields go back."""

    def __init__(self, code: FunctionCode, usage: FieldUsage, paths: Paths) -> None:
        self._code = code
        self._usage = usage
        self._stays = paths.in_order and not usage.changes_headers
        self._paths = paths
        self._headers = list(enumerate(code.source.headers[name] for name in code.source.emitted))

    def write(self) -> None:
        """Write the code of the whole deparser."""
        code = self._code
        write_body(code, deparser_body(code.source))
        if not self._stays:
            self._lay_out()
        for number, header in self._headers:
            if any(field in self._usage.written_back for field in _fields(header)):
                label = code.label(HEADER, header.name)
                with code.block(f"if {code.is_set(valid(header.name))}:  # {label}"):
                    self._write_header(header, self._place(number, header))

    def _place(self, number: int, header: HeaderSource) -> str:
        """Return code of the offset in the head of the header that is emitted as `number`."""
        return self._came(header) if self._stays else f"at_{number}"

    def _came(self, header: HeaderSource) -> str:
        """Return code of the offset at which the header was parsed."""
        offset = self._paths.offset(header.name)
        if offset is None:
            return f"I({self._code.read(position(header.name))})"
        return str(offset)

    def _lay_out(self) -> None:
        """Write code that puts valid headers in order, without gaps, before the rest."""
        code = self._code
        code.lines.comment("do the headers lie as they must leave?")
        code.add("out = 0")
        code.add("moved = False")
        for number, header in self._headers:
            place = self._place(number, header)
            code.add(f"{place} = {self._came(header)}")
            with code.block(f"if {code.is_set(valid(header.name))}:"):
                code.add(f"moved |= {place} != out")
                code.add(f"out += {code.size_of(header)}")
        with code.block("if moved or out != parsed:"):
            self._move()

    def _move(self) -> None:
        code = self._code
        # Headers may move onto each other's old places, so they are put together outside of the
        # head.
        code.add("scratch = window(arena.bytes, block[SCRATCH_AT], words[HEAD_BYTES])")
        code.add("out = 0")
        for number, header in self._headers:
            place, size = self._place(number, header), code.size_of(header)
            with code.block(f"if {code.is_set(valid(header.name))}:"):
                code.add(f"copy_bytes(scratch, out, head, {place}, {size})")
                code.add(f"{place} = out")
                code.add(f"out += {size}")
        # The rest moves before the headers come back, which may now reach over its old place.
        code.add("row[HEAD_LEN] = move_rest(head, row[HEAD_LEN], parsed, out)")
        code.add("copy_bytes(head, 0, scratch, 0, out)")

    def _write_header(self, header: HeaderSource, where: str) -> None:
        code = self._code
        in_run = set()
        for run in code.storage.runs_of(header.name):
            fields = _fields(header)[run.first :][: run.count]
            in_run |= set(fields)
            if self._usage.written_back & set(fields):
                start = header.fields[run.first].offset // 8
                code.add(lanes_call("write", run, f"{where} + {start}"))
        for item, place in placed_fields(code, header, where):
            field = FieldSource(header.name, item.name)
            if field in self._usage.written_back and field not in in_run:
                self._write_field(field, item, place)

    def _write_field(self, field: FieldSource, item: HeaderField, place: str) -> None:
        code = self._code
        varbit = code.storage.varbit(field)
        if varbit is None:
            write_bits(code, place, item.offset, item.width, code.storage.read(field))
            return
        whole, shift = divmod(item.offset, 8)
        count = f"I({code.read(varbit.length)} >> {code.u(3)})"
        code.add(f"write_varbits(lanes, {varbit.start}, head, {place} + {whole}, {shift}, {count})")


def _fields(header: HeaderSource) -> list[FieldSource]:
    return [FieldSource(header.name, item.name) for item in header.fields]
