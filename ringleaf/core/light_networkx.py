"""NetworkX without its algorithms, until one of them is used: what most commands need is a graph.

To import all of it takes as long as to simulate a small ring. A command that has called `install`
imports none of it at `import networkx`; the classes of graphs when the first is asked for; and all
of the package with any other name of it, or any module in it. A release that begins in another way
is imported whole, and so is slower and no worse.
"""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec, PathFinder
from threading import RLock
from types import ModuleType
from typing import Any

NAME = "networkx"

_GRAPHS = frozenset({"Graph", "DiGraph"})
_BEGINNING = """
from networkx.exception import *
from networkx import utils
from networkx.utils import _clear_cache, _dispatchable
from networkx.classes import *
"""
"""How the package itself begins, but for what graphs do without."""


class LightNetworkx(ModuleType):
    """The package before it is whole.

    It has no `__path__`, which a package needs for modules of its own, so that the import of one
    asks for it, and finds all that the package has imported before that module.
    """

    def __init__(self, spec: ModuleSpec) -> None:
        super().__init__(NAME)
        self.__spec__ = spec
        self.__loader__ = spec.loader
        self.__file__ = spec.origin
        self.__package__ = NAME
        self._lock = RLock()
        self._is_loading = False

    def __getattr__(self, name: str) -> Any:
        with self._lock:  # another thread may be loading it
            if name not in self.__dict__ and not self._is_loading:
                self._is_loading = True
                try:
                    self._load(name)
                finally:
                    self._is_loading = False
        try:
            return self.__dict__[name]
        except KeyError:
            raise AttributeError(f"module {NAME!r} has no attribute {name!r}") from None

    def _load(self, name: str) -> None:
        """Load the package until it has this name."""
        spec = self.__spec__
        assert spec is not None
        assert spec.loader is not None
        self.__path__ = spec.submodule_search_locations or []
        if name in _GRAPHS:
            try:
                exec(_BEGINNING, self.__dict__)
            except (ImportError, AttributeError):  # another release
                for each in [each for each in sys.modules if each.startswith(f"{NAME}.")]:
                    del sys.modules[each]
            else:
                del self.__path__
                return
        spec.loader.exec_module(self)
        self.__class__ = ModuleType  # type: ignore[assignment]


def install() -> None:
    """Have `import networkx` import it bit by bit in this process, unless it is there already."""
    spec = PathFinder.find_spec(NAME)
    if NAME not in sys.modules and spec is not None:
        sys.modules[NAME] = LightNetworkx(spec)
