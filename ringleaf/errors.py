"""What Ringleaf raises. A message reads `where: what is wrong, got VALUE; what to do`."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class RingleafError(Exception):
    """Root of all errors that are the caller's to mend."""


class ConfigError(RingleafError):
    """An option, a spec, a program or an entry that does not fit."""


class TopologyError(RingleafError):
    """A network that can't be built or routed."""


class ScheduleError(RingleafError):
    """A collective that can't be scheduled, or a schedule that is wrong."""


class ProtocolError(RingleafError):
    """An agent was asked for something its state does not allow."""


class BackendError(RingleafError):
    """A switch or a network failed from outside our process."""


def choose(where: str, what: str, name: str, valid: Iterable[str]) -> str:
    """Return `name` if it is one of `valid`.

    Raises:
        ConfigError: Naming the valid ones, and the nearest if there is one.
    """
    names = list(valid)
    if name in names:
        return name
    close = get_close_matches(name, names, n=1)
    guess = f"; did you mean {close[0]!r}?" if close else ""
    raise ConfigError(f"{where}: unknown {what}, got {name!r}; valid: {', '.join(names)}{guess}")
