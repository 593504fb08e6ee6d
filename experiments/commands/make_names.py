"""Complain about a wrong name that `make` was given: `make_names "make exp" topo TOPO ALGO`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ringleaf.errors import ConfigError, choose
from ringleaf.experiments.spec.renamed import other_name


def complaint(where: str, name: str, valid: Sequence[str]) -> str:
    """Return the complaint about a name, "" if it is valid."""
    new, when = other_name(name.lower(), [each.lower() for each in valid])
    if new:
        return f"{where}: {name} is called {new.upper()} {when}, got {name!r}"
    try:
        choose(where, "name", name, valid)
    except ConfigError as error:
        return str(error)
    return ""


if __name__ == "__main__":
    where, name, *valid = sys.argv[1:]
    sys.stdout.write(complaint(where, name, valid))
