"""The conventions of all commands: how they print, fail and end."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable
from errno import EAGAIN, EDQUOT, EFBIG, EMFILE, ENFILE, ENOMEM, ENOSPC, EPIPE
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer

from ringleaf.core import compiling, interrupts, plugins
from ringleaf.core.disk import is_stream, write_text
from ringleaf.errors import BackendError, ProtocolError, RingleafError

USAGE = 2
FAILURE = 1
INTERRUPTED = 130

Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


def say(line: str) -> None:
    """Print a line of data and flush it, so that pipes see rows as they come.

    Raises:
        OSError: If stdout can't be written; the error names it.
    """
    try:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
    except OSError as error:
        error.filename = "stdout"
        raise


def print_or_write(text: str, path: Path | None) -> bool:
    """Print a text, or write it to a file, and return whether that is a file that can be named.

    What is written to `/dev/stdout` has nothing after it.
    """
    if path is None:
        say(text.rstrip("\n"))
        return False
    write_text(path, text)
    return not is_stream(path)


def say_if_read(line: str) -> None:
    """Print a line as `say` does, or none any more if the reader of stdout has gone (`| head`).

    Runs do so, as they are for their files, too.
    """
    try:
        say(line)
    except BrokenPipeError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


Write = Callable[[str], object]


def can_draw(*streams: TextIO) -> bool:
    """Return whether streams are terminals, and those know more than lines, as dumb ones don't."""
    return os.environ.get("TERM") != "dumb" and all(each.isatty() for each in streams)


def to_terminal() -> Write | None:
    """Return a function that writes to stderr; None if that is no terminal, or a dumb one."""
    if not can_draw(sys.stderr):
        return None

    def write(text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()

    return write


def columns() -> int:
    """Return how many letters fit into a line of the terminal on stderr, if it is one.

    A terminal that does not say its size has 0 columns.
    """
    try:
        size = os.get_terminal_size(sys.stderr.fileno())
    except (OSError, ValueError):
        return sys.maxsize
    return size.columns - 1 if size.columns > 1 else sys.maxsize


def in_place(text: str) -> str:
    """Return what replaces the terminal's line by a text, whose end is cut where it ends.

    What is written next goes over it.
    """
    return f"\r\x1b[K{text[: columns()]}\r"


def in_a_line(text: str, room: int) -> str:
    """Return the beginning of a text: a clause, or the whole words that there is room for."""
    clause = text.partition("  [")[0].partition("; ")[0]
    if len(clause) <= room:
        return clause
    words = clause
    while len(words) > room - 3 and words:
        words = words.rpartition(" ")[0].rstrip(" ,:(")
    return f"{words or clause[: room - 3]}..."


def guard(command: Callable[..., None]) -> Callable[..., None]:
    """Turn errors into a message and an exit code; with --debug, print a traceback, too.

    Whatever fails once a signal has asked for the end is the signal's doing: child processes have
    got it, too, and may have ended first.
    """

    @wraps(command)
    def guarded(*args: Any, **kwargs: Any) -> None:
        interrupts.raise_instead()
        if write := to_terminal():
            compiling.show = lambda text: write(in_place(text))
        else:
            compiling.notice = complain
        try:
            command(*args, **kwargs)
        except typer.Exit:
            raise
        except (KeyboardInterrupt, RingleafError) as error:
            raise typer.Exit(_report(error)) from None
        except (Exception, SystemExit) as error:  # noqa: BLE001 - other packages raise what they like
            raise typer.Exit(report(error)) from None

    return guarded


def report(error: BaseException) -> int:
    """Say what has ended a command, and return its exit status.

    Raises:
        BaseException: The error, if it is a fault of ours.
    """
    return _report(_explained(error))


def _explained(error: BaseException) -> BaseException:
    """Return an error that can be told in a line; others are faults of ours, and raised.

    Raises:
        BaseException: Such a fault, whose traceback is what we need.
    """
    if isinstance(error, OSError) and error.errno == EPIPE:
        return error
    if line := plugins.failure(error):
        failed = BackendError(line)
        failed.__cause__ = error
        return failed
    if line := _limit(error):
        failed = BackendError(line)
        failed.__cause__ = error
        return failed
    if isinstance(error, OSError) or interrupts.asked():
        return error
    raise error


def _limit(error: BaseException) -> str:
    """Return a line for a limit of the machine or of this process that was met, or ""."""
    text = plugins.described(error)
    if isinstance(error, MemoryError):
        return f"memory: there is not enough, got {text}; take smaller sizes, or raise ulimit -v"
    if isinstance(error, RuntimeError) and "start new thread" in text:
        return f"threads: the system allows no more, got {text}; raise ulimit -u or -v"
    if isinstance(error, ImportError | OSError) and any(each in text for each in _NOT_LOADED):
        return f"library: can't be loaded, got {text}; raise ulimit -v, or install it again"
    if isinstance(error, OSError) and error.errno in _LIMITS:
        what, remedy = _LIMITS[error.errno]
        return f"{error.filename or 'system'}: {what}, got {error.strerror}; {remedy}"
    return ""


_NOT_LOADED = ("shared object", "cannot open shared", "failed to map", "cannot allocate memory")
_LIMITS = {
    EMFILE: ("this process may open no more files", "raise ulimit -n"),
    ENFILE: ("the system may open no more files", "end other programs"),
    ENOMEM: ("there is not enough memory", "take smaller sizes, or raise ulimit -v"),
    EAGAIN: ("the system allows no more processes", "raise ulimit -u"),
    EFBIG: ("files may not be as large", "raise ulimit -f"),
    ENOSPC: ("its disk is full", "free some room, or name another folder"),
    EDQUOT: ("the user's share of its disk is full", "free some room, or name another folder"),
}
"""Errors of the system that are limits: what they mean, and what to do."""


def _report(error: BaseException) -> int:
    """Say what has ended a command, and return its exit status."""
    if isinstance(error, OSError) and error.errno == EPIPE:
        raise error  # the reader of our output has gone: that is no error, and typer handles it
    if "--debug" in sys.argv:
        traceback.print_exception(error)
    number = getattr(error, "number", signal.SIGINT)
    if isinstance(error, KeyboardInterrupt) or (number := interrupts.asked()):
        complain(interrupts.told(number, error))
        return interrupts.status(number)
    if isinstance(error, OSError):
        complain(_name_file(error))
        return FAILURE
    complain(str(error))
    return FAILURE if isinstance(error, BackendError | ProtocolError) else USAGE


def _name_file(error: OSError) -> str:
    what = "output" if error.filename is None else str(error.filename)
    return f"{what}: can't be read or written, got {error.strerror or error}; name another"


def complain(message: str) -> None:
    """Print an error message to stderr, whose terminal obeys nothing that is in it."""
    shown = "".join(
        each if each.isprintable() or each == "\n" else ascii(each)[1:-1] for each in message
    )
    sys.stderr.write(f"ringleaf: {shown}\n")
