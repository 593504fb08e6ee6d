"""Whether Numba looks for SciPy's BLAS, which takes it a third of a second to load.

Only `np.dot` and the like need it in compiled code, and ours has none. A process of the command
line goes without; one of a user's that imports Ringleaf has it.
"""

from __future__ import annotations

import sys
from importlib import import_module

_BLAS = "scipy.linalg.cython_blas"

is_wanted = True
"""Whether compiled code may use BLAS; to be set before anything compiled is imported."""


def load() -> None:
    """Load the part of Numba that looks for BLAS, so that it finds none if that is not wanted."""
    if is_wanted or "scipy.linalg" in sys.modules:
        return
    sys.modules[_BLAS] = None  # type: ignore[assignment]
    try:
        import_module("numba.np.arraymath")
    finally:
        del sys.modules[_BLAS]
