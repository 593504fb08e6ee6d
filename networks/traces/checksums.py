"""`SHA256SUMS` of a trace, as `sha256sum -c` reads it: says which files have changed since."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from ringleaf.errors import ConfigError
from ringleaf.networks.traces.manifest import is_inside
from ringleaf.networks.traces.sizes import check_sizes

NAME = "SHA256SUMS"
_LINE = re.compile(r"([0-9a-f]{64})  (\S.*)")


def write_checksums(folder: Path) -> None:
    """Write the checksums of all files of the folder."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != NAME)
    lines = [f"{_digest(path)}  {path.relative_to(folder).as_posix()}\n" for path in paths]
    (folder / NAME).write_text("".join(lines))


def changed_files(folder: Path) -> list[str]:
    """Return the sorted names of files that have changed; none if the trace has no checksums.

    Raises:
        ConfigError: If the list itself is damaged, or a file is too large.
    """
    check_sizes(folder)
    path = folder / NAME
    if not path.is_file():
        return []
    changed = []
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: can't be read, got {error}; remove it to go without") from error
    for number, line in enumerate(lines, start=1):
        match = _LINE.fullmatch(line)
        if match is None:
            raise ConfigError(
                f"{path}: line {number} must be a SHA-256 and a name, got {line!r}; "
                "remove the file to go without"
            )
        if not is_inside(folder, match[2]):
            raise ConfigError(
                f"{path}: line {number} must name a file of the trace, got {match[2]!r}; "
                "remove the file to go without"
            )
        if _digest_or_none(folder / match[2]) != match[1]:
            changed.append(match[2])
    return sorted(changed)


def _digest_or_none(path: Path) -> str | None:
    try:
        return _digest(path)
    except (OSError, ValueError):
        return None


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
