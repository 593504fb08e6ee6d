"""The text behind a compressor's name: a first value, then settings, `1%,momentum=0.9`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ringleaf.errors import ConfigError, choose


@dataclass(frozen=True, slots=True)
class CompressorSettings:
    """The settings that a text gives.

    Attributes:
        first: The text before the first comma; empty: not given.
        named: Settings by name, all of them.
        where: How messages begin.
    """

    first: str
    named: Mapping[str, str]
    where: str

    def whole(self, text: str, least: int, most: int) -> int:
        """Return a whole number of a range.

        Raises:
            ConfigError: If the text is none.
        """
        if not text.isdecimal() or not least <= int(text) <= most:
            raise ConfigError(
                f"{self.where}: must be a whole number from {least} to {most}, got {text!r}"
            )
        return int(text)

    def number(self, text: str, least: float, most: float) -> float:
        """Return a number of a range.

        Raises:
            ConfigError: If the text is none.
        """
        try:
            number = float(text)
        except ValueError:
            number = float("nan")
        if not least <= number <= most:
            raise ConfigError(
                f"{self.where}: must be a number from {least:g} to {most:g}, got {text!r}"
            )
        return number

    @property
    def words(self) -> set[str]:
        """The settings that are words without a value."""
        return {name for name, value in self.named.items() if value == "yes"}


def parse_settings(text: str, where: str, **defaults: str) -> CompressorSettings:
    """Return what a text says; settings that it leaves out have their default.

    A word alone is a setting that is `yes`.

    Raises:
        ConfigError: If it names a setting that there is not.
    """
    first, *rest = text.split(",")
    if first.partition("=")[0] in defaults:
        first, rest = "", [first, *rest]
    named = dict(defaults)
    for part in rest:
        name, _, value = part.partition("=")
        choose(where, "setting", name.strip(), list(defaults))
        named[name.strip()] = value.strip() or "yes"
    return CompressorSettings(first.strip(), named, where)


def nothing(text: str, where: str) -> None:
    """Refuse text behind the name of a compressor that has no settings.

    Raises:
        ConfigError: If there is any.
    """
    if text:
        raise ConfigError(f"{where}: has no settings, got {text!r}; leave it out")
