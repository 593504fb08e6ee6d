"""Modules of other packages that are imported only when something of them is used."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any


class _StandIn(ModuleType):
    """A module in another's place, which imports that when an attribute is first read."""

    def __getattr__(self, attribute: str) -> Any:
        return getattr(import_module(self.__name__), attribute)


@contextmanager
def standing_in(package: str, module: str) -> Iterator[None]:
    """Have `from package import module` give a stand-in meanwhile, unless it is imported already.

    Whoever has imported it so keeps the stand-in, which reads the module's attributes for it.

    Raises:
        ImportError: If there is no such package.
    """
    name = f"{package}.{module}"
    if name in sys.modules:
        yield
        return
    parent = import_module(package)
    stand_in = _StandIn(name)
    setattr(parent, module, stand_in)
    try:
        yield
    finally:
        if getattr(parent, module, None) is stand_in:  # else, it was used, and so imported
            delattr(parent, module)
