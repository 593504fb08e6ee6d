"""The deparser: changed fields go back into the head.

Headers mostly leave in the order and the places in which they came; then only the fields that
the program can have changed are written. Where headers were added, removed or moved, their
bytes are first laid out anew.
"""

from __future__ import annotations

from switches.generate.bits import lanes_call, write_bits
from switches.generate.code import Code
from switches.generate.paths import Paths
from switches.generate.storage import position, valid
from switches.generate.usage import Usage
from switches.source import Field, Header


class DeparserWriter:
    def __init__(self, code: Code, usage: Usage, paths: Paths) -> None:
        self._code = code
        self._usage = usage
        self._stays = paths.in_order and not usage.changes_headers
        self._paths = paths

    def write(self) -> None:
        code = self._code
        headers = [code.source.headers[name] for name in code.source.emitted]
        if not self._stays:
            self._lay_out(headers)
        for header in headers:
            if any(field in self._usage.written_back for field in _fields(header)):
                with code.block(f"if {code.is_set(valid(header.name))}:  # {header.name}"):
                    self._write_header(header)

    def place(self, header: str) -> str:
        """Return code of where in the head a header lies."""
        if not self._stays:
            return f"at_{self._code.source.emitted.index(header)}"
        offset = self._paths.offset(header)
        return f"I({self._code.read(position(header))})" if offset is None else str(offset)

    def _lay_out(self, headers: list[Header]) -> None:
        """See to it that valid headers lie in order, without gaps, before the rest."""
        code = self._code
        code.lines.comment("do the headers lie as they must leave?")
        code.add("out = 0")
        code.add("moved = False")
        for header in headers:
            place = self.place(header.name)
            offset = self._paths.offset(header.name)
            came = f"I({code.read(position(header.name))})" if offset is None else offset
            code.add(f"{place} = {came}")
            with code.block(f"if {code.is_set(valid(header.name))}:"):
                code.add(f"moved |= {place} != out")
                code.add(f"out += {header.size_bytes}")
        with code.block("if moved or out != parsed:"):
            self._move(headers)

    def _move(self, headers: list[Header]) -> None:
        code = self._code
        code.add("scratch = window(arena.bytes, block[SCRATCH_AT], words[HEAD_BYTES])")
        code.add("out = 0")
        for header in headers:
            place, size = self.place(header.name), header.size_bytes
            with code.block(f"if {code.is_set(valid(header.name))}:"):
                code.add(f"copy_bytes(scratch, out, head, {place}, {size})")
                code.add(f"{place} = out")
                code.add(f"out += {size}")
        code.add("row[HEAD_LEN] = move_rest(head, row[HEAD_LEN], parsed, out)")
        code.add("copy_bytes(head, 0, scratch, 0, out)")

    def _write_header(self, header: Header) -> None:
        code = self._code
        where = self.place(header.name)
        in_run = set()
        for run in code.storage.runs_of(header.name):
            fields = _fields(header)[run.first :][: run.count]
            in_run |= set(fields)
            if self._usage.written_back & set(fields):
                start = header.fields[run.first].offset // 8
                code.add(lanes_call("write", run, f"{where} + {start}"))
        for item in header.fields:
            field = Field(header.name, item.name)
            if field in self._usage.written_back and field not in in_run:
                write_bits(code, where, item.offset, item.width, code.storage.read(field))


def _fields(header: Header) -> list[Field]:
    return [Field(header.name, item.name) for item in header.fields]
