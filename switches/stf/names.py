"""Resolves names of tables, actions and keys in STF files; as in p4c's testbed, suffixes will do.

Source: p4c `backends/bmv2/bmv2stf.py`, `tableByName`, `actionByName`, `TableKeyInstance.set`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ringleaf.errors import ConfigError, choose
from ringleaf.switches.source import VALID


def find_name(where: str, what: str, name: str, valid: Iterable[str]) -> str:
    """Return `name` if it is in `valid`, or else the only one of `valid` that ends with it.

    Raises:
        ConfigError: If there is none, or several.
    """
    names = list(dict.fromkeys(valid))
    if name in names:
        return name
    ending = [one for one in names if one.endswith(name)]
    if len(ending) > 1:
        raise ConfigError(f"{where}: ambiguous {what}, got {name!r} for {', '.join(ending)}")
    return ending[0] if ending else choose(where, what, name, names)


def find_key(where: str, name: str, keys: Sequence[str]) -> int:
    """Return the position of the key that `name` means; `$1` stands for `[1]`.

    Raises:
        ConfigError: If there is none.
    """
    name = re.sub(r"^(.*)\$(\d+)(.*)$", r"\1[\2]\3", name)
    whole = [name, f"{name}$", f"{name}.{VALID}"]
    if name.endswith(".valid"):
        whole.append(name.removesuffix("valid") + VALID)
    for candidate in whole:
        if candidate in keys:
            return keys.index(candidate)
    for at, key in enumerate(keys):  # if several end so, p4c takes the first
        if key.endswith((f".{name}", f".{name}$")) or (name == "valid" and key.endswith(VALID)):
            return at
    return keys.index(choose(where, "key", name, keys))
