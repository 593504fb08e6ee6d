"""Topology files on the disk: read once, bounded and checked before anything large is loaded."""

from __future__ import annotations

import stat
from functools import lru_cache
from pathlib import Path

from ringleaf.errors import ConfigError
from ringleaf.topologies.files.describe import describe
from ringleaf.topologies.files.description import Description
from ringleaf.topologies.files.format import find_format

MOST_BYTES = 16 << 20


def read_description(name: str) -> Description:
    """Return the network that a file describes.

    Raises:
        ConfigError: If the file can't be read, or is wrong; the message names it and the line.
        TopologyError: If there can be no such network.
    """
    path = Path(name)
    try:
        status = path.stat()
    except (OSError, ValueError) as error:  # the latter of a name with a zero in it
        problem = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(f"topology: can't read, got {name!r}: {problem}") from error
    if not stat.S_ISREG(status.st_mode):
        raise ConfigError(f"topology: must be a file, got {name!r}, which is something else")
    return _read(name, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=8)
def _read(name: str, changed_ns: int, size: int) -> Description:
    """Read a file; it is read again when it has changed."""
    del changed_ns, size
    text = _text(name)
    found = find_format(name, text)
    return describe(found.read(text, f"topology {name}"), name)


def _text(name: str) -> str:
    try:
        with Path(name).open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"topology: can't read, got {name!r}: {error.strerror}") from error
    if len(data) > MOST_BYTES:
        raise ConfigError(f"topology {name}: at most {MOST_BYTES} bytes, got more")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = 1 + data[: error.start].count(b"\n")
        raise ConfigError(f"topology {name} line {line}: must be UTF-8, got another byte") from error
