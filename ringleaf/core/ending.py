"""The end of a process, without Python's last part of it."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from contextlib import suppress
from typing import NoReturn


def end_process(status: int) -> NoReturn:
    """End this process as Python does, but for taking modules apart.

    To do that takes a tenth of a small run, and copies the memory that a fork shares.

    Args:
        status: The exit status, 0 to 255.
    """
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(status)
