"""Answers that depend on nothing but what is installed, kept between commands.

A table of all members of all families imports them all; most who ask for it have changed none of
them since it was made.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

from ringleaf.core.private import cache_folder
from ringleaf.core.sealed import read_sealed, write_sealed
from ringleaf.core.shipped import PACKAGE
from ringleaf.errors import ConfigError

_SOURCES = (".py", ".yaml", ".json")


def remembered(name: str, make: Callable[[], Any], package: Path = PACKAGE) -> Any:
    """Return what `make` returns, or has returned for the same sources.

    Args:
        name: The answer's name, that of a file.
        make: Returns a value of JSON, made of nothing but the package's sources.
        package: The folder of the sources.
    """
    return json.loads(remembered_bytes(name, lambda: json.dumps(make()).encode(), package))


def remembered_bytes(name: str, make: Callable[[], bytes], package: Path = PACKAGE) -> bytes:
    """Return what `make` returns, or has returned for the same sources, as `remembered`."""
    try:
        path = cache_folder() / "answers" / name
        about = f"{name} {own_state() if package == PACKAGE else _state(package)}"
        kept = read_sealed(path, about)
    except (OSError, ConfigError):
        return make()
    if kept is not None:
        return kept
    answer = make()
    with suppress(OSError):
        write_sealed(path, answer, about)
    return answer


@cache
def own_state() -> str:
    """Return the state of the sources that this process began with."""
    return _state(PACKAGE)


def _state(package: Path) -> str:
    """Return a digest of the places, sizes and times of all sources, and of the Python here."""
    about = f"{sys.version} {sys.flags.optimize} {sorted(_sources(package))}"  # -OO: no docstrings
    return blake2b(about.encode(), digest_size=16).hexdigest()


def _sources(package: str | Path) -> Iterator[tuple[str, int, int]]:
    with os.scandir(package) as entries:
        for entry in entries:
            if entry.name.endswith(_SOURCES):
                info = entry.stat()
                yield entry.path, info.st_size, info.st_mtime_ns
            elif entry.is_dir():
                yield from _sources(entry.path)
