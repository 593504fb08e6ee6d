"""What Ringleaf raises. A message reads `where: what is wrong, got VALUE; what to do`."""

from __future__ import annotations

import os
from collections.abc import Collection
from difflib import get_close_matches
from enum import IntEnum

from ringleaf.core.files import tell_file


class Code(IntEnum):
    """What kind of error it is, as gRPC numbers them (google/rpc/code.proto)."""

    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7  # of what the program says is constant
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9  # it is in use, or something must be done before
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12


class RingleafError(Exception):
    """Root of all errors that are the caller's to mend."""


class ConfigError(RingleafError):
    """An option, a spec, a program or an entry that does not fit.

    `code` is for who must tell errors apart, as P4Runtime does.
    """

    def __init__(self, message: str, code: Code = Code.INVALID_ARGUMENT) -> None:
        super().__init__(message)
        self.code = code


class TopologyError(RingleafError):
    """A network that can't be built or routed."""


class ScheduleError(RingleafError):
    """A collective that can't be scheduled, or a schedule that is wrong."""


class ProtocolError(RingleafError):
    """An agent was asked for something its state does not allow."""


class BackendError(RingleafError):
    """A switch or a network failed from outside our process."""


class DeadlockError(BackendError):
    """Switches that pause each other wait for each other, and will for ever."""


def choose(where: str, what: str, name: str, valid: Collection[str], files: str = "") -> str:
    """Return `name` if it is one of `valid`, which may contain more than it lists: files' names.

    Args:
        where: The beginning of the message.
        what: What the names are of, as messages say it.
        name: The name.
        valid: The valid ones.
        files: The files that stand for such a thing, for messages, like `*.csv`; "": none do.

    Raises:
        ConfigError: Naming the nearest, in upper or lower case, and the valid ones. If the name is
            that of a file or folder, or like one where files stand for such a thing, it says so.
    """
    if name in valid:
        return name
    names = list(valid)
    listed = ", ".join(names)
    read = f"files that are read: {files}; " if files else ""
    if file := tell_file(name) or (files and _tell_folder(name)):
        raise ConfigError(f"{where}: can't be the {what}, got {file}; {read}names: {listed}")
    if files and _is_like_a_file(name):
        wrong = f"no such file, and no {what} of that name, got {name!r}"
        raise ConfigError(f"{where}: {wrong}; {read}names: {listed}")
    by_lower = {each.lower(): each for each in names}
    close = get_close_matches(name.lower(), by_lower, n=1)
    guess = f"did you mean {by_lower[close[0]]!r}? " if close else ""
    raise ConfigError(f"{where}: unknown {what}, got {name!r}; {guess}valid: {listed}")


def _tell_folder(text: str) -> str:
    return f"the folder {text!r}" if text and os.path.isdir(text) else ""


def _is_like_a_file(name: str) -> bool:
    """Return whether a name has a folder before it, or a suffix that is no number behind it."""
    stem, dot, suffix = name.rpartition(".")
    return "/" in name or bool(stem and dot and suffix.isalnum() and not suffix.isdecimal())
