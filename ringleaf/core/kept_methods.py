"""Methods of dataclasses, and annotations, whose code is kept between commands.

Python writes methods as texts, and compiles these for each class, in each process: a sixth of what
a small run takes; and so it compiles the annotations of each named tuple, to see that they are
expressions. A command that has its own file of them compiles only those that it lacks. They are
what Python's compiler makes of the same texts, so nothing but the time differs.
"""

from __future__ import annotations

import dataclasses
import marshal
import sys
import typing
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import MAGIC_NUMBER
from types import CodeType
from typing import Any

from ringleaf.core.private import cache_folder
from ringleaf.core.sealed import read_sealed, write_sealed
from ringleaf.errors import ConfigError

MOST = 10_000
"""The most texts in a file; if there are more, those that no class has asked for are left out."""


@contextmanager
def kept(name: str) -> Iterator[None]:
    """Have the code of classes that are made meanwhile taken from a file, and kept in it.

    If it ends with an error, as a command does that is refused, nothing more is kept.

    Args:
        name: The file's name: that of a command.
    """
    try:
        path = cache_folder() / "code" / name
        about = f"code {sys.version} {MAGIC_NUMBER.hex()} {sys.flags.optimize}"
        data = read_sealed(path, about)
    except (OSError, ConfigError):
        yield
        return
    known: dict[str, CodeType] = marshal.loads(data) if data else {}
    used: dict[str, CodeType] = {}

    def code_of(text: str, file: str, mode: str) -> CodeType:
        key = f"{mode} {text}"
        code = used.get(key) or known.get(key)
        if code is None:
            code = compile(text, file, mode, dont_inherit=True)
        used[key] = code
        return code

    def run(text: str, names: dict[str, Any], results: dict[str, Any]) -> None:
        exec(code_of(text, "<string>", "exec"), names, results)

    vars(dataclasses)["exec"] = run  # in place of the built-in ones, in these modules
    vars(typing)["compile"] = code_of
    is_done = True
    try:
        yield
    except BaseException as error:
        is_done = isinstance(error, SystemExit) and not error.code
        raise
    finally:
        del vars(dataclasses)["exec"], vars(typing)["compile"]
        if is_done and used.keys() - known.keys():
            every = known | used
            with suppress(OSError):
                write_sealed(path, marshal.dumps(every if len(every) <= MOST else used), about)
