"""How much memory a server has taken, all that its libraries hold included."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from ringleaf.errors import Code, ConfigError

_STATM = Path("/proc/self/statm")
EVERY = 64  # checks


def resident_bytes() -> int:
    """Return how much of this process is in memory; 0 where that can't be told."""
    try:
        return int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def allocated_bytes() -> int:
    """Return how much malloc has given out; freed memory is not in it, which may be resident."""
    try:
        info = _C.mallinfo2()
    except AttributeError:  # a C library other than GNU's
        return resident_bytes()
    return int(info.uordblks + info.hblkhd)


def give_back() -> None:
    """Return memory that was freed to the system, which malloc else keeps for later."""
    with suppress(AttributeError):
        _C.malloc_trim(0)


class _Mallinfo(ctypes.Structure):
    """See mallinfo(3)."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena", "ordblks", "smblks", "hblks", "hblkhd",
            "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost",
        )
    ]  # fmt: skip


_C = ctypes.CDLL(None)
with suppress(AttributeError):
    _C.mallinfo2.restype = _Mallinfo


class ProcessMemory:
    """Measures this process against what it had when the server began.

    Args:
        state_bytes: What entries and programs of clients may add; 0 for nothing, None for any.
        measure: Returns the bytes that are taken.
    """

    def __init__(
        self, state_bytes: int | None, measure: Callable[[], int] = resident_bytes
    ) -> None:
        self._state_bytes = state_bytes
        self._measure = measure
        self._first = measure()
        self._allocated = allocated_bytes()
        self._checks = 0

    @property
    def added(self) -> int:
        """Bytes more than at first."""
        return self._measure() - self._first

    @property
    def in_use(self) -> int:
        """Bytes more than at first, without those that were freed, nor those never touched."""
        return min(self.added, allocated_bytes() - self._allocated)

    def check(self, what: str) -> None:
        """Refuse something that stays, if too much has been kept already.

        Measuring takes as long as a small update, so only some calls do.

        Raises:
            ConfigError: RESOURCE_EXHAUSTED.
        """
        self._checks += 1
        if self._state_bytes is not None and self._checks % EVERY == 1:
            self.check_now(what)

    def check_now(self, what: str) -> None:
        """Refuse as `check` does, but measure at each call."""
        most = self._state_bytes
        if most is None or self.added <= most:
            return
        give_back()
        if self.added > most:
            self._checks = 0  # the next one measures, too
            raise ConfigError(
                f"server keeps at most {most >> 20} MiB for its clients, got {what} more;"
                " delete entries, or start it anew",
                Code.RESOURCE_EXHAUSTED,
            )
