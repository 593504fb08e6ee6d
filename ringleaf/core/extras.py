"""Packages that only some commands need: an extra of ours installs them."""

from __future__ import annotations

from importlib.util import find_spec

from ringleaf.errors import ConfigError

EXTRAS = {
    "mininet": "live",
    "textual": "tui",
    "torch": "torch",
    "distributed": "machines",
    "scipy": "routing",
    "z3": "synthesis",
}
"""Package to import -> the extra that has it (`pip install 'ringleaf[live]'`)."""


def is_missing(package: str) -> bool:
    """Return whether a package of `EXTRAS` is not installed."""
    try:
        spec = find_spec(package)
    except ImportError:  # a hook of imports hides it
        return True
    return spec is None or spec.origin is None  # folders remain of packages that were removed


def remedy(package: str) -> str:
    """Return the command that installs a package of `EXTRAS`."""
    return f"pip install 'ringleaf[{EXTRAS[package]}]'"


def require(package: str, where: str) -> None:
    """See to it that a package of `EXTRAS` is there.

    Raises:
        ConfigError: Saying how to install it.
    """
    if is_missing(package):
        raise ConfigError(
            f"{where}: needs the package {package}, got none installed; {remedy(package)}"
        )
