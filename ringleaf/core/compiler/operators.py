"""Operators on numbers, as Numba knows them, looked up once.

For each addition of a program Numba asks all of NumPy's and its own kinds of addition again which
of them takes these types, and makes an error of each that does not: half of the time to type it.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba import types
from numba.core.types import functions

_OPERATORS = frozenset(value for value in vars(operator).values() if callable(value))
_PLAIN = (types.Number, types.Boolean, types.IntegerLiteral)


@contextmanager
def remembered() -> Iterator[None]:
    """Have Numba remember meanwhile which operator takes which numbers."""
    kind: Any = functions.BaseFunction
    search = kind.get_call_type
    known: dict[Any, Any] = {}

    def get_call_type(self: Any, context: Any, args: Any, kws: Any) -> Any:
        if self.typing_key not in _OPERATORS or not all(isinstance(each, _PLAIN) for each in args):
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
