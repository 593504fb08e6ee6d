"""Our attributes inside other formats: a text like `ringleaf rank=0 label='leaf 1'`."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from ringleaf.errors import ConfigError

_SIGN = "ringleaf"


def write_note(values: Mapping[str, str]) -> str:
    """Return the text of some attributes."""
    return " ".join([_SIGN, *(shlex.quote(f"{name}={value}") for name, value in values.items())])


def is_note(text: str | None) -> bool:
    """Return whether a text is one of ours."""
    return text is not None and text.split(maxsplit=1)[:1] == [_SIGN]


def read_note(text: str | None, where: str) -> dict[str, str]:
    """Return the attributes of a text; other texts have none.

    Raises:
        ConfigError: If a text that begins as ours does is not understood.
    """
    if text is None or not is_note(text):
        return {}
    try:
        parts = [word.partition("=") for word in shlex.split(text)[1:]]
    except ValueError as error:
        raise ConfigError(f"{where}: not understood: {error}, got {text!r:.60}") from error
    if not all(equals for _, equals, _ in parts):
        raise ConfigError(f"{where}: must be attributes like rate=100G, got {text!r:.60}")
    return {name: value for name, _, value in parts}
