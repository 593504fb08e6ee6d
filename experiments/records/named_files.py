"""The files that a run's options name, by which a sweep knows whether one of them has changed."""

from __future__ import annotations

import glob
import hashlib
import os.path
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from ringleaf.core.file_names import in_home

_SEVERAL = ("control", "files")
"""Options that may name a folder, or the beginning of names: of entries, and of traces."""


def digests(options: Mapping[str, Any]) -> dict[str, str]:
    """Return the SHA-256 of each file that options name, by its name.

    A name may be a whole value, one of several, or behind a key: `a.csv,b.xml`, `s0=my.p4`.
    """
    result: dict[str, str] = {}
    for name, value in options.items():
        for path in (path for word in words(value) for path in _paths(word, name in _SEVERAL)):
            with suppress(OSError), open(path, "rb") as file:
                result[path] = hashlib.file_digest(file, "sha256").hexdigest()
    return result


def words(value: Any) -> Iterator[str]:
    """Yield the texts of an option's value, which may be nested, and what they list."""
    if isinstance(value, Mapping | list):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from words(each)
    else:
        text = in_home(str(value))
        yield from dict.fromkeys(word.strip() for word in (text, *re.split("[,=]", text)))


def _paths(word: str, may_be_several: bool) -> list[str]:
    if not word or "\0" in word:
        return []
    pattern = os.path.join(word, "*") if os.path.isdir(word) else f"{word}*"
    paths = sorted(glob.glob(pattern)) if may_be_several else [word]
    return [path for path in paths if os.path.isfile(path)]
