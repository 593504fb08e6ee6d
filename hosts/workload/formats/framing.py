"""Bytes and text of files, and messages, each after its length, as Chakra's tools have them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ringleaf.core.files import NO_TEXT, is_special, kind_of
from ringleaf.core.packing import packing
from ringleaf.core.units import format_count
from ringleaf.core.unpacking import unpack
from ringleaf.errors import ConfigError

MOST_FILE_BYTES = 1 << 30
MOST_LENGTH_BYTES = 5  # of a length, which is below 2^32


def read_frames(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield each message's first byte in the file, and its bytes.

    Raises:
        ConfigError: If the file can't be read, is too long, or ends within a message.
    """
    data = read_bytes(path)
    at = 0
    while at < len(data):
        start, size = _length(path, data, at)
        if start + size > len(data):
            raise ConfigError(
                f"{path}: byte {at}: a message has {format_count(size, 'byte')}, got "
                f"{len(data) - start}; the file is cut off, or is no Chakra trace"
            )
        yield start, data[start : start + size]
        at = start + size


def read_bytes(path: Path) -> bytes:
    """Return a file's bytes; those of a compressed one are unpacked.

    Raises:
        ConfigError: If it can't be read, is damaged, or too long.
    """
    try:
        if is_special(path):
            raise ConfigError(f"{path}: must be a plain file, which can be read twice, got a pipe")
        with path.open("rb") as file:
            data = file.read(MOST_FILE_BYTES + 1)
        if packing(data):
            return bytes(unpack(path, str(path), MOST_FILE_BYTES))
    except OSError as error:
        raise ConfigError(f"{path}: can't read, got {error.strerror}") from error
    if len(data) > MOST_FILE_BYTES:
        raise ConfigError(f"{path}: at most {MOST_FILE_BYTES} bytes, got more")
    return data


def read_text(path: Path) -> str:
    """Return a file's text, in UTF-8, with or without a mark at its begin.

    Raises:
        ConfigError: If it can't be read, is too long, or is no text.
    """
    try:
        return read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        what = kind_of(path)
        if what not in NO_TEXT:
            line = 1 + error.object.count(b"\n", 0, error.start)
            what = f"byte {error.object[error.start]:#x} in line {line}; write it in UTF-8"
        raise ConfigError(f"{path}: must be text, got {what}") from error


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON, in which each name is there once: Python takes the last of two.

    Raises:
        ValueError: If one is there twice.
    """
    entry = dict(pairs)
    if len(entry) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{twice!r} twice, of which one would be lost")
    return entry


def _length(path: Path, data: bytes, at: int) -> tuple[int, int]:
    """Return the first byte of a message, and its length, which is a varint before it."""
    value = 0
    for place in range(MOST_LENGTH_BYTES):
        if at + place == len(data):
            raise ConfigError(f"{path}: byte {at}: must be a message's length, got the file's end")
        byte = data[at + place]
        value |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return at + place + 1, value
    raise ConfigError(
        f"{path}: byte {at}: must be a message's length, got {data[at : at + 5].hex(' ')}; "
        "the file is no Chakra trace"
    )


def frame(message: bytes) -> bytes:
    """Return a message after its length."""
    size, length = len(message), bytearray()
    while size >= 0x80:
        length.append(size & 0x7F | 0x80)
        size >>= 7
    length.append(size)
    return bytes(length) + message
