"""A P4 program, compiled: BMv2 JSON in, two handlers out."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property, wraps
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import numpy as np

from ringleaf.core import compiled
from ringleaf.core.arena import Arena
from ringleaf.core.private import keep_text
from ringleaf.core.shipped import P4INFO_SUFFIX
from ringleaf.switches.generate.observing import ORDINARY, Variant
from ringleaf.switches.p4runtime.derived import derive_p4info
from ringleaf.switches.p4runtime.finsy_entities import Encoder, read_p4info
from ringleaf.switches.p4runtime.schema import Schema
from ringleaf.switches.p4runtime.table_rows import RowReader
from ringleaf.switches.parts import ProgramParts, file_of, parse_parts, read_parts

Handler = Callable[[Arena, int, int, int], int]

PIPELINE = "pipeline"
"""The title of code that P4Runtime has brought: equal code is compiled once for all devices."""

_COMPILING = threading.Lock()


class Program:
    """One program; any number of switches run it."""

    def __init__(self, parts: ProgramParts, p4info: Path | None, message: Any = None) -> None:
        self.parts = parts
        self.source = parts.source
        self.module = parts.module
        self._p4info = p4info
        self._message = message
        self._is_prepared = False

    @cached_property
    def registers(self) -> dict[str, str]:
        """The names of all registers, by their last parts; of equal ones, the first."""
        return {name.rpartition(".")[2]: name for name in reversed(self.source.registers)}

    @classmethod
    def load(
        cls,
        path: str | Path,
        p4info: str | Path | None = None,
        variant: Variant = ORDINARY,
    ) -> Program:
        """Read a program; it is compiled when its handlers are first asked for.

        Args:
            path: BMv2 JSON.
            p4info: P4Info as text; by default the file beside the JSON with p4c's suffix, or
                what the JSON says.
            variant: Additions to the generated code, for tests and fuzzing.

        Raises:
            ConfigError: If the JSON is not BMv2's, or the program uses unsupported features.
        """
        path = Path(path)
        beside = path.with_name(path.stem + P4INFO_SUFFIX)
        parts = read_parts(path, variant)
        return cls(parts, Path(p4info) if p4info else beside if beside.exists() else None)

    @classmethod
    def parse(cls, text: bytes, p4info: Any, name: str) -> Program:
        """Return a program as P4Runtime brings it.

        Args:
            text: BMv2 JSON.
            p4info: p4.config.v1.P4Info.
            name: Its name in errors.

        Raises:
            ConfigError: As above, or if P4Info and JSON are not of one program.
        """
        program = cls(parse_parts(text, Path(name), PIPELINE), Path(name), p4info)
        program.schema.check()
        return program

    @property
    def name(self) -> str:
        """Return the file's name without its extension."""
        return self.source.path.stem

    @property
    def field_count(self) -> int:
        """Return the words of `arena.fields` that a packet's header vector takes."""
        return self.module.field_count

    @property
    def lane_count(self) -> int:
        """Return the lanes that a packet's header vector takes."""
        return self.module.lane_count

    @property
    def head_bytes(self) -> int:
        """Return the bytes of a packet's head that the program needs in the pool."""
        return self.module.head_bytes

    @property
    def is_compiled(self) -> bool:
        """Whether its handlers need not be compiled, or loaded, any more."""
        return self._is_prepared

    def declare(self) -> None:
        """Have the handlers compiled together with all else that is to be (`compiled.prepare`)."""
        with _COMPILING:
            assert self._handlers

    def prepare(self) -> None:
        """Compile the handlers, if they are not; several threads may call this at once."""
        self.declare()
        compiled.prepare()
        self._is_prepared = True

    @property
    def ingress(self) -> Handler:
        """`handler(arena, at, packet, now_ps)`: parse, verify checksums, run ingress."""
        return self._handlers[0]

    @property
    def egress(self) -> Handler:
        """`handler(...)`: run egress, update checksums, deparse; returns 1, or 0 to drop."""
        return self._handlers[1]

    @cached_property
    def p4info(self) -> Any:
        """Its p4.config.v1.P4Info; without a file, what the JSON says.

        Raises:
            ConfigError: If the file is none.
        """
        if self._message is not None:
            return self._message
        if self._p4info is None:
            return derive_p4info(self.source)
        return read_p4info(self._p4info)

    @property
    def _p4info_name(self) -> str:
        return str(self._p4info or self.source.path)

    @cached_property
    def schema(self) -> Schema:
        """Return the program's objects by P4Info's ids."""
        return Schema(self.p4info, self.source, self.module.shapes, self._p4info_name)

    @cached_property
    def encoder(self) -> Encoder:
        """Return the encoder of entities, which are made of finsy's objects."""
        return Encoder(self.p4info, self._p4info_name)

    @cached_property
    def row_reader(self) -> RowReader:
        """Return the reader of table entries in bulk."""
        return RowReader(self.schema)

    @cached_property
    def _handlers(self) -> tuple[Handler, Handler]:
        path = file_of(self.module.text, self.parts.title)
        with suppress(OSError):  # it is there for people and debuggers, and never executed
            keep_text(path, self.module.text)
        module = _execute(self.parts.code, path)
        if compiled.UNCOMPILED:
            return _quiet(module.ingress), _quiet(module.egress)
        return module.ingress, module.egress


def _execute(code: CodeType, path: Path) -> ModuleType:
    """Return the module with this code, as if it had been read from `path`."""
    name = f"ringleaf_engine_{path.parent.name}"
    if name not in sys.modules:
        module = ModuleType(name)
        module.__file__ = str(path)
        sys.modules[name] = module  # Numba finds a function's module by name
        try:
            exec(code, module.__dict__)
        except BaseException:  # an interruption leaves no half of a module for the next one
            del sys.modules[name]
            raise
    return sys.modules[name]


def _quiet(handler: Handler) -> Handler:
    """Return an uncompiled handler in which numbers overflow without a warning, as P4's do."""

    @wraps(handler)
    def run(arena: Arena, at: int, packet: int, now_ps: int) -> int:
        with np.errstate(over="ignore"):
            return handler(arena, at, packet, now_ps)

    return run
