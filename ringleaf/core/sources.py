"""Which of our sources compiled code is made of."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

_MARK = b"ringleaf.core.compiled"  # whoever compiles something imports it
_IMPORT = re.compile(rb"\n(?:from ([\w.]+) import (\([^)]*\)|.*)|import ([\w.]+))")
_NAME = re.compile(r"\w+")


def digest(package: Path, folders: Iterable[str]) -> str:
    """Digest of the sources that are compiled into one another, and of what these import.

    Numba's own cache notices a change of the file that holds a function, not of the functions it
    inlines from other files, nor of their constants. What no compiled code needs may change
    without everything being compiled again.
    """
    sources = read_sources(package, folders)
    result = hashlib.sha256()
    for path in sorted(reach(package.name, sources)):
        result.update(sources[path])
    return result.hexdigest()[:16]


def read_sources(package: Path, folders: Iterable[str]) -> dict[str, bytes]:
    """Return the sources in some of a package's folders, by paths like `hosts/rc/sender.py`.

    Each process begins with this. Paths are texts, as `Path` took most of its time; sources are
    bytes, as little of them is looked at.
    """
    sources = {}
    for folder in folders:
        for place, _, names in os.walk(package / folder):
            inside = os.path.relpath(place, package).replace(os.sep, "/")
            before = "" if inside == "." else f"{inside}/"
            for name in names:
                if name.endswith(".py"):
                    with open(os.path.join(place, name), "rb", buffering=0) as file:
                        sources[before + name] = file.read()
    return sources


def reach(package: str, sources: Mapping[str, bytes]) -> set[str]:
    """Of these sources, those that compile something, and those that they import."""
    frontier = [path for path, source in sources.items() if _MARK in source]
    reached: set[str] = set()
    while frontier:
        path = frontier.pop()
        if path in sources and path not in reached:
            reached.add(path)
            frontier.extend(_imported(package, sources[path]))
    return reached


def _imported(package: str, source: bytes) -> Iterator[str]:
    """Files that a source may import: what it names may be a module, or in one."""
    for each_import in _IMPORT.findall(b"\n" + source):
        parent, names, module = (each.decode() for each in each_import)
        top, _, inside = (parent or module).partition(".")
        if top != package:
            continue
        place = inside.replace(".", "/")
        before = f"{place}/" if place else ""
        yield f"{place}.py"
        yield f"{before}__init__.py"
        yield from (f"{before}{name}.py" for name in _NAME.findall(names))
