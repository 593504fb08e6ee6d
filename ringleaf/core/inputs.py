"""Files that users name, read whole: pipes without a writer and endless files are refused."""

from __future__ import annotations

import errno
import os
import re
import stat
from pathlib import Path

from ringleaf.core.units import format_count
from ringleaf.errors import ConfigError

_DECLARED = re.compile(
    rb"""\s*<\?xml\b[^>]*\bencoding\s*=\s*["']"""
    rb"""(iso-8859-(?:[1-9]|1[013-6])|windows-125[0-8]|us-ascii)["']""",
    re.IGNORECASE,
)
"""XML that says to be in an encoding of a byte a letter, in which markup is ASCII."""


def decode(data: bytes) -> str:
    """Return a file's text: in UTF-8, with or without its mark, or what XML says of itself.

    Raises:
        UnicodeDecodeError: If it is in neither.
    """
    declared = _DECLARED.match(data)
    return data.decode(declared[1].decode() if declared else "utf-8-sig")


def read_input(path: Path, most_bytes: int, where: str = "") -> bytes:
    """Return the bytes of a file that a user names; errors call it `where`, or by its name.

    Of a pipe, what comes out of it while it has a writer: one without is not waited for.

    Raises:
        ConfigError: If it has more bytes.
        OSError: If it can't be read, or is a pipe that nobody writes to.
        ValueError: If its name has a zero in it.
    """
    with open(path, "rb", opener=_open_at_once) as file:
        os.set_blocking(file.fileno(), True)  # a writer that is there may take its time
        data = file.read(most_bytes + 1)
        if len(data) > most_bytes:
            limit = format_count(most_bytes, "byte")
            raise ConfigError(f"{where or path}: must have at most {limit}, got more")
        if not data and stat.S_ISFIFO(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.ENXIO, "a pipe that nobody writes to", str(path))
    return data


FileState = tuple[int, ...]


def file_state(path: str | Path) -> FileState:
    """Return numbers of a file that are others once it has changed; () if it is not there.

    Whoever keeps what was read keeps it by them, as files are edited while a process lives. Those
    of a pipe stay the same: it can be read once only.
    """
    try:
        about = os.stat(path)
    except (OSError, ValueError):  # the latter of a name with a zero in it
        return ()
    place = about.st_dev, about.st_ino
    if not stat.S_ISREG(about.st_mode):
        return place
    return (*place, about.st_size, about.st_mtime_ns, about.st_ctime_ns)


def _open_at_once(name: str, flags: int) -> int:
    return os.open(name, flags | os.O_NONBLOCK)
