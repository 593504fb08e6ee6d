"""The line that a command writes to a pipe where it must compile first, as with an empty cache."""

from __future__ import annotations

from ringleaf.core.compiling import NOTICE


def without_notice(stderr: str) -> str:
    """Return what a command said besides that line, which is not always there."""
    return stderr.replace(f"ringleaf: {NOTICE}\n", "")
