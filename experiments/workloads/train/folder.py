"""The folders of fabrics: in memory, each for one run, and removed by the next if it was killed.

Whoever uses a folder holds a shared lock of it (flock), which the kernel ends with the process. A
folder of this user's that nobody holds is what a killed run has left.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ringleaf.core.private import is_trusted_folder

PREFIX = "ringleaf-train-"
MEMORY = Path("/dev/shm")


def above() -> Path:
    """Return the folder of all these folders: in memory, if there is such a place."""
    return MEMORY if MEMORY.is_dir() else Path(tempfile.gettempdir())


@contextmanager
def fabric_folder() -> Iterator[Path]:
    """Yield a new folder that only this user can enter, once those of killed runs are removed."""
    clean_stale()
    folder, descriptor = make_held()
    with _removed_at_end(folder, descriptor):
        yield folder


@contextmanager
def borrowed(folder: Path) -> Iterator[Path]:
    """Yield the folder of somebody who leaves it to this process."""
    with _removed_at_end(folder, _hold(folder)):
        yield folder


def make_held() -> tuple[Path, int]:
    """Make a folder; return it, and the open file by which this process holds it."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=above()))
        with suppress(FileNotFoundError):  # another process took it for one of a killed run
            return folder, _hold(folder)


def clean_stale() -> list[Path]:
    """Remove the folders that killed runs of this user have left; return them."""
    folders = find_stale()
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
    return folders


def find_stale() -> list[Path]:
    """Return the folders that killed runs of this user have left."""
    return [each for each in above().glob(f"{PREFIX}*") if _is_stale(each)]


def _is_stale(folder: Path) -> bool:
    if not is_trusted_folder(folder) or folder.lstat().st_uid != os.geteuid():
        return False
    try:
        file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    else:
        return True
    finally:
        os.close(file)


def _hold(folder: Path) -> int:
    """Lock a folder; return the open file.

    Raises:
        FileNotFoundError: If it has been removed meanwhile.
    """
    file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        with suppress(BlockingIOError):  # who looks whether it is stale is about to remove it
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(file), folder.lstat()):
                return file
        raise FileNotFoundError(str(folder))
    except BaseException:
        os.close(file)
        raise


@contextmanager
def _removed_at_end(folder: Path, descriptor: int) -> Iterator[None]:
    try:
        yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(descriptor)
