"""What installed packages say of themselves: versions, and whether they have entry points.

`importlib.metadata` knows that of every package, and takes 25 ms of each command for it: to be
imported, to parse all that a package says, and to look for entry points in each. Here the folders
of packages are listed once, and files are read as far as needed. What is packed in another way is
left to it.
"""

from __future__ import annotations

import os
import re
import sys
from functools import cache
from importlib.machinery import PathFinder

_FOLDERS = (".dist-info", ".egg-info")
_VERSION = b"Version:"


def version_of(package: str) -> str | None:
    """Return the version of an installed package; None: it is not there."""
    name = _normal(package)
    for folder in _folders(tuple(sys.path)) or ():
        if _package_of(folder) == name:
            if version := _version_in(folder):
                return version
            break
    from importlib import metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def may_have_points(group: str, besides: str = "") -> bool:
    """Return whether a package may have entry points of a group whose name begins so.

    Args:
        group: The beginning.
        besides: A package that is not looked at.
    """
    folders = _folders(tuple(sys.path))
    return folders is None or any(
        f"[{group}".encode() in _points_in(each) and _package_of(each) != besides
        for each in folders
    )


@cache
def _folders(path: tuple[str, ...]) -> list[str] | None:
    """Return the folders that tell of packages, as they are met; None: there may be others."""
    finders = [each for each in sys.meta_path if each is not PathFinder]
    if any(hasattr(each, "find_distributions") for each in finders):
        return None
    folders = []
    for place in path:
        try:
            names = os.listdir(place or ".")
        except FileNotFoundError:
            continue
        except OSError:  # an archive
            return None
        folders += [os.path.join(place, name) for name in names if name.endswith(_FOLDERS)]
        if any(name.endswith(".egg") for name in (place, *names)):
            return None
    return folders


def _package_of(folder: str) -> str:
    return _normal(os.path.basename(folder).partition("-")[0])


def _version_in(folder: str) -> str:
    try:
        with open(os.path.join(folder, "METADATA"), "rb") as file:
            lines = (line for line in file if line.startswith(_VERSION))
            return next(lines, b"").removeprefix(_VERSION).decode().strip()
    except OSError:
        return ""


def _points_in(folder: str) -> bytes:
    try:
        with open(os.path.join(folder, "entry_points.txt"), "rb", buffering=0) as file:
            return file.read()
    except OSError:
        return b""


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "_", name).lower()
