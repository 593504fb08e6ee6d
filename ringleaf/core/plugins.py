"""Entry points of other packages, and the errors of their code.

Whatever a package raises is told in one line, with its name and the line of its code. What it means
for its user, it raises as our own errors (`ringleaf.errors`), which are told as they are.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from traceback import walk_tb
from typing import TYPE_CHECKING, Any

from ringleaf.core.installed import may_have_points
from ringleaf.errors import ConfigError, RingleafError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "ringleaf."


class PluginError(ConfigError):
    """A member of another package that can't be loaded."""


@dataclass(frozen=True, slots=True)
class Plugin:
    """An entry point.

    Args:
        family: The family that it is for, as it names it: `algorithms`.
        name: The member's name.
        value: `module:constant`.
        package: The package that has it, with its version.
    """

    family: str
    name: str
    value: str
    package: str

    @property
    def module(self) -> str:
        """The module that has the member."""
        return self.value.partition(":")[0].strip()

    def load(self, what: str, kind: type | None = None) -> Any:
        """Import the member; `what` is what messages call it.

        Raises:
            RingleafError: That the package raises itself.
            PluginError: If the package fails in any other way, or has none of that kind.
        """
        where = f"{what} {self.name}: can't be loaded, got {self.value!r} of {self.package}"
        try:
            member = getattr(import_module(self.module), self.value.partition(":")[2].strip())
        except RingleafError:
            raise
        except (Exception, SystemExit) as error:
            at = _place_of(error, self.module.partition(".")[0])
            at = f" at {at}" if at else ""
            raise PluginError(
                f"{where}: {described(error)}{at}; mend or remove that package"
            ) from error
        if kind is not None and not isinstance(member, kind):
            raise PluginError(
                f"{where}: must be {_article(kind.__name__)}, got {type(member).__name__}; "
                "mend or remove that package"
            )
        _loaded.add(self)
        return member


_loaded: set[Plugin] = set()


def _article(name: str) -> str:
    return f"{'an' if name[0] in 'AEIOU' else 'a'} {name}"


def find_plugins(family: str = "") -> Iterator[Plugin]:
    """Yield the entry points for a family, or for all, sorted."""
    for point in _points_on(tuple(sys.path)):
        if point.group.startswith(GROUP) and family in ("", point.group.removeprefix(GROUP)):
            yield Plugin(
                point.group.removeprefix(GROUP), point.name, point.value, _package_of(point)
            )


@cache
def _points_on(path: tuple[str, ...]) -> list[EntryPoint]:
    """Return our entry points of all packages on a path, sorted."""
    del path  # what is called here looks at it
    if not may_have_points(GROUP):
        return []
    from importlib.metadata import entry_points

    installed = entry_points()
    points = [point for group in installed.groups for point in installed.select(group=group)]
    ours = (point for point in points if point.group.startswith(GROUP))
    return sorted(ours, key=lambda point: (point.group, point.name, point.value))


def _package_of(point: EntryPoint) -> str:
    if point.dist is None:
        return f"package {point.value}"
    return f"package {point.dist.name} {point.dist.version}"


def failure(error: BaseException) -> str:
    """Return a line for an error in another package's code, or with its members in use; or "".

    It is the innermost package in the traceback that has entry points: what that has called raised
    the error for its sake.
    """
    roots = {plugin.module.partition(".")[0]: plugin.package for plugin in find_plugins()}
    inner = [root for root, _ in _places(error) if root in roots]
    if inner:
        at = _place_of(error, inner[-1])
        return f"{roots[inner[-1]]}: {described(error)} at {at}; mend or remove that package"
    if not _loaded:
        return ""
    *_, (_, at) = _places(error)
    used = ", ".join(sorted({f"{plugin.name!r} of {plugin.package}" for plugin in _loaded}))
    return f"{described(error)} at {at}, with {used}; --debug shows more"


def _place_of(error: BaseException, root: str) -> str:
    """Return `file:line` of the innermost code of a package in the traceback, or ""."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}"
    return next((at for name, at in reversed(_places(error)) if name == root), "")


def _places(error: BaseException) -> list[tuple[str, str]]:
    """Return the package and `file:line` of each call in the traceback, the innermost last."""
    return [
        (str(frame.f_globals.get("__name__", "")).partition(".")[0],
         f"{frame.f_code.co_filename}:{line}")
        for frame, line in walk_tb(error.__traceback__)
    ]  # fmt: skip


def described(error: BaseException) -> str:
    """Return an error in one line: its type, and what it says."""
    message = " ".join(str(error).split())
    return f"{type(error).__name__}: {message:.300}" if message else type(error).__name__


_warned: set[str] = set()


def warn(line: str) -> None:
    """Write a warning to stderr, once."""
    if line not in _warned:
        _warned.add(line)
        sys.stderr.write(f"ringleaf: {line}\n")
