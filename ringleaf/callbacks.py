"""Python functions that compiled code may call."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)


class Callback:
    """A Python function that compiled code may call: `call_back(callback.address, number)`.

    An exception can't pass through compiled code: it is kept, and the caller gets `failed`.

    Args:
        function: Takes an integer and returns one.
        failed: The result of a call that raised an exception.
    """

    def __init__(self, function: Callable[[int], int], *, failed: int) -> None:
        self._error: BaseException | None = None

        def guarded(number: int) -> int:
            try:
                return function(number)
            except BaseException as exc:  # noqa: BLE001 - `check` raises it
                self._error = self._error or exc
                return failed

        self._kept = FUNCTION(guarded)  # the address is valid as long as this is
        self.address = int(ctypes.cast(self._kept, ctypes.c_void_p).value or 0)

    def check(self) -> None:
        """Raise the exception that a call has ended with, if one has."""
        if self._error is not None:
            error, self._error = self._error, None
            raise error
