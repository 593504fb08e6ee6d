"""Files that are written whole or not at all, and errors of disks, which name the file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ringleaf.core.files import is_special


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Have an OSError within name this file, if it names none, as those of open files don't."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = str(path)
        raise


def is_stream(path: Path) -> bool:
    """Return whether a path is a pipe or a device, or like `/dev/stdout` stands for one."""
    return is_special(path) or path.is_relative_to("/dev")


def write_text(path: Path, text: str) -> None:
    """Write a text file completely, or leave the existing one as it is.

    Raises:
        OSError: If it can't be written.
    """
    write_bytes(path, text.encode())


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file of bytes completely, or leave the existing one as it is.

    A stream takes them as they come.

    Raises:
        OSError: If it can't be written.
    """
    if is_stream(path):
        with naming(path):
            path.write_bytes(data)
        return
    part = path.with_name(f".{path.name}.part")
    try:
        part.write_bytes(data)
        part.replace(path)
    except OSError as error:
        with suppress(OSError):
            part.unlink()
        error.filename, error.filename2 = str(path), None
        raise
