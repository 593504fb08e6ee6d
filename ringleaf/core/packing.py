"""How compressed files are told from others, and opened: by their first bytes, with any name."""

from __future__ import annotations

import importlib
import zlib
from pathlib import Path
from typing import Any

UNPACKED = {"gzip": "gzip", "bzip2": "bz2", "xz": "lzma"}
"""The kinds of compression that are taken off where a file is read, and Python's module of each."""

SUFFIXES = (".gz", ".bz2", ".xz")
"""The ends of the names of such files."""

_STARTS = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bzip2",
    b"\xfd7zXZ\0": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\x04\x22\x4d\x18": "lz4",
    b"PK\3\4": "zip",
}
LONGEST_START = max(map(len, _STARTS))


def packing(head: bytes) -> str:
    """Return by what a file is compressed that begins like this; "": by nothing that is known."""
    return next((name for start, name in _STARTS.items() if head.startswith(start)), "")


def without_packing(name: str) -> str:
    """Return a file's name without the ending that says how it is compressed."""
    suffix = Path(name).suffix
    return name.removesuffix(suffix) if suffix.lower() in SUFFIXES else name


def damages(name: str) -> tuple[type[Exception], ...]:
    """Return the errors that mean damage to a file of a kind in `UNPACKED`; OSError may."""
    return (EOFError, OSError, getattr(_module(name), "LZMAError", zlib.error), zlib.error)


def open_unpacked(path: Path, name: str) -> Any:
    """Open a file for reading what it holds, which is of a kind in `UNPACKED`."""
    return _module(name).open(path)


def read_head(path: Path, size: int) -> bytes:
    """Return the first bytes of a file, or of what a compressed one holds, if it can be unpacked.

    Raises:
        OSError: If the file can't be read.
    """
    with path.open("rb") as file:
        head = file.read(size)
    name = packing(head)
    if name in UNPACKED:
        try:
            with open_unpacked(path, name) as unpacked:
                head = unpacked.read(size)
        except damages(name):
            return head  # as it is; who reads all of it says what is wrong
    return head


def _module(name: str) -> Any:
    return importlib.import_module(UNPACKED[name])
