"""Files whose first line is a digest of what they hold, so that a damaged one is noticed.

The digest is no signature: who can write the file can write its digest. It tells what was kept
from what a disk, a crash or a careless copy has made of it.
"""

from __future__ import annotations

from errno import EMFILE, ENFILE
from hashlib import blake2b
from pathlib import Path

from ringleaf.core.private import is_private_file, keep, remove


def read_sealed(path: Path, about: str) -> bytes | None:
    """Return what a file holds; None: there is none, or it is not what was written.

    A damaged file is removed, if it can be.

    Args:
        path: The file.
        about: What the file is for, as it was written; a file that was meant for another purpose
            counts as damaged.

    Raises:
        OSError: If no more files may be opened.
    """
    try:
        text = path.read_bytes() if is_private_file(path) else b""
    except OSError as error:
        if error.errno in (EMFILE, ENFILE):
            raise  # it is not the file's fault
        return None
    seal, _, data = text.partition(b"\n")
    if seal == _seal(data, about):
        return data
    remove(path)
    return None


def write_sealed(path: Path, data: bytes, about: str) -> None:
    """Write a file below the cache, whole or not at all.

    Raises:
        OSError: If it can't be written.
    """
    keep(path, _seal(data, about) + b"\n" + data)


def _seal(data: bytes, about: str) -> bytes:
    return blake2b(about.encode() + b"\0" + data).hexdigest().encode()
