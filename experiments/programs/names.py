"""Which files are meant: one for all switches, or some for switches by name.

my.p4                    one for all switches
s0=my.p4,s3=other.json   for these switches; the others run Ringleaf's programs
"""

from __future__ import annotations

import os.path
import re
from collections.abc import Collection, Mapping
from pathlib import Path

from ringleaf.errors import ConfigError

P4_SUFFIX = ".p4"
PROGRAM_SUFFIXES = (P4_SUFFIX, ".json")

_SWITCH = re.compile(r"s\d+\Z")

ALL = ""
"""The key of the file for all switches."""


def is_path(text: str) -> bool:
    """Return whether a text names files, and not one of Ringleaf's programs."""
    return "=" in text or "/" in text or text.endswith(PROGRAM_SUFFIXES)


def is_for_all(text: str) -> bool:
    """Return whether a text of files names one for all switches."""
    return "=" not in text


def read_paths(text: str, where: str) -> Mapping[str, Path]:
    """Return files by switch; the key `ALL` stands for all switches.

    Raises:
        ConfigError: If the text has another form, or a file is not there.
    """
    if is_for_all(text):
        return {ALL: _existing(text, where)}
    paths: dict[str, Path] = {}
    for part in text.split(","):
        switch, _, path = part.partition("=")
        if not _SWITCH.match(switch) or not path or switch in paths:
            raise ConfigError(
                f"{where}: must be a file, or files of switches that are named once, got {part!r}; "
                "like my.p4, or s0=my.p4,s3=other.json"
            )
        paths[switch] = _existing(path, where)
    return paths


def check_programs(text: str, where: str) -> str:
    """Check a text of programs; return it.

    Raises:
        ConfigError: If a file is not there, or neither P4 nor BMv2 JSON.
    """
    for path in read_paths(text, where).values():
        if path.suffix not in PROGRAM_SUFFIXES:
            raise ConfigError(f"{where}: must be P4 (.p4) or BMv2 JSON (.json), got {str(path)!r}")
    return text


def check_control(text: str, where: str) -> str:
    """Check a text of control files; return it.

    Raises:
        ConfigError: If one is not there.
    """
    if text:
        read_paths(text, where)
    return text


def of_switches(paths: Mapping[str, Path], switches: Collection[str]) -> dict[str, Path]:
    """Return the files of a network's switches, by switch; those without a file are left out."""
    if ALL in paths:
        return dict.fromkeys(switches, paths[ALL])
    return dict(paths)


def _existing(text: str, where: str) -> Path:
    path = Path(text)
    if not os.path.exists(path):  # a name may be too long for one
        raise ConfigError(f"{where}: no such file, got {text!r}")
    return path
