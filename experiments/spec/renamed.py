"""Options that have another name than in earlier versions: old files and habits are told."""

from __future__ import annotations

from collections.abc import Collection

from ringleaf.errors import ConfigError, choose

RENAMED = {"order": "scheduler", "scheduler": "discipline"}
"""New names by old ones. Ports have a queueing discipline; jobs have a flow scheduler."""


def choose_option(where: str, name: str, valid: Collection[str]) -> None:
    """Check that there is an option of this name.

    Args:
        where: The beginning of messages: `spec jobs.yaml`.
        name: The name, as typed or from a file.
        valid: The names of all options.

    Raises:
        ConfigError: If there is none; the message has its new name, or near ones.
    """
    new = RENAMED.get(name)
    if name not in valid and new in valid:
        raise ConfigError(f"{where}: {name} is called {new} since 0.2.0, got {name!r}")
    choose(where, "option", name, valid)
