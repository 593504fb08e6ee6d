"""Which of our sources compiled code is made of."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

_MARK = "ringleaf.core.compiled"  # whoever compiles something imports it
_IMPORT = re.compile(r"^(?:from ([\w.]+) import (\([^)]*\)|.*)|import ([\w.]+))", re.MULTILINE)


def digest(package: Path, folders: Iterable[str]) -> str:
    """Digest of the sources that are compiled into one another, and of what these import.

    Numba's own cache notices a change of the file that holds a function, not of the functions it
    inlines from other files, nor of their constants. What no compiled code needs may change
    without everything being compiled again.
    """
    texts = {
        path: path.read_text(encoding="utf-8")
        for folder in folders
        for path in sorted((package / folder).rglob("*.py"))
    }
    result = hashlib.sha256()
    for path in sorted(reach(package, texts)):
        result.update(texts[path].encode())
    return result.hexdigest()[:16]


def reach(package: Path, texts: Mapping[Path, str]) -> set[Path]:
    """Of these sources, those that compile something, and those that they import."""
    frontier = [path for path, text in texts.items() if _MARK in text]
    reached: set[Path] = set()
    while frontier:
        path = frontier.pop()
        if path in texts and path not in reached:
            reached.add(path)
            frontier.extend(_imported(package, texts[path]))
    return reached


def _imported(package: Path, text: str) -> Iterator[Path]:
    """Files that a source may import: what it names may be a module, or in one."""
    for parent, names, module in _IMPORT.findall(text):
        place = package.parent.joinpath(*(parent or module).split("."))
        yield place.with_suffix(".py")
        yield place / "__init__.py"
        yield from (place / f"{name}.py" for name in re.findall(r"\w+", names))
