"""Families of things that are found by name: files of ours, and entry points of other packages."""

from __future__ import annotations

from collections.abc import Callable, Collection, ItemsView, Iterator, Mapping, ValuesView
from functools import cached_property
from importlib import import_module
from types import MappingProxyType
from typing import Generic, TypeVar

from ringleaf.core.plugins import Plugin, PluginError, find_plugins, warn
from ringleaf.core.shipped import PACKAGE
from ringleaf.errors import ConfigError, choose

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
        kind: The class of members, if they have one that packages' members are checked for.
        taken: Names of members of ours that are no files in the folder.
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
        kind: type[T] | None = None,
        taken: Callable[[], Collection[str]] = frozenset,
        others: Mapping[str, T] = MappingProxyType({}),
        files: str = "",
    ) -> None:
        self.family = family
        self._what = what
        self._folder = folder
        self._constant = constant
        self._module = module
        self._kind = kind
        self._taken = taken
        self._others = others
        self._plugins: dict[str, Plugin] = {}
        self.files = files
        self.added: dict[str, T] = {}  # members that this process has given itself

    @cached_property
    def _places(self) -> dict[str, str]:
        """Name -> `module:constant`; a package's name that is taken is left out, with a warning.

        Raises:
            ConfigError: If another family's member has a name of this one's.
        """
        places = dict(self._own())
        ours = dict.fromkeys(self._taken(), "ours") | places
        for plugin in find_plugins(self.family):
            if plugin.name in ours:
                warn(self._left_out(plugin, ours[plugin.name]))
                continue
            places[plugin.name] = ours[plugin.name] = plugin.value
            self._plugins[plugin.name] = plugin
        for name in [name for name in self._plugins if name in self._others]:
            warn(self._left_out(self._plugins.pop(name), "another family's"))
            del places[name]
        for name in self._others:
            if name in places:
                raise ConfigError(
                    f"{self._what} {name}: must have a name of its own, got that of another "
                    f"family's member, beside {places[name]}; rename one of them"
                )
        return dict(sorted(places.items()))

    def _left_out(self, plugin: Plugin, place: str) -> str:
        return (
            f"{plugin.package}: {self._what} must have a name of its own, got {plugin.name!r}, "
            f"which is {place}; it is left out until its entry point is renamed"
        )

    def _own(self) -> Iterator[tuple[str, str]]:
        if not self._folder:
            return
        package = "ringleaf." + self._folder.replace("/", ".")
        inside = f".{self._module}" if self._module else ""
        pattern = f"*/{self._module}.py" if self._module else "[!_]*.py"
        for path in (PACKAGE / self._folder).glob(pattern):
            stem = path.parent.name if self._module else path.stem
            yield stem.replace("_", "-"), f"{package}.{stem}{inside}:{self._constant}"

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
            ConfigError: If its package does not have it, or fails.
        """
        if name in self.added:
            return self.added[name]
        if name not in self._places and name in self._others:
            return self._others[name]
        module, _, constant = self._places[name].partition(":")
        if name in self._plugins:
            plugin_member: T = self._plugins[name].load(self._what, self._kind)
            return plugin_member
        try:
            member: T = getattr(import_module(module), constant)
        except (ImportError, AttributeError) as error:
            raise ConfigError(
                f"{self._what} {name}: can't be loaded, got {self._places[name]!r}: {error}"
            ) from error
        return member

    def check(self, plugin: Plugin) -> None:
        """Check that a package's member can be loaded, and has a name of its own.

        Raises:
            RingleafError: If not.
        """
        if self._places.get(plugin.name) != plugin.value or plugin.name not in self._plugins:
            raise ConfigError("its name is taken; rename its entry point")
        plugin.load(self._what, self._kind)

    def find(self, name: str, where: str = "") -> T:
        """Return the member of that name; `where` is how a message begins.

        Raises:
            ConfigError: Naming the valid ones, if there is none.
        """
        return self[choose(where or self._what, self._what, name, self, self.files)]

    def items(self) -> ItemsView[str, T]:
        """Return all members by name, but for those of packages that fail: a warning names them."""
        members: dict[str, T] = {}
        for name in self:
            try:
                members[name] = self[name]
            except PluginError as error:
                warn(str(error))
        return members.items()

    def values(self) -> ValuesView[T]:
        """Return all members, as `items` does."""
        return dict(self.items()).values()

    def __iter__(self) -> Iterator[str]:
        return iter(sorted({*self._places, *self._others, *self.added}))

    def __len__(self) -> int:
        return len({*self._places, *self._others, *self.added})

    def __contains__(self, name: object) -> bool:  # without importing it
        return name in self._places or name in self._others or name in self.added
