"""Run directories: check and write them, remove an earlier run's files, survive a full disk.

`files.txt` lists the files that a run has written, so that the next one can remove them, and
nothing else.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path, PurePosixPath

from ringleaf.errors import BackendError, ConfigError

FILES = "files.txt"
REPORT = "report.html"
LEAST_ROOM_BYTES = 1 << 20
"""Free space below this counts as a full disk: figures take more."""


def check_out(path: Path) -> None:
    """Check that a run directory can be made and written, without making it.

    Raises:
        ConfigError: If it can't; the message says why.
    """
    nearest = path
    while not os.path.lexists(nearest) and nearest != nearest.parent:
        nearest = nearest.parent
    if not nearest.is_dir():
        is_file = "a file" if nearest.is_file() else "no folder"
        raise ConfigError(
            f"out: must be a folder, got {str(path)!r}, and {nearest} is {is_file}; name another"
        )
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise ConfigError(
            f"out: can't write, got {str(path)!r}, as {nearest} is read-only; name another"
        )
    room = os.statvfs(nearest)
    if room.f_blocks and room.f_bavail * room.f_frsize < LEAST_ROOM_BYTES:
        raise ConfigError(
            f"out: no room on its disk, got {str(path)!r}; free some, or name another"
        )


def check_written(path: Path) -> None:
    """Check that a folder has been written by a run.

    Raises:
        ConfigError: If it has no summary.
    """
    if not (path / "summary.json").is_file():
        raise ConfigError(
            f"run directory: no summary.json in it, got {str(path)!r}; "
            "name a folder that a run has written"
        )


def write_text(path: Path, text: str) -> None:
    """Write a text file completely, or leave the existing one as it is."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file of bytes completely, or leave the existing one as it is."""
    part = path.with_name(f".{path.name}.part")
    try:
        part.write_bytes(data)
        part.replace(path)
    except OSError:
        with suppress(OSError):
            part.unlink()
        raise


class RunFolder:
    """A run directory that is being written. A full disk does not end the run.

    Args:
        path: The folder, made if it is missing; files that an earlier run left are removed.
        emit: Called, once, with a message about the first file that could not be written.

    Raises:
        ConfigError: If it can't be written.
    """

    def __init__(self, path: Path, emit: Callable[[str], None]) -> None:
        check_out(path)
        self.path = path
        self._emit = emit
        self._failure = ""
        self._names = {FILES}
        try:
            path.mkdir(parents=True, exist_ok=True)
            remove_earlier(path)
        except OSError as error:
            raise ConfigError(
                f"out: can't write, got {str(path)!r}: {error.strerror}; name another"
            ) from error

    def note(self, names: Iterable[str | Path]) -> None:
        """Note files, by name below the folder or by path, as this run's."""
        for name in names:
            below = name.relative_to(self.path) if isinstance(name, Path) else Path(name)
            self._names.add(below.as_posix())
        text = "".join(f"{name}\n" for name in sorted(self._names))
        self.keep(lambda: write_text(self.path / FILES, text))

    def keep(self, write: Callable[[], object]) -> None:
        """Write something; if that fails, say so once and go on."""
        try:
            write()
        except OSError as error:
            if not self._failure:
                self._failure = f"{error.filename or self.path}: {error.strerror}"
                self._emit(f"# out: can't write {self._failure}; the table goes on")

    def check(self) -> None:
        """Raise BackendError if something could not be written."""
        if self._failure:
            raise BackendError(
                f"out: some files could not be written, got {self._failure}; "
                "only the table is complete"
            )


def remove_earlier(path: Path) -> None:
    """Remove the files that an earlier run has listed, and then the folders left empty."""
    try:
        names = (path / FILES).read_text().splitlines()
    except (OSError, UnicodeDecodeError):
        return
    root = path.resolve()
    folders = set()
    for name in map(PurePosixPath, names):
        target = path / name
        if name.is_absolute() or not target.parent.resolve().is_relative_to(root):
            continue  # no run of ours writes outside
        if target.is_file() or target.is_symlink():
            target.unlink()
        folders |= {path / folder for folder in name.parents} - {path}
    for folder in sorted(folders, key=lambda each: len(each.parts), reverse=True):
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
