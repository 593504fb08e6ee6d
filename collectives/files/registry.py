"""Formats by the suffix of their files."""

from __future__ import annotations

from pathlib import Path

from ringleaf.collectives.files.format import ScheduleFormat
from ringleaf.core.registry import Registry
from ringleaf.errors import ConfigError, choose

FORMATS: Registry[ScheduleFormat] = Registry("formats", "format", "collectives/formats", "FORMAT")

FILES = ", ".join(f"*.{suffix}" for suffix in FORMATS)
"""The files that are algorithms, for messages."""


def names_file(name: str) -> bool:
    """Return whether the name of an algorithm is that of a file: it has a format's suffix."""
    return Path(name).suffix[1:].lower() in FORMATS


def find_format(path: Path, where: str) -> ScheduleFormat:
    """Return the format of a file, by its suffix; `where` is how a message begins.

    Raises:
        ConfigError: If there is no such format; the message names those that there are.
    """
    suffix = path.suffix[1:].lower()
    if not suffix:
        valid = ", ".join(FORMATS)
        raise ConfigError(f"{where}: needs a suffix, got {str(path)!r}; valid: {valid}")
    return FORMATS[choose(where, "format", suffix, FORMATS)]
