"""The parts of a program that come before machine code; those of our own programs are kept.

To read the JSON of our largest programs, to write their modules and to check these takes most of a
second, and so much of the generator that a small run should not import it.
"""

from __future__ import annotations

import hashlib
import marshal
import os
import pickle
import re
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from types import CodeType

from ringleaf.core.private import cache_folder
from ringleaf.core.remembered import remembered_bytes
from ringleaf.core.shipped import built_program
from ringleaf.switches.generate.observing import ORDINARY, Variant
from ringleaf.switches.generate.written import Module
from ringleaf.switches.source import ProgramSource

_READER = "ringleaf.switches.json.program"
LONGEST_NAME = 40  # letters in the name of a module's file


@dataclass(frozen=True, slots=True)
class ProgramParts:
    """A program as types, the module that was written for it, and the module's checked code."""

    source: ProgramSource
    module: Module
    code: CodeType
    title: str
    """The name of the module's file, but for letters that files should not have."""


def read_parts(path: Path, variant: Variant = ORDINARY) -> ProgramParts:
    """Read a program of BMv2 JSON.

    Raises:
        ConfigError: If it can't be read, is not BMv2 JSON, or uses unsupported features.
    """
    if variant != ORDINARY or not _is_own(path):
        return _read(path, variant)

    def make() -> bytes:
        parts = _read(path, variant)
        return pickle.dumps((parts.source, parts.module, marshal.dumps(parts.code)))

    source, module, code = pickle.loads(remembered_bytes(f"program-{path.stem}", make))
    return ProgramParts(replace(source, path=path), module, marshal.loads(code), path.stem)


def _is_own(path: Path) -> bool:
    """Whether a program is ours; others change without any source of ours."""
    with suppress(OSError, ValueError):
        return os.path.samefile(path, built_program(path.stem))
    return False


def parse_parts(text: bytes, path: Path, title: str) -> ProgramParts:
    """Read a program of BMv2 JSON that is no file; errors call it `path`.

    Raises:
        ConfigError: As `read_parts`.
    """
    return _make(import_module(_READER).parse_source(text, path), title)


def _read(path: Path, variant: Variant) -> ProgramParts:
    return _make(import_module(_READER).load_source(path), path.stem, variant)


def _make(source: ProgramSource, title: str, variant: Variant = ORDINARY) -> ProgramParts:
    """Write a program's module, and check that it has nothing but what the generator makes."""
    module = import_module("ringleaf.switches.generate.module").generate(source, variant)
    check = import_module("ringleaf.switches.generate.check").compile_checked
    code = check(module.text, str(file_of(module.text, title)), str(source.path))
    return ProgramParts(source, module, code, title)


def file_of(text: str, title: str) -> Path:
    """Return the file of the cache that a module with this text is for, named after its digest."""
    digest = hashlib.sha256(text.encode()).hexdigest()[:24]
    file = f"{re.sub('[^A-Za-z0-9]', '_', title)[:LONGEST_NAME]}.py"
    return cache_folder() / "engine" / digest / file
