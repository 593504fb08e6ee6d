"""Messages between ranks and fabric: JSON lists in frames, over a Unix socket.

A frame is its length, 4 bytes, and the text. Tensors do not travel so: they lie in shared memory,
in files of a folder that only this user can enter, `RANK-NUMBER`, which both sides map.

From a rank: `hello rank ranks`, `join group members`, `call number group time clock buffer call`,
`wait awaited watched clock until soft quiet`, `note kind ...`, `alive`, `end clock`.
To a rank: `welcome settings`, `done number now source`, `go clock`, `abort message`.
"""

from __future__ import annotations

import json
import mmap
import os
import socket
import struct
from pathlib import Path
from typing import Any

import numpy as np

from ringleaf.core.tensors import Array
from ringleaf.errors import ProtocolError

HELLO, JOIN, CALL, WAIT, NOTE, ALIVE, END = "hello", "join", "call", "wait", "note", "alive", "end"
WELCOME, DONE, GO, ABORT = "welcome", "done", "go", "abort"

ITERATION, SPANS, TIMED = "iteration", "spans", "timed"
"""The kinds of notes: the end of an iteration, stretches of a rank's time, and the path or class by
which a file of times has one for a module that was called."""

FORWARD, BACKWARD, WAITED = "forward", "backward", "wait"
"""The kinds of stretches: a layer's passes, and waits for calls."""

SOCKET = "fabric"
"""The name of the socket in the folder."""

FOLDER = "RINGLEAF_FABRIC"
"""The environment variable with the fabric's folder; without it, rank 0 starts a fabric."""

MOST_BYTES = 16 << 20
"""The longest frame."""

_LENGTH = struct.Struct("!I")

Message = list[Any]


def pack(message: Message) -> bytes:
    """Return a message as a frame."""
    text = json.dumps(message, separators=(",", ":")).encode()
    return _LENGTH.pack(len(text)) + text


class Unpacker:
    """Takes bytes as they come, and gives messages."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def feed(self, data: bytes) -> list[Message]:
        """Take bytes; return the messages that are complete.

        Raises:
            ProtocolError: If a frame is too long, or no message.
        """
        self._bytes += data
        messages = []
        while len(self._bytes) >= _LENGTH.size:
            [size] = _LENGTH.unpack_from(self._bytes)
            if size > MOST_BYTES:
                raise ProtocolError(f"frame: must have {MOST_BYTES} bytes at most, got {size}")
            if len(self._bytes) < _LENGTH.size + size:
                break
            text = bytes(self._bytes[_LENGTH.size : _LENGTH.size + size])
            del self._bytes[: _LENGTH.size + size]
            messages.append(_read(text))
        return messages


def _read(text: bytes) -> Message:
    try:
        message = json.loads(text)
    except ValueError as error:
        raise ProtocolError(f"frame: must be JSON, got {text[:80]!r}") from error
    if not isinstance(message, list) or not message or not isinstance(message[0], str):
        raise ProtocolError(f"frame: must be a list that begins with a name, got {text[:80]!r}")
    return message


def connect(folder: Path) -> socket.socket:
    """Return a connection to the fabric whose socket is in a folder.

    Raises:
        OSError: If there is none.
    """
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect(str(folder / SOCKET))
    return connection


class SharedBuffers:
    """Shared memory: files of a folder, mapped.

    Args:
        folder: The folder.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[tuple[int, int], Array] = {}

    def make(self, rank: int, number: int, size_bytes: int) -> Array:
        """Make a buffer of a rank; return its bytes."""
        path = self._folder / f"{rank}-{number}"
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.ftruncate(handle, size_bytes)
        finally:
            os.close(handle)
        return self.buffer(rank, number)

    def buffer(self, rank: int, number: int) -> Array:
        """Return the bytes of a buffer that its rank has made."""
        if (rank, number) not in self._known:
            handle = os.open(self._folder / f"{rank:d}-{number:d}", os.O_RDWR)
            try:
                mapped = mmap.mmap(handle, 0)
            finally:
                os.close(handle)
            self._known[rank, number] = np.frombuffer(mapped, np.uint8)
        return self._known[rank, number]
