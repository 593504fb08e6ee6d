"""Folders that nobody else can write to: what lies in them is executed, or believed.

Numba's cache of machine code is pickles, which run code when they are read.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from ringleaf.core.disk import naming
from ringleaf.errors import ConfigError

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def cache_folder() -> Path:
    """Return the folder where generated modules and machine code are kept between runs.

    What lies there is executed, so it is this user's alone (`private_folder`). For a user without a
    home, or with one that can't be written, it is below the folder for temporary files. One that is
    there, and can only be read, is as good.

    Raises:
        ConfigError: If others could have written to it, or there is no place for it.
    """
    places = []
    for folder in _places():
        with suppress(OSError):
            return private_folder(folder)
        if os.path.isdir(folder):  # `Path.is_dir` fails if it may not look
            return folder
        places.append(str(folder))
    raise ConfigError(
        f"cache: must be a folder that can be written, got {', '.join(places) or 'none'}; set "
        "XDG_CACHE_HOME to a folder of your own"
    )


def _places() -> Iterator[Path]:
    """Yield where the cache may be, the best first."""
    if own := xdg_folder("XDG_CACHE_HOME"):
        yield own
    else:
        with suppress(RuntimeError):  # nobody knows a home
            if os.path.isdir(home := Path.home()):  # none is made
                yield home / ".cache" / "ringleaf"
    with suppress(OSError):
        yield private_folder(Path(tempfile.gettempdir(), f"ringleaf-{os.geteuid()}")) / "cache"


def xdg_folder(variable: str) -> Path | None:
    """Return our folder in the base directory that a variable names, if it names one.

    A relative path is none: "it should consider the path invalid and ignore it" (XDG Base Directory
    Specification, 0.8).
    """
    base = os.environ.get(variable, "")
    return Path(base, "ringleaf") if os.path.isabs(base) else None


def private_folder(path: Path) -> Path:
    """Make a folder that only this user can enter, or see that it is one.

    A folder of this user's that others could read, but not change, is closed to them.

    Raises:
        ConfigError: If others could have written to it: it is somebody else's, a link, or its
            mode says so.
        OSError: If it can't be made.
    """
    if not path.parent.is_dir():
        path.parent.mkdir(parents=True, exist_ok=True)
    for above in path.resolve().parents:
        mode = above.stat().st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            raise _refuse(path, f"everybody can write to {above}", stat.filemode(mode))
    if not os.path.lexists(path):
        with suppress(FileExistsError):  # another process was faster
            path.mkdir(mode=0o700)
            return path
    _close(path)
    return path


def keep_text(path: Path, text: str) -> None:
    """Write a file below `cache_folder` whole; one that has this text already stays untouched."""
    if is_private_file(path) and path.read_bytes() == text.encode():
        return
    keep(path, text.encode())


def keep(path: Path, data: bytes) -> None:
    """Write a file below `cache_folder` whole or not at all, whatever is in its place.

    Raises:
        OSError: If it can't be written.
    """
    make_room(path)
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    try:
        with naming(path), os.fdopen(handle, "wb") as file:
            file.write(data)
        if path.is_dir() and not path.is_symlink():
            remove(path)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def remove(path: Path) -> None:
    """Remove what is in a file's place below `cache_folder`, whatever it is, if possible."""
    with suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def make_room(path: Path) -> None:
    """Make the folder of a file; what is in the place of a folder below the cache is removed."""
    if path.parent.is_dir():
        return
    top = cache_folder()
    for folder in reversed(path.parents):
        if top in folder.parents and not folder.is_dir():
            remove(folder)
    path.parent.mkdir(parents=True, exist_ok=True)


def is_private_file(path: Path) -> bool:
    """Whether this is a plain file of this user's that others can't write to."""
    try:
        return _doubt(path.lstat(), folder=False) is None
    except OSError:
        return False


def is_trusted_folder(path: Path) -> bool:
    """Whether this is a folder of this user's, or root's, that nobody else can write to."""
    try:
        info = path.lstat()
    except OSError:
        return False
    owned = info.st_uid in (0, os.geteuid())
    return stat.S_ISDIR(info.st_mode) and owned and not info.st_mode & _OTHERS_WRITE


def _close(path: Path) -> None:
    """Check a folder that is there, and take away others' right to enter it."""
    info = path.lstat()
    doubt = _doubt(info, folder=True)
    if doubt is not None:
        raise _refuse(path, *doubt)
    if not info.st_mode & _OTHERS:
        return
    for inner, folder in _all_inside(path):
        doubt = _doubt(inner.lstat(), folder=folder)
        if doubt is not None:
            raise _refuse(inner, *doubt)
    path.chmod(0o700)


def _all_inside(path: Path) -> Iterator[tuple[Path, bool]]:
    for root, folders, files in os.walk(path):
        yield from ((Path(root, name), True) for name in folders)
        yield from ((Path(root, name), False) for name in files)


def _doubt(info: os.stat_result, *, folder: bool) -> tuple[str, str] | None:
    """Return why a file or folder is not to be trusted, and what it has; None if it is."""
    shown = stat.filemode(info.st_mode)
    if stat.S_ISLNK(info.st_mode):
        return "it is a link", shown
    if not (stat.S_ISDIR if folder else stat.S_ISREG)(info.st_mode):
        return f"it is no {'folder' if folder else 'plain file'}", shown
    if info.st_uid != os.geteuid():
        return "it belongs to somebody else", f"user {info.st_uid}"
    if info.st_mode & _OTHERS_WRITE:
        return "others could have written to it", shown
    return None


def _refuse(path: Path, why: str, got: str) -> ConfigError:
    return ConfigError(
        f"{path}: can't be trusted, as {why}, got {got}; remove it, or set XDG_CACHE_HOME to a"
        " folder of your own"
    )
