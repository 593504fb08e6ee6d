"""Processes that end when the one that has made them does, however that ends."""

from __future__ import annotations

import ctypes
import os
import signal
from contextlib import suppress

_PR_SET_PDEATHSIG = 1  # of <linux/prctl.h>


def die_with_parent(parent: int | None = None, number: int = signal.SIGKILL) -> None:
    """Have the kernel end this process when the thread that made it ends; see prctl(2).

    Args:
        parent: The process that has made this one, which may be gone already; None: it waits.
        number: The signal.
    """
    with suppress(AttributeError, OSError):  # of Linux alone
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)
    if parent is not None and os.getppid() != parent:
        os.kill(os.getpid(), number)
