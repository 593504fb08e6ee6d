"""Code that Python makes of texts in each process, kept between commands.

Python writes the methods of dataclasses as texts, and compiles these for each class; so it compiles
the annotations of each named tuple, to see that they are expressions, and each regular expression
for its own machine: together a fifth of what a small run takes. A command that has its own file of
them compiles only those that it lacks. They are what Python's compilers make of the same texts, so
nothing but the time differs.
"""

from __future__ import annotations

import dataclasses
import marshal
import re
import sys
import typing
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.util import MAGIC_NUMBER
from types import FunctionType, SimpleNamespace
from typing import Any

from ringleaf.core.private import cache_folder
from ringleaf.core.sealed import read_sealed, write_sealed
from ringleaf.errors import ConfigError

_compiler: Any = vars(re)["_compiler"]
_compile_pattern = _compiler.compile

MOST = 10_000
"""The most texts in a file; if there are more, those that nobody has asked for are left out."""


@contextmanager
def kept(name: str) -> Iterator[None]:
    """Have the code of classes and patterns that are made meanwhile taken from a file.

    What it lacks is added, but if this ends with an error, as a command does that is refused.

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
    store = _Store(marshal.loads(data) if data else {})
    vars(dataclasses)["exec"] = store.run  # in place of the built-in ones, in these modules
    vars(typing)["compile"] = store.code_of
    _compiler.compile = store.pattern_of
    is_done = True
    try:
        yield
    except BaseException as error:
        is_done = isinstance(error, SystemExit) and not error.code
        raise
    finally:
        del vars(dataclasses)["exec"], vars(typing)["compile"]
        _compiler.compile = _compile_pattern
        if is_done and store.has_more:
            with suppress(OSError):
                write_sealed(path, marshal.dumps(store.content), about)


class _Store:
    """Code, and the parts of patterns, by the texts that they were made of."""

    def __init__(self, known: dict[str, Any]) -> None:
        self._known = known
        self._used: dict[str, Any] = {}

    @property
    def has_more(self) -> bool:
        """Whether something has been made that the file lacks."""
        return bool(self._used.keys() - self._known.keys())

    @property
    def content(self) -> dict[str, Any]:
        """The content of the file that is written."""
        every = self._known | self._used
        return every if len(every) <= MOST else self._used

    def code_of(self, text: str, file: str, mode: str) -> Any:
        """As `compile`."""
        return self._get(f"{mode} {text}", lambda: compile(text, file, mode, dont_inherit=True))

    def run(self, text: str, names: dict[str, Any], results: dict[str, Any]) -> None:
        """As `exec`."""
        exec(self.code_of(text, "<string>", "exec"), names, results)

    def pattern_of(self, pattern: Any, flags: int = 0) -> Any:
        """As `re._compiler.compile`, which makes a list of numbers, and a pattern of these."""
        if not isinstance(pattern, str | bytes) or flags & re.DEBUG:
            return _compile_pattern(pattern, flags)

        def make() -> Any:
            # A pattern does not show its numbers: Python's own function leaves them in a list here.
            taken: list[Any] = []
            names = vars(_compiler) | {"_sre": SimpleNamespace(compile=lambda *p: taken.extend(p))}
            FunctionType(_compile_pattern.__code__, names)(pattern, flags)
            text, bits, numbers, *groups = taken
            return text, int(bits), list(map(int, numbers)), *groups

        parts = self._get(f"re {int(flags)} {pattern!r}", make)
        return _compiler._sre.compile(*parts)

    def _get(self, key: str, make: Callable[[], Any]) -> Any:
        value = self._used.get(key) or self._known.get(key)
        if value is None:
            value = make()
        self._used[key] = value
        return value
