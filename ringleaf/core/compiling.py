"""What is told while per-packet code is compiled, which happens once and takes its time.

Numba compiles when modules are imported, and when a function is called first, so whoever shows how
far a command is can't know of it beforehand: it sets `show`, and reads `working_s`. A command whose
output is read later sets `notice` instead, and one line says why nothing comes for a while.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

PARTS = (
    ("checks of results", ("ringleaf.collectives.", "ringleaf.experiments.")),
    ("hosts' transport", ("ringleaf.hosts.",)),
    ("aggregation systems", ("ringleaf.ina.",)),
    ("P4 programs", ("ringleaf.switches.", "ringleaf_")),
    ("event loop", ("ringleaf.",)),
)
"""The parts of compiled code in the order of a run, and how their modules' names begin."""

NOTICE = "compiling the per-packet code (once; takes about half a minute)"

NOTICE_AFTER_S = 1.0
"""Seconds of compiling from which a line is worth it: a single new program takes less."""

show: Callable[[str], object] | None = None
"""Shows a line; None: nobody looks."""

notice: Callable[[str], object] | None = None
"""Writes a line that stays, at most once; None: nobody reads it, or it is written."""

_depth = 0
_began_s = 0.0
_spent_s = 0.0


def begin(module: str) -> None:
    """Note that a function of a module begins to be compiled."""
    global _depth, _began_s
    _depth += 1
    if _depth == 1:
        _began_s = time.monotonic()
        if show is not None:
            show(text(module))
    if notice is not None and _compiled_s() >= NOTICE_AFTER_S:
        say_once()


def say_once() -> None:
    """Write that code is compiled, unless it is written already, or nobody reads it."""
    global notice
    if notice is not None:
        write, notice = notice, None
        write(NOTICE)


def _compiled_s() -> float:
    """Return the seconds for which this process has compiled so far."""
    return _spent_s + (time.monotonic() - _began_s if _depth else 0.0)


def end() -> None:
    """Note that it is compiled."""
    global _depth, _spent_s
    _depth -= 1
    if _depth == 0:
        _spent_s += time.monotonic() - _began_s
        if show is not None:
            show("")


def text(module: str) -> str:
    """Return the line for a function of a module."""
    for number, (part, starts) in enumerate(PARTS, start=1):
        if f"{module}.".startswith(starts):
            return f"compiling (once), part {number} of {len(PARTS)}: {part}"
    return f"compiling (once): {module}"


def working_s() -> float:
    """Return a time in seconds that stands still while code is compiled."""
    return time.monotonic() - _compiled_s()


def listen(event: Any) -> None:
    """Have Numba tell of what it compiles; `event` is `numba.core.event`."""

    class Listener(event.Listener):  # type: ignore[misc]
        def on_start(self, event: Any) -> None:
            function = getattr(event.data["dispatcher"], "py_func", None)
            begin(getattr(function, "__module__", None) or "")

        def on_end(self, event: Any) -> None:
            end()

    event.register("numba:compile", Listener())
