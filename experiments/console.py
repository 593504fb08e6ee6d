"""The conventions of all commands: how they print, fail and end."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from errno import EPIPE
from functools import wraps
from typing import Annotated, Any

import typer

from ringleaf.errors import BackendError, ProtocolError, RingleafError

USAGE = 2
FAILURE = 1
INTERRUPTED = 130

Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


def say(line: str) -> None:
    """Print a line of data and flush it, so that pipes see rows as they come."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def guard(command: Callable[..., None]) -> Callable[..., None]:
    """Turn errors into a message and an exit code; with --debug, print a traceback, too."""

    @wraps(command)
    def guarded(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except KeyboardInterrupt:
            complain("interrupted")
            raise typer.Exit(INTERRUPTED) from None
        except OSError as error:
            if error.errno == EPIPE:
                raise  # the reader of our output has gone: that is no error, and typer handles it
            if "--debug" in sys.argv:
                traceback.print_exc()
            complain(_name_file(error))
            raise typer.Exit(FAILURE) from None
        except RingleafError as error:
            if "--debug" in sys.argv:
                traceback.print_exc()
            complain(str(error))
            ours = isinstance(error, BackendError | ProtocolError)
            raise typer.Exit(FAILURE if ours else USAGE) from None

    return guarded


def _name_file(error: OSError) -> str:
    what = "output" if error.filename is None else str(error.filename)
    return f"{what}: can't be read or written: {error.strerror or error}"


def complain(message: str) -> None:
    """Print an error message to stderr."""
    sys.stderr.write(f"ringleaf: {message}\n")
