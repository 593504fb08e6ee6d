"""The words of scripts, and those that are modules, as of `python -m package.train`."""

from __future__ import annotations

import os
import shlex
import sys
from importlib.machinery import ModuleSpec, PathFinder
from typing import Any

from ringleaf.errors import ConfigError

AS_MODULE = "-m"
"""The word before a module's name."""


def script_words(script: Any) -> tuple[str, ...]:
    """Return a script with its arguments: a list of words, or a line as one would type it."""
    words = shlex.split(script) if isinstance(script, str) else script
    return tuple(map(str, words or ()))


def check_module(name: str) -> None:
    """Check that Python finds a module from here, and can run it; none is imported.

    Raises:
        ConfigError: If it does not.
    """
    spec = _find(name)
    if spec is not None and spec.submodule_search_locations is not None:
        spec = _find(f"{name}.__main__")  # a package is run by this module
    if spec is None or spec.origin is None:
        raise ConfigError(
            f"script: must be a module that Python finds from here, got {name!r}, and there is "
            "none; name it as for python -m: package.train"
        )


def _find(name: str) -> ModuleSpec | None:
    """Return where a module is, without importing the packages that it is in."""
    spec: ModuleSpec | None = None
    places: list[str] = [os.getcwd(), *sys.path]
    parts = name.split(".")
    for depth, part in enumerate(parts, 1):
        spec = PathFinder.find_spec(".".join(parts[:depth]), places) if part else None
        if spec is None:
            return None
        places = list(spec.submodule_search_locations or ())
    return spec
