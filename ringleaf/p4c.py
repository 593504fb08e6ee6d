"""The P4 compiler on the PATH."""

from __future__ import annotations

import shutil

from ringleaf.errors import BackendError

COMPILER = "p4c-bm2-ss"


def find_compiler(where: str, remedy: str) -> str:
    """Return the path of the P4 compiler.

    Raises:
        BackendError: If it is not on PATH.
    """
    path = shutil.which(COMPILER)
    if path is None:
        raise BackendError(f"{where}: no P4 compiler on PATH, got no {COMPILER!r}; {remedy}")
    return path
