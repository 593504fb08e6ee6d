"""Which of our sources compiled code is made of."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

_MARK = "ringleaf.core.compiled"  # whoever compiles something imports it
_IMPORT = re.compile(r"^(?:from ([\w.]+) import (\([^)]*\)|.*)|import ([\w.]+))", re.MULTILINE)
_NAME = re.compile(r"\w+")


def digest(package: Path, folders: Iterable[str]) -> str:
    """Digest of the sources that are compiled into one another, and of what these import.

    Numba's own cache notices a change of the file that holds a function, not of the functions it
    inlines from other files, nor of their constants. What no compiled code needs may change
    without everything being compiled again.
    """
    texts = read_sources(package, folders)
    result = hashlib.sha256()
    for path in sorted(reach(package.name, texts)):
        result.update(texts[path].encode())
    return result.hexdigest()[:16]


def read_sources(package: Path, folders: Iterable[str]) -> dict[str, str]:
    """Return the sources in some of a package's folders, by paths like `hosts/rc/sender.py`.

    Paths are texts: each process begins with this, and `Path` took most of its time.
    """
    texts = {}
    for folder in folders:
        for place, _, names in os.walk(package / folder):
            inside = os.path.relpath(place, package).replace(os.sep, "/")
            before = "" if inside == "." else f"{inside}/"
            for name in names:
                if name.endswith(".py"):
                    with open(os.path.join(place, name), encoding="utf-8") as file:
                        texts[before + name] = file.read()
    return texts


def reach(package: str, texts: Mapping[str, str]) -> set[str]:
    """Of these sources, those that compile something, and those that they import."""
    frontier = [path for path, text in texts.items() if _MARK in text]
    reached: set[str] = set()
    while frontier:
        path = frontier.pop()
        if path in texts and path not in reached:
            reached.add(path)
            frontier.extend(_imported(package, texts[path]))
    return reached


def _imported(package: str, text: str) -> Iterator[str]:
    """Files that a source may import: what it names may be a module, or in one."""
    for parent, names, module in _IMPORT.findall(text):
        top, _, inside = (parent or module).partition(".")
        if top != package:
            continue
        place = inside.replace(".", "/")
        before = f"{place}/" if place else ""
        yield f"{place}.py"
        yield f"{before}__init__.py"
        yield from (f"{before}{name}.py" for name in _NAME.findall(names))
