"""Imports of packages that write their own docstrings while they are imported.

NumPy takes indents from hundreds of them, and matplotlib adds a list of properties to those of each
class, which is a third of its import. The process that draws shows none of them.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any


@contextmanager
def indented() -> Iterator[None]:
    """Have docstrings keep their indents meanwhile."""
    with _replaced(inspect, "cleandoc", lambda doc: doc):
        yield


@contextmanager
def without_properties() -> Iterator[None]:
    """Have matplotlib's classes made without lists of their properties meanwhile.

    A release that makes them in another way is slower and no worse.
    """
    from matplotlib import artist

    with ExitStack() as stack:
        stack.enter_context(indented())
        for owner, name, other in (
            (artist.Artist, "_update_set_signature_and_docstring", classmethod(lambda cls: None)),
            (artist, "kwdoc", lambda artist: ""),
        ):
            if name in vars(owner):
                stack.enter_context(_replaced(owner, name, other))
        yield


@contextmanager
def _replaced(owner: Any, name: str, other: Any) -> Iterator[None]:
    usual = vars(owner)[name]
    setattr(owner, name, other)
    try:
        yield
    finally:
        setattr(owner, name, usual)
