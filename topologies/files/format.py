"""The formats of topology files, by name and by the endings of files.

A new format is a file in `formats` with a `Format` called FORMAT.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ringleaf.errors import ConfigError
from ringleaf.registry import Registry
from ringleaf.topologies.files.rows import Rows


@dataclass(frozen=True, slots=True)
class Format:
    """A file format.

    `read(text, where)` returns what a file holds; `where` is how its messages begin. It raises
    ConfigError if the text is not in this format. `write` returns the text of a file, and raises
    TopologyError if the format can't say it.
    """

    summary: str
    endings: tuple[str, ...]  # of files' names, with the dot; the first is its own
    mark: str  # a text in its files that tells them from others of an ending that is not its own
    read: Callable[[str, str], Rows]
    write: Callable[[Rows], str]


FORMATS: Registry[Format] = Registry(
    "topology_formats", "format", "topologies/files/formats", "FORMAT", kind=Format
)

ENDINGS = (".graphml", ".json", ".edges", ".yaml", ".yml", ".xml")
"""The endings of all formats' files: those of packages, too, which may add formats to them."""


def is_file(name: str) -> bool:
    """Return whether the name of a topology is that of a file: it has a `/`, or a known ending."""
    return "/" in name or Path(name).suffix.lower() in ENDINGS


def find_format(name: str, text: str) -> Format:
    """Return the format of a file with this name and text.

    Raises:
        ConfigError: If no format has this ending.
    """
    ending = Path(name).suffix.lower()
    able = [each for each in FORMATS.values() if ending in each.endings]
    if not able:
        raise ConfigError(
            f"topology {name}: the ending says the format, got {ending!r}; "
            f"valid: {', '.join(ENDINGS)}"
        )
    marked = [each for each in able if each.mark and each.mark in text]
    return next(iter([*marked, *(each for each in able if each.endings[0] == ending)]), able[0])


def choose_format(name: str, path: Path | None) -> Format:
    """Return the format of this name; without a name, that of the path's ending.

    Raises:
        ConfigError: If there is none.
    """
    if name:
        return FORMATS.find(name, "format")
    if path is None:
        raise ConfigError(f"format: needs a name, got none; valid: {', '.join(FORMATS)}")
    return find_format(str(path), "")
