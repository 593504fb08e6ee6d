"""Families of things that are found by name: files of ours, and entry points of other packages."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from ringleaf.errors import ConfigError, choose
from ringleaf.shipped import PACKAGE

T = TypeVar("T")


class Registry(Mapping[str, T], Generic[T]):
    """The members of one family by name, sorted.

    A file in the family's folder is a member by being there: `algorithms/all_to_all.py` is
    `all-to-all`, and its constant `constant` the member. An installed package adds one by an entry
    point in the group `ringleaf.FAMILY`, which names a module and a constant of its own. Nothing is
    imported before it is asked for by name, as some members are compiled when they are.

    Args:
        family: What entry points call it, in the plural: `algorithms`.
        what: What messages call a member: `algorithm`.
        folder: Where its files are, below the package: `collectives/algorithms`; "": nowhere.
        constant: The name under which a file has its member.
        module: Where in a member's folder it is, if members are folders and not files.
        others: Further members, which another family's members bring along.
        files: The files that are members, too, for messages: `*.csv`.
    """

    def __init__(
        self,
        family: str,
        what: str,
        folder: str = "",
        constant: str = "",
        *,
        module: str = "",
        others: Mapping[str, T] = MappingProxyType({}),
        files: str = "",
    ) -> None:
        self.family = family
        self._what = what
        self._folder = folder
        self._constant = constant
        self._module = module
        self._others = others
        self.files = files
        self.added: dict[str, T] = {}  # members that this process has given itself

    @cached_property
    def _places(self) -> dict[str, str]:
        """Name -> `module:constant`.

        Raises:
            ConfigError: If a package's name is taken.
        """
        places = dict(self._own())
        for point in self._points():
            if point.name in places:
                raise ConfigError(
                    f"{_origin(point)}: {self._what} must have a name of its own, got "
                    f"{point.name!r}, which is {places[point.name]}; rename its entry point"
                )
            places[point.name] = point.value
        for name in self._others:
            if name in places:
                raise ConfigError(
                    f"{self._what} {name}: must have a name of its own, got that of another "
                    f"family's member, beside {places[name]}; rename one of them"
                )
        return dict(sorted(places.items()))

    def _own(self) -> Iterator[tuple[str, str]]:
        if not self._folder:
            return
        package = "ringleaf." + self._folder.replace("/", ".")
        inside = f".{self._module}" if self._module else ""
        pattern = f"*/{self._module}.py" if self._module else "[!_]*.py"
        for path in (PACKAGE / self._folder).glob(pattern):
            stem = path.parent.name if self._module else path.stem
            yield stem.replace("_", "-"), f"{package}.{stem}{inside}:{self._constant}"

    def _points(self) -> list[EntryPoint]:
        return sorted(_points_on(tuple(sys.path)).select(group=f"ringleaf.{self.family}"))

    def shipped(self) -> list[str]:
        """Return the names of our own members, those with a file in the family's folder, sorted."""
        return sorted(name for name, _ in self._own())

    def module_of(self, name: str) -> str:
        """Return the name of the module that has a member, which is not imported for that."""
        return self._places[name].partition(":")[0]

    def __getitem__(self, name: str) -> T:
        """Import the member of that name.

        Raises:
            KeyError: If there is none.
            ConfigError: If its package does not have it.
        """
        if name in self.added:
            return self.added[name]
        if name in self._others:
            return self._others[name]
        module, _, constant = self._places[name].partition(":")
        try:
            member: T = getattr(import_module(module), constant)
        except (ImportError, AttributeError) as error:
            raise ConfigError(
                f"{self._what} {name}: can't be loaded, got {self._places[name]!r}: {error}"
            ) from error
        return member

    def find(self, name: str, where: str = "") -> T:
        """Return the member of that name; `where` is how a message begins.

        Raises:
            ConfigError: Naming the valid ones, if there is none.
        """
        return self[choose(where or self._what, self._what, name, self, self.files)]

    def __iter__(self) -> Iterator[str]:
        return iter(sorted({*self._places, *self._others, *self.added}))

    def __len__(self) -> int:
        return len({*self._places, *self._others, *self.added})

    def __contains__(self, name: object) -> bool:  # without importing it
        return name in self._places or name in self._others or name in self.added


@cache
def _points_on(path: tuple[str, ...]) -> Any:
    """Return the entry points of all packages on a path, to select from; finding takes 10 ms."""
    del path  # `entry_points` looks at it
    return entry_points()


def _origin(point: EntryPoint) -> str:
    package = point.dist.name if point.dist else point.value
    return f"package {package}"
