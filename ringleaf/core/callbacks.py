"""Python functions that compiled code may call."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from weakref import WeakMethod

FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)


class Callback:
    """A Python function that compiled code may call: `call_back(callback.address, number)`.

    An exception can't pass through compiled code: it is kept, and the caller gets `failed`.

    Args:
        function: Takes an integer and returns one.
        failed: The result of a call that raised an exception.
    """

    def __init__(self, function: Callable[[int], int], *, failed: int) -> None:
        self._errors: list[BaseException] = []
        errors = self._errors  # not `self`: that would be a cycle

        def guarded(number: int) -> int:
            try:
                return function(number)
            except BaseException as exc:  # noqa: BLE001 - `check` raises it
                errors.append(exc)
                return failed

        self._kept = FUNCTION(guarded)  # the address is valid as long as this is
        self.address = int(ctypes.cast(self._kept, ctypes.c_void_p).value or 0)

    def check(self) -> None:
        """Raise the exception that the first failed call has ended with, if one has."""
        if self._errors:
            error = self._errors[0]
            self._errors.clear()
            raise error


def weakly(method: Callable[[int], int]) -> Callable[[int], int]:
    """Return a function that calls a bound method, and does not keep its object alive.

    An object that keeps callbacks to its own methods would only be freed, with all the memory that
    it refers to, when Python looks for garbage.
    """
    kept = WeakMethod(method)

    def call(number: int) -> int:
        bound = kept()
        assert bound is not None, "whoever is called back is kept while it may be"
        result: int = bound(number)
        return result

    return call
