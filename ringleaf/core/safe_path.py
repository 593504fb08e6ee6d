"""Python processes that don't take modules from the folder in which they start.

Python looks there first if it is given code or a module to run, and so do the processes of
`multiprocessing`. But anybody may have left files in that folder, as in /tmp.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

_NAME = "PYTHONSAFEPATH"


@contextmanager
def safe_path() -> Iterator[None]:
    """Have Python processes that start meanwhile leave out the current folder."""
    before = os.environ.get(_NAME)
    os.environ[_NAME] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_NAME]
        else:
            os.environ[_NAME] = before
