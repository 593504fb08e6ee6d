"""Run directories: who may write there, what is ours there, and what if the disk is full.

A run directory holds one run, or the runs of one sweep. `files.txt` lists the files of ours, so
that the next run can remove them, and nothing else; a line that ends in `/files.txt` names the list
of a sweep's run. A file that is in no list is somebody's own, and is never overwritten.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import Self

from ringleaf.core.disk import write_text
from ringleaf.errors import BackendError, ConfigError, ScheduleError, TopologyError
from ringleaf.experiments.records.lock import Lock, check_free

FILES = "files.txt"
ROWS = "results.csv"
SWEPT_ROWS = "sweep.csv"
REPORT = "report.html"

PLAN = "sweep.json"
"""The file that a sweep's folder has, and a run's has not."""

SUMMARY = "summary.json"
"""The results that each run has, as JSON."""

CONFIG = "config.json"
"""The file that each run has."""

SPEC = "spec.yaml"
"""The options that a run was given, for it to be done again."""

COMMON = (CONFIG, ROWS, SUMMARY, SPEC, "log.txt", REPORT)
"""Files of all runs, and more."""

EARLIER = ".earlier"
"""The folder of an earlier run's files until the new one has ended."""

IMPOSSIBLE = (ConfigError, TopologyError, ScheduleError)
"""Errors that say that a run can't be had as it was asked for."""

VAIN = (*IMPOSSIBLE, KeyboardInterrupt)
"""What ends a run that need not have replaced an earlier one, if it has no results yet."""

LEAST_ROOM_BYTES = 1 << 20
"""Free space below this counts as a full disk: figures take more."""


def check_out(path: Path) -> None:
    """Check that a run directory can be made and written, without making it.

    Raises:
        ConfigError: If it can't; the message says why.
    """
    if str(path) == "-":
        raise ConfigError("out: must be a folder, got '-'; stdout has the table as it is")
    if "\0" in str(path):
        raise ConfigError(f"out: a name has no zero in it, got {str(path)!r:.80}; name another")
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


def folder_of(path: Path) -> Path:
    """Return the folder of a run or a sweep, which may be named by its rows or its report."""
    names = (ROWS, SWEPT_ROWS, REPORT, SUMMARY, PLAN)
    return path.parent if path.name in names and os.path.isfile(path) else path


def check_written(path: Path) -> None:
    """Check that a folder has been written by a run or a sweep.

    Raises:
        ConfigError: If it has no summary and no plan.
    """
    if not any(os.path.isfile(path / name) for name in ("summary.json", PLAN)):
        raise ConfigError(
            f"run directory: no summary.json in it, got {str(path)!r}; "
            "name a folder that a run has written"
        )


def check_own(path: Path, names: Iterable[str] = COMMON, *, is_sweep: bool = False) -> None:
    """Check that a run, or a sweep, may write files of these names into a folder.

    An earlier run's files may be replaced. A sweep goes on where it was interrupted, so it is not
    replaced by a single run.

    Raises:
        ConfigError: If somebody is writing there, the folder holds a sweep, or files of others.
    """
    check_free(path)
    if not is_sweep and os.path.lexists(path / PLAN):
        raise ConfigError(
            f"out: must not hold a sweep, got {str(path)!r}, and a single run would replace its "
            "report; name another folder, or remove that one"
        )
    ours = listed(path)
    others = [name for name in {*names, FILES} - ours if os.path.lexists(path / name)]
    if others:
        more = f" and {len(others) - 1} more" if len(others) > 1 else ""
        raise ConfigError(
            f"out: must not hold files that no run has listed, got {min(others)!r}{more} in "
            f"{str(path)!r}; move them away, or name another folder"
        )


def listed(path: Path) -> set[str]:
    """Return the names of a folder's files that are ours; none if its list is not ours."""
    try:
        names = set((path / FILES).read_text(encoding="utf-8").splitlines())
    except (OSError, UnicodeDecodeError):
        return set()
    return names if FILES in names and names & {CONFIG, PLAN} else set()


def claim(path: Path, names: Iterable[str | Path]) -> None:
    """List files of a run directory before they are written.

    Args:
        path: The run directory.
        names: Their names below it, or their paths.

    Raises:
        FileExistsError: If there is one that is not ours.
    """
    ours = listed(path)
    new = [name for name in map(_below(path), names) if name not in ours]
    for name in new:
        if os.path.lexists(path / name):
            advice = "exists, and no run has listed it; move it away, or name another folder"
            raise FileExistsError(errno.EEXIST, advice, str(path / name))
    if new:
        with (path / FILES).open("a", encoding="utf-8") as file:
            file.write("".join(f"{name}\n" for name in new))  # at once: others draw beside us


def claim_figure(path: Path) -> None:
    """List a figure in its run directory before it is written, if it goes into one."""
    for folder in (path.parent, path.parent.parent):
        if listed(folder):
            claim(folder, [path])
            return


def _below(path: Path) -> Callable[[str | Path], str]:
    """Return a function that makes a file's path, or its name below `path`, the latter."""

    def name_of(file: str | Path) -> str:
        file = Path(file)
        return (file.relative_to(path) if file.is_relative_to(path) else file).as_posix()

    return name_of


