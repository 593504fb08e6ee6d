"""Compressed files, read as what they hold, where Python can unpack them, and else refused."""

from __future__ import annotations

from pathlib import Path

from ringleaf.core.packing import LONGEST_START, UNPACKED, damages, open_unpacked, packing
from ringleaf.core.units import format_count
from ringleaf.errors import ConfigError

_PIECE_BYTES = 1 << 20


def unpack(path: Path, where: str, most_bytes: int) -> bytearray:
    """Return the bytes that a compressed file holds, in all of its parts.

    Args:
        path: The file.
        where: How messages begin.
        most_bytes: The bytes that it may hold.

    Raises:
        ConfigError: If it is compressed otherwise, damaged, cut off, or holds more.
        OSError: If it can't be read.
    """
    with path.open("rb") as file:
        name = packing(file.read(LONGEST_START))
    if name not in UNPACKED:
        kinds = ", ".join(UNPACKED)
        raise ConfigError(
            f"{where}: must not be compressed, got {name}; unpack it first, or take one of {kinds}"
        )
    data = bytearray()
    try:
        with open_unpacked(path, name) as file:
            while len(data) <= most_bytes and (piece := file.read(_PIECE_BYTES)):
                data += piece
    except EOFError as error:
        raise ConfigError(
            f"{where}: must be a whole {name} file, got "
            f"{format_count(path.stat().st_size, 'byte')}; it is cut off"
        ) from error
    except damages(name) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the disk's
        raise ConfigError(
            f"{where}: must be compressed by {name}, got {error}; it is damaged"
        ) from error
    if len(data) > most_bytes:
        raise ConfigError(
            f"{where}: at most {format_count(most_bytes, 'byte')} without {name}, got more"
        )
    return data
