"""The lock of a run directory: one process at a time writes into it.

It is the kernel's lock (flock) on a file, which says who holds it. The kernel ends it with the
process, however that ends, so a file that is left behind locks nothing.
"""

from __future__ import annotations

import errno
import fcntl
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from ringleaf.errors import ConfigError

FILE = ".ringleaf.lock"

_NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)
_MOST_BYTES = 200  # of what a holder says


class Lock:
    """The lock, which is held until it is released.

    Args:
        folder: The run directory.
        emit: Called with a message if its disk has no locks, as some network file systems have
            none; then nothing is locked.

    Raises:
        ConfigError: If another process, or another run of this one, holds it.
        OSError: If the file can't be made.
    """

    def __init__(self, folder: Path, emit: Callable[[str], object]) -> None:
        self._path = folder / FILE
        self._file = self._open()
        try:
            while not self._is_taken(folder):
                os.close(self._file)
                self._file = self._open()
        except OSError as error:
            self._close()
            if error.errno not in _NO_LOCKS:
                raise
            emit(f"# out: no locks on its disk ({error.strerror}); start no other run there")
        except ConfigError:
            self._close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def _open(self) -> int:
        return os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)

    def _is_taken(self, folder: Path) -> bool:
        """Lock the file; return whether its last holder has left it in its place."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise _in_use(folder, self._file) from None
        if not _is_at(self._file, self._path):
            return False
        with suppress(OSError):  # a full disk: the lock holds without a name
            os.ftruncate(self._file, 0)
            since = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
            holder = f"process {os.getpid()} on {socket.gethostname()}, since {since}\n"
            os.pwrite(self._file, holder.encode(), 0)
        return True

    def release(self) -> None:
        """Release the lock and remove the file."""
        if self._file < 0:
            return
        with suppress(OSError):
            if _is_at(self._file, self._path):  # before unlocking, or it may be another's
                self._path.unlink()
            fcntl.flock(self._file, fcntl.LOCK_UN)  # for forks, too, which have it open
        self._close()

    def _close(self) -> None:
        os.close(self._file)
        self._file = -1


def check_free(folder: Path) -> None:
    """Check that nobody writes into a run directory.

    Raises:
        ConfigError: If somebody does.
    """
    try:
        file = os.open(folder / FILE, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        raise _in_use(folder, file) from None
    except OSError:
        return
    finally:
        os.close(file)


def _in_use(folder: Path, file: int) -> ConfigError:
    try:
        text = os.pread(file, _MOST_BYTES, 0).decode("ascii", "replace")
    except OSError:
        text = ""
    holder = "".join(filter(str.isprintable, text)) or "a process that has just started"
    return ConfigError(
        f"out: another run is writing there, got {str(folder)!r}, held by {holder}; "
        "wait for its end, or name another folder"
    )


def _is_at(file: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file), path.stat())
    except OSError:
        return False
