"""Large packages of which most commands need little, imported bit by bit.

To import all of NetworkX takes as long as to simulate a small ring, and finsy, with gRPC, takes
longer still. A command that has called `install` imports nothing at `import networkx`, or of
`finsy.proto`, and then what the first name needs that is asked for: the classes of graphs, or
messages of P4Runtime. Any other name, or module, of NetworkX imports it whole, and so does any
other kind of message. A release that is made in another way is imported whole, too, and so is
slower and no worse. `importlib.metadata`, in which packages look for plugins, is imported when
there may be some.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from threading import RLock
from types import ModuleType
from typing import Any, Self

from ringleaf.core.installed import may_have_points

NETWORKX = "networkx"
FINSY = "finsy"
MESSAGES = "finsy.proto"
METADATA = "importlib.metadata"

_GRAPHS = frozenset({"Graph", "DiGraph"})
_BEGINNING = """
from networkx.exception import *
from networkx import utils
from networkx.utils import _clear_cache, _dispatchable
from networkx.classes import *
"""
"""How NetworkX itself begins, but for what graphs do without."""

_KINDS = {
    "p4i": "p4.config.v1.p4info_pb2",
    "p4t": "p4.config.v1.p4types_pb2",
    "p4d": "p4.v1.p4data_pb2",
    "p4r": "p4.v1.p4runtime_pb2",
}
"""The modules of messages that need no gRPC, by finsy's names for them."""


class LightPackage(ModuleType):
    """A package before it is whole.

    If it has no `__path__`, which a package needs for modules of its own, the import of one asks
    for it, and finds all that the package has imported before that module.
    """

    def __init__(self, spec: ModuleSpec) -> None:
        super().__init__(spec.name)
        self.__spec__ = spec
        self.__loader__ = spec.loader
        self.__file__ = spec.origin
        self.__package__ = spec.name
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
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}") from None

    def _load(self, name: str) -> None:
        """Load the package until it has this name."""
        spec = self.__spec__
        assert spec is not None
        assert spec.loader is not None
        self.__path__ = spec.submodule_search_locations or []
        if self._load_part(name):
            return
        spec.loader.exec_module(self)
        self.__class__ = ModuleType  # type: ignore[assignment]

    def _load_part(self, name: str) -> bool:
        """Load what has this name, and return True, if that takes less than all of the package."""
        return False


class LightNetworkx(LightPackage):
    """NetworkX without its algorithms, until one of them is used."""

    def _load_part(self, name: str) -> bool:
        if name not in _GRAPHS:
            return False
        try:
            exec(_BEGINNING, self.__dict__)
        except (ImportError, AttributeError):  # another release
            for each in [each for each in sys.modules if each.startswith(f"{NETWORKX}.")]:
                del sys.modules[each]
            return False
        del self.__path__
        return True


class LightMessages(LightPackage):
    """Messages of P4Runtime, without all others, and without gRPC, which carries them.

    It has its `__path__` from the start: its modules import one another, and nothing of itself.
    """

    def __init__(self, spec: ModuleSpec) -> None:
        super().__init__(spec)
        self.__path__ = spec.submodule_search_locations or []

    def _load(self, name: str) -> None:
        with _stood_for(FINSY):
            super()._load(name)
        if type(self) is ModuleType:  # whole
            import_module(FINSY).__dict__["proto"] = self

    def _load_part(self, name: str) -> bool:
        if name not in _KINDS:
            return False
        try:
            parts = {each: import_module(f"{MESSAGES}.{at}") for each, at in _KINDS.items()}
        except ImportError:  # another release
            return False
        self.__dict__.update(parts)
        return True


class NoPoints(tuple[()]):
    """The entry points of a group that no package has, as `importlib.metadata` gives them."""

    names: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()

    def select(self, **_asked: Any) -> Self:
        """Return those of them that fit: none."""
        return self


class LightMetadata(LightPackage):
    """`importlib.metadata`, which packages import to ask for entry points that mostly nobody has.

    NetworkX has a backend itself, for its tests, and leaves it out.
    """

    def __init__(self, spec: ModuleSpec) -> None:
        super().__init__(spec)
        self.__path__ = spec.submodule_search_locations or []  # else it is asked for

    def _load_part(self, name: str) -> bool:
        if name != "entry_points":
            return False

        def entry_points(**asked: Any) -> Any:
            group = asked.get("group", "")
            besides = NETWORKX if group.startswith(f"{NETWORKX}.") else ""
            if group and not may_have_points(group, besides):
                return NoPoints()
            if self.__dict__["entry_points"] is entry_points:
                del self.__dict__["entry_points"]
                self._load("")
            return self.__dict__["entry_points"](**asked)

        self.__dict__["entry_points"] = entry_points
        return True


@contextmanager
def _stood_for(name: str) -> Iterator[None]:
    """Have a package that is not there stood for, so that modules in it are imported without it."""
    if name in sys.modules:
        yield
        return
    sys.modules[name] = ModuleType(name)
    try:
        yield
    finally:
        del sys.modules[name]


def install() -> None:
    """Have these packages imported bit by bit in this process, unless they are there already."""
    spec = PathFinder.find_spec(NETWORKX)
    if NETWORKX not in sys.modules and spec is not None:
        sys.modules[NETWORKX] = LightNetworkx(spec)
    about = PathFinder.find_spec(METADATA, importlib.__path__)
    if METADATA not in sys.modules and about is not None:
        sys.modules[METADATA] = importlib.__dict__["metadata"] = LightMetadata(about)
    whole = PathFinder.find_spec(FINSY)
    if FINSY not in sys.modules and whole is not None:
        spec = PathFinder.find_spec(MESSAGES, whole.submodule_search_locations)
        if spec is not None:
            sys.modules[MESSAGES] = LightMessages(spec)
