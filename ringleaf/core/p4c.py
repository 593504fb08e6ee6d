"""The P4 compiler on the PATH."""

from __future__ import annotations

import shutil

from ringleaf.errors import BackendError

COMPILER = "p4c-bm2-ss"
PSA_COMPILER = "p4c-bm2-psa"


def find_compiler(where: str, remedy: str, compiler: str = COMPILER) -> str:
    """Return the path of the P4 compiler, which is another one for PSA.

    Raises:
        BackendError: If it is not on PATH.
    """
    path = shutil.which(compiler)
    if path is None:
        raise BackendError(f"{where}: no P4 compiler on PATH, got no {compiler!r}; {remedy}")
    return path
