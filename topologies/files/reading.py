"""Topology files on the disk: read once, bounded and checked before anything large is loaded."""

from __future__ import annotations

import stat
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from ringleaf.core.inputs import decode
from ringleaf.core.packing import packing, without_packing
from ringleaf.core.unpacking import unpack
from ringleaf.errors import ConfigError
from ringleaf.topologies.files.description import Description
from ringleaf.topologies.files.format import find_format
from ringleaf.topologies.files.rows import FileRow

MOST_BYTES = 16 << 20


def read_description(name: str, reading: Mapping[str, str]) -> Description:
    """Return the network that a file describes.

    Args:
        name: The file.
        reading: Some of `attributes.READING`, in place of the file's own.

    Raises:
        ConfigError: If the file can't be read, or is wrong; the message names it and the line.
        TopologyError: If there can be no such network.
    """
    return _read(name, read_bytes(name), tuple(reading.items()))


@lru_cache(maxsize=8)
def _read(name: str, data: bytes, reading: tuple[tuple[str, str], ...]) -> Description:
    from ringleaf.topologies.files.describe import describe  # only files need these
    from ringleaf.topologies.files.foreign_about import with_own_about

    try:
        text = decode(data)
    except UnicodeDecodeError as error:
        if data.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise ConfigError(
                f"topology {name}: must be UTF-8, got UTF-16; write it anew, with iconv -f UTF-16 "
                "-t UTF-8"
            ) from error
        line = 1 + data[: error.start].count(b"\n")
        raise ConfigError(
            f"topology {name} line {line}: must be UTF-8, got {data[error.start : error.end]!r}"
        ) from error
    form = find_format(without_packing(name), text)
    rows = with_own_about(form.read(text, f"topology {name}"))
    about = FileRow(rows.about.line, {**rows.about.values, **dict(reading)})
    source = ",".join([name, *(f"{key}={value}" for key, value in reading)])
    return describe(replace(rows, about=about), source)


def read_bytes(name: str) -> bytes:
    """Return the bytes of a topology file; those of a compressed one are unpacked.

    Raises:
        ConfigError: If it can't be read, is no plain file, or is too large.
    """
    path = Path(name)
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # reading a pipe might never end
            raise ConfigError(f"topology: must be a plain file, got {name!r}, which is none")
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
        if packing(data):
            return bytes(unpack(path, f"topology {name}", MOST_BYTES))
    except (OSError, ValueError) as error:  # the latter of a name with a zero in it
        problem = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(f"topology: can't read, got {name!r}: {problem}") from error
    if len(data) > MOST_BYTES:
        raise ConfigError(f"topology {name}: at most {MOST_BYTES} bytes, got more")
    return data
