"""The formats of topology files, by name and by the endings of files.

A new format is a file in `formats` with a `TopologyFormat` called FORMAT.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ringleaf.core.registry import Registry
from ringleaf.errors import ConfigError
from ringleaf.topologies.files.foreign_files import looks_like
from ringleaf.topologies.files.rows import NetworkRows


@dataclass(frozen=True, slots=True)
class TopologyFormat:
    """A file format.

    `read(text, where)` returns what a file holds; `where` is how its messages begin. It raises
    ConfigError if the text is not in this format. `write` returns the text of a file, and raises
    TopologyError if the format can't say it; None: the format is only read.
    """

    summary: str
    endings: tuple[str, ...]  # of files' names, with the dot; the first is its own
    mark: str  # a pattern of its files' text alone, by which they are known by other endings, too
    read: Callable[[str, str], NetworkRows]
    write: Callable[[NetworkRows], str] | None = None


FORMATS: Registry[TopologyFormat] = Registry(
    "topology_formats", "format", "topologies/files/formats", "FORMAT", kind=TopologyFormat
)

ENDINGS = (
    *(".graphml", ".gml", ".gexf", ".json", ".edges", ".edgelist", ".topo"),
    *(".yaml", ".yml", ".xml"),
)
"""The endings of all formats' files: those of packages, too, which may add formats to them."""


def find_format(name: str, text: str) -> TopologyFormat:
    """Return the format of a file with this name and text.

    The text decides, if it has a format's mark; then the ending.

    Raises:
        ConfigError: If no format has this ending, or the text is something else; the message says
            which files are read.
    """
    ending = Path(name).suffix.lower()
    able = [each for each in FORMATS.values() if ending in each.endings]
    marked = [
        each for each in (*able, *FORMATS.values()) if each.mark and re.search(each.mark, text)
    ]
    if not marked and (other := looks_like(text)):
        raise ConfigError(f"topology {name}: must be a topology, got {other}; {_kinds()}")
    own = [each for each in able if each.endings[0] == ending]
    if candidates := [*marked, *own, *able]:
        return candidates[0]
    raise ConfigError(
        f"topology {name}: neither the text nor the ending says the format, got {ending!r}; "
        f"{_kinds()}"
    )


def _kinds() -> str:
    kinds = (f"{each.summary} ({each.endings[0]})" for each in FORMATS.values())
    return f"these are read: {', '.join(kinds)}"


def choose_format(name: str, path: Path | None) -> TopologyFormat:
    """Return the format to write, of this name; without a name, that of the path's ending.

    Raises:
        ConfigError: If there is none, or it is only read.
    """
    if name:
        file_format = FORMATS.find(name, "format")
    elif path is None:
        raise ConfigError(f"format: needs a name, got none; valid: {', '.join(written())}")
    else:
        file_format = find_format(str(path), "")
    if file_format.write is None:
        raise ConfigError(
            f"format: {file_format.summary} are only read, got {name or str(path)!r}; "
            f"valid: {', '.join(written())}"
        )
    return file_format


def written() -> list[str]:
    """Return the names of the formats in which files are written, and not only read."""
    return [name for name, each in FORMATS.items() if each.write is not None]
