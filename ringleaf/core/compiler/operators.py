"""Functions of numbers and arenas' arrays, as Numba knows them, looked up once.

For each addition of a program Numba asks all of NumPy's and its own kinds of addition again which
of them takes these types, and makes an error of each that does not: half of the time to type it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba import types
from numba.core.types import functions

from ringleaf.core.compiler.arenas import ArenaArray

_PLAIN = (types.Number, types.Boolean, types.IntegerLiteral, ArenaArray)


@contextmanager
def remembered() -> Iterator[None]:
    """Have Numba remember meanwhile which function takes which types."""
    kind: Any = functions.BaseFunction
    search = kind.get_call_type
    known: dict[Any, Any] = {}

    def get_call_type(self: Any, context: Any, args: Any, kws: Any) -> Any:
        if kws or not all(isinstance(each, _PLAIN) for each in args):
            return search(self, context, args, kws)
        key = id(self), args
        if key not in known:
            known[key] = search(self, context, args, kws), self  # which keeps its number its own
        return known[key][0]

    kind.get_call_type = get_call_type
    try:
        yield
    finally:
        kind.get_call_type = search