class RunFolder:
    """A run directory that is being written, and is locked until its context ends.

    A full disk does not end the run. If the run is interrupted, a note on the exception says what
    is kept. If a single run is interrupted, or turns out to be impossible, before it has any
    results, the folder is again as it was.

    Args:
        path: The folder, made if it is missing; files that an earlier run left are removed.
        emit: Called, once, with a message about the first file that could not be written.
        names: Files that will be written.
        is_sweep: Whether it is for a sweep.
        keeps: Folders of runs below it that are not removed.

    Attributes:
        has_results: Whether there are results, though maybe no whole row.

    Raises:
        ConfigError: If it can't be written, or holds what is not to be replaced.
    """

    def __init__(
        self,
        path: Path,
        emit: Callable[[str], None],
        names: Iterable[str] = (),
        *,
        is_sweep: bool = False,
        keeps: Collection[str] = (),
    ) -> None:
        own_names = [*names] if is_sweep else [*names, *COMMON]
        check_out(path)
        check_own(path, own_names, is_sweep=is_sweep)
        self.path = path
        self._emit = emit
        self._failure = ""
        self._names = {FILES}
        self._lasting = {CONFIG, ROWS, SUMMARY, SPEC}
        if is_sweep:  # one without rows has no more
            self._lasting = {*names} - {SWEPT_ROWS, REPORT}
        self._is_sweep = is_sweep
        self._done = self._of = 0
        self.has_results = False
        self._is_new = not path.exists()
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._lock = Lock(path, emit)
            try:
                remove_earlier(path / EARLIER)  # of a run that was killed
                if is_sweep or (path / EARLIER).is_symlink():
                    remove_earlier(path, keeps)
                else:
                    _move(path, path / EARLIER)
            except OSError:
                self._lock.release()
                raise
        except OSError as error:
            raise ConfigError(
                f"out: can't write, got {str(path)!r}: {error.strerror}; name another"
            ) from error
        self.note(own_names)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, KeyboardInterrupt):
            error.add_note(self._kept())
        with suppress(OSError):
            self._settle(isinstance(error, VAIN) and not self.has_results)
        self._lock.release()
        if self._is_new:
            with suppress(OSError):  # it holds something
                self.path.rmdir()

    def _settle(self, is_vain: bool) -> None:
        """Remove what an earlier run has left here; or this run's files, if it was in vain."""
        earlier = self.path / EARLIER
        if self._is_sweep:
            return
        if is_vain:
            remove_earlier(self.path)
            _move(earlier, self.path)
        else:
            remove_earlier(earlier)
        with suppress(OSError):  # there was none, or it holds what is not ours
            earlier.rmdir()

    def count(self, done: int, of: int) -> None:
        """Note how many rows, or a sweep's runs, are done."""
        self._done, self._of = done, of
        self.has_results |= bool(done)

    def _kept(self) -> str:
        what, then = (
            ("runs", "goes on with the others") if self._is_sweep else ("rows", "starts over")
        )
        if not self.has_results:
            was = f" {self.path} is as it was," if listed(self.path / EARLIER) else ""
            return f"no {what} are done,{was} and the same command starts over"
        if not self._done:
            return f"results until then are kept in {self.path}, and the same command {then}"
        return (
            f"{self._done} of {self._of} {what} are kept in {self.path}, "
            f"and the same command {then}"
        )

    def note(self, names: Iterable[str | Path]) -> None:
        """Note files, by name below the folder or by path, as this run's."""
        self._names |= {*map(_below(self.path), names), *listed(self.path)}
        text = "".join(f"{name}\n" for name in sorted(self._names))
        self.keep(lambda: write_text(self.path / FILES, text))

    def keep(self, write: Callable[[], object], *names: str | Path) -> None:
        """Write something, files of these names; if that fails, say so once and go on."""
        try:
            claim(self.path, names)
            write()
        except OSError as error:
            if not self._failure:
                self._failure = f"{error.filename or self.path}: {error.strerror}"
                self._emit(f"# out: can't write {self._failure}; the table goes on")

    def look(self) -> None:
        """See whether all is still there that has been written by now; if not, say so once."""
        self.keep(self._look)

    def _look(self) -> None:
        for path in (self.path / name for name in sorted(self._lasting)):
            if not path.exists():
                raise FileNotFoundError(errno.ENOENT, "was removed meanwhile", str(path))

    @property
    def has_failed(self) -> bool:
        """Whether something could not be written."""
        return bool(self._failure)

    def check(self) -> None:
        """Raise BackendError if something could not be written, or is no longer there."""
        self.look()
        if self._failure:
            raise BackendError(
                f"out: some files could not be written, got {self._failure}; "
                "only the table is complete"
            )


def _move(path: Path, to: Path) -> None:
    """Move the files that a run has listed to another folder."""
    for name in _own(path):
        if (path / name).is_file() or (path / name).is_symlink():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            (path / name).rename(to / name)
    _remove_empty(path, _own(to))


def _own(path: Path) -> list[PurePosixPath]:
    """Return the names of the files that a run has listed, the list itself last."""
    root = path.resolve()
    names = sorted(map(PurePosixPath, listed(path)), key=lambda name: name.name == FILES)
    return [
        name
        for name in names
        if not name.is_absolute() and (path / name).parent.resolve().is_relative_to(root)
    ]  # no run of ours writes outside


def remove_earlier(path: Path, keeps: Collection[str] = ()) -> None:
    """Remove the files that an earlier run has listed, and then the folders left empty.

    Args:
        path: The run directory.
        keeps: Folders of a sweep's runs, which stay as they are.
    """
    names = [name for name in _own(path) if str(name.parent) not in keeps]
    for name in names:
        target = path / name
        if name.name == FILES and len(name.parts) > 1:
            remove_earlier(target.parent)
        if target.is_file() or target.is_symlink():
            target.unlink()
    _remove_empty(path, names)


def _remove_empty(path: Path, names: Iterable[PurePosixPath]) -> None:
    """Remove the folders, below a folder, of files that are no longer there."""
    folders = {path / folder for name in names for folder in name.parents} - {path}
    for folder in sorted(folders, key=lambda each: len(each.parts), reverse=True):
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
