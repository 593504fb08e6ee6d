"""How Ringleaf compiles per-packet code: one signature, one cache, and off by one switch.

A function that is marked here is compiled when it, or any other, is first needed, or its machine
code is loaded from the cache (`machine_code`). Numba is imported only if something must be compiled
(`ringleaf.core.compiler`): it takes half a second to begin.

`NUMBA_DISABLE_JIT=1` runs the same functions as plain Python.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from ringleaf.core.arena import Arena
from ringleaf.core.callbacks import FUNCTION
from ringleaf.core.native_types import ARENA, ERROR_AT, Signature, int64
from ringleaf.core.units import format_count

UNCOMPILED = os.environ.get("NUMBA_DISABLE_JIT", "0") not in {"", "0"}
"""Whether all functions run as plain Python."""

HANDLER = int64(ARENA, int64, int64, int64)
"""`handler(arena, at, packet, now_ps) -> int`: what the event loop calls on every component."""

F = TypeVar("F", bound=Callable[..., Any])

helpers: list[Callable[..., Any]] = []
"""Functions that compiled code has a copy of, which Numba has not been told of."""

replacements: list[tuple[Callable[..., Any], Callable[..., Any]]] = []
"""Likewise, functions and the makers of what compiled code calls in their places."""

_pending: list[Compiled] = []  # not loaded yet
_loading = threading.RLock()


class Compiled:
    """A function that is compiled, or will be.

    Args:
        function: The function.
        signature: Its types.
        frees_python: Whether Python's other threads run while it does.
        rare: Whether most runs do without it, so that it is compiled only when it is called.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        signature: Signature,
        *,
        frees_python: bool,
        rare: bool = False,
    ) -> None:
        self.function = function
        self.signature = signature
        self.__name__ = function.__name__
        self.__doc__ = function.__doc__
        self.__module__ = function.__module__
        self.error: Exception | None = None
        """Why it does not compile."""
        self._address = 0
        self._native: Any = None
        self._frees_python = frees_python
        self._adders = [each.add_to for each in signature.arguments]
        self._outcome = signature.result.outcome
        if not rare:
            _pending.append(self)

    def __repr__(self) -> str:
        """Return its name and types."""
        return f"<compiled {self.__module__}.{self.__name__}: {self.signature}>"

    @property
    def is_settled(self) -> bool:
        """Whether its machine code is in memory, or can't be had."""
        return self._address != 0 or self.error is not None

    @property
    def address(self) -> int:
        """The address of its machine code."""
        if not self._address:
            self._prepare()
        return self._address

    def _prepare(self) -> None:
        with _loading:
            if self not in _pending:
                _pending.append(self)
            prepare()
        if self.error is not None:
            raise self.error

    def take(self, address: int) -> None:
        """Take the address of its machine code."""
        prototype = self.signature.prototype(frees_python=self._frees_python)
        self._native = prototype(address)
        self._address = address

    def __call__(self, *values: Any) -> Any:
        """Call it.

        Raises:
            TypeError: If values are not of its types.
            RuntimeError: If it fails, which says no more than that: checks come before.
        """
        native = self._native
        if native is None:
            self._prepare()
            native = self._native
        if len(values) != len(self._adders):
            count = format_count(len(self._adders), "value")
            raise TypeError(f"{self!r}: takes {count}, got {len(values)}")
        outcome = self._outcome()
        at = ctypes.addressof(outcome)
        words = [at, at + ERROR_AT]
        for add, value in zip(self._adders, values, strict=True):
            add(words, value)
        if native(*words):
            raise RuntimeError(f"{self!r}: failed")
        return outcome.result


def compiled(signature: Signature, *, nogil: bool = False, rare: bool = False) -> Callable[[F], F]:
    """Mark a function that Python calls.

    Args:
        signature: Its types.
        nogil: Whether Python's other threads run while it does.
        rare: Whether most runs do without it, so that it is compiled only when it is called.
    """

    def decorate(function: F) -> F:
        if UNCOMPILED:
            return function
        return Compiled(function, signature, frees_python=nogil, rare=rare)  # type: ignore[return-value]

    return decorate


def handler(function: F) -> F:
    """Mark a function that is called through its address.

    Python's other threads run meanwhile: a program's loop may take long, or never end.
    """
    return compiled(HANDLER, nogil=True)(function)


def prepare() -> None:
    """Load or compile all functions that have been marked, so that nothing waits for it later."""
    with _loading:
        if _pending:
            from ringleaf.core.machine_code import load_all

            load_all(_pending)
            _pending.clear()


def inline(function: F) -> F:
    """Mark a helper: part of any compiled caller, plain Python to Python."""
    helpers.append(function)
    return function


def compiled_as(function: Callable[..., Any]) -> Callable[[F], F]:
    """Mark the maker of what compiled code calls instead of `function` (Numba's `overload`)."""

    def decorate(maker: F) -> F:
        replacements.append((function, maker))
        return maker

    return decorate


@inline
def signed(value: Any) -> int:
    """Return an integer as `int64`; `int` would leave a `uint64` unsigned, and sums be floats."""
    return np.int64(value)  # type: ignore[return-value]


_plain_handlers: list[Callable[..., int]] = []  # uncompiled, an address is an index of this


def address_of(function: Callable[..., int]) -> int:
    """Return what `call_handler` takes: arenas hold integers, and passing functions costs 1 ms."""
    if isinstance(function, Compiled):
        return function.address
    _plain_handlers.append(function)
    return len(_plain_handlers) - 1


def copy_items(target: Any, target_at: int, source: Any, source_at: int, count: int) -> None:
    """Copy `count` items of one type; the ranges must not overlap."""
    target[target_at : target_at + count] = source[source_at : source_at + count]


def call_handler(address: int, arena: Arena, at: int, packet: int, now_ps: int) -> int:
    """Call the handler whose address this is."""
    return _plain_handlers[address](arena, at, packet, now_ps)


def call_back(address: int, number: int) -> int:
    """Call the function of a `Callback`, whose address this is."""
    result: int = FUNCTION(int(address))(int(number))
    return result


class External:
    """A function of the C library, for Python and for compiled code.

    Args:
        name: Its name.
        signature: Its types, all numbers; addresses are `int64`.
    """

    def __init__(self, name: str, signature: Signature) -> None:
        self.name = name
        self.signature = signature
        arguments = (each.c_types[0] for each in signature.arguments)
        prototype = ctypes.CFUNCTYPE(signature.result.c_types[0], *arguments, use_errno=True)
        self._call = prototype((name, ctypes.CDLL(None)))

    def __call__(self, *values: Any) -> Any:
        """Call it, from Python."""
        words: list[Any] = []
        for kind, value in zip(self.signature.arguments, values, strict=True):
            kind.add_to(words, value)
        return self._call(*words)
