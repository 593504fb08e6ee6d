"""The words of a command, as numbers, and whether P4Runtime can say what they make."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from finsy import P4Schema

from ringleaf.errors import ConfigError
from ringleaf.switches.stf.commands import whole


def numbers(where: str, words: Sequence[str], count: int | None = None) -> list[int]:
    """Return words as whole numbers.

    Raises:
        ConfigError: If one is none, or there is another number of words than `count`.
    """
    if not words or (count is not None and len(words) != count):
        raise ConfigError(f"{where}: must have {count or 'some'} numbers, got {list(words)}")
    return [whole(where, word) for word in words]


def check_form(where: str, words: Sequence[str], least: int, form: str) -> None:
    """Check that a command has enough words.

    Raises:
        ConfigError: If not; the message has the command's form.
    """
    if len(words) < least:
        raise ConfigError(f"{where}: must be {form}, got {list(words)}")


def check_encodes(where: str, entity: Any, schema: P4Schema) -> None:
    """Check that one of finsy's entities can be said in P4Runtime.

    Raises:
        ConfigError: If a value does not fit.
    """
    try:
        entity.encode(schema)
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        raise ConfigError(f"{where}: {error}") from error
