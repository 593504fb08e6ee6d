"""How files of a rank are named, among those of a trace of Chakra."""

from __future__ import annotations

import re
from pathlib import Path

from ringleaf.core.packing import without_packing

_OF_A_RANK = re.compile(r"((?:.*(?:[._-]|rank|npu))?)\d+(\.(?:et|json)(?:\.\w+)?)", re.ASCII)
_AFTER_NAME = re.compile(r"[._-]?\*\..+")
_IN_FORMATS = re.compile(r"%\d*d|\{\w*\}", re.ASCII)


def pattern_of(name: str) -> str:
    """Return the pattern of all ranks' files, in which `*` is the rank, for one's; "": it is none.

    The number comes last, at the beginning, after a sign, or after `rank` or `npu`.
    """
    match = _OF_A_RANK.fullmatch(name)
    return f"{match[1]}*{match[2]}" if match else ""


def trace_of(pattern: Path) -> str:
    """Return the name of a trace: all before the rank, or the folder's; a file's without suffix."""
    if "*" not in pattern.name:
        return without_packing(pattern.name).removesuffix(".et")
    return pattern.name.partition("*")[0].rstrip("._-") or pattern.absolute().parent.name


def begins(pattern: str, name: str) -> bool:
    """Return whether a name is a pattern's, as ASTRA-sim is told it: all before the rank."""
    return pattern.startswith(name) and bool(_AFTER_NAME.fullmatch(pattern, len(name)))


def pattern_meant(name: str) -> str:
    """Return the pattern that a name like `t.%d.et` or `t.{rank}.et` means; "": it is none."""
    return _IN_FORMATS.sub("*", name, count=1) if _IN_FORMATS.search(name) else ""
