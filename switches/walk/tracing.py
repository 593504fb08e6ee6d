"""Handlers followed line by line, as Python runs them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any, Protocol

from ringleaf.core import compiled
from ringleaf.errors import ConfigError
from ringleaf.switches.engine.replication import replicate, send_twin
from ringleaf.switches.program import Handler, Program

_MANAGERS = (replicate.__code__, send_twin.__code__)


class Follower(Protocol):
    """An observer of the program's handlers; the frames are theirs."""

    def enter(self, frame: FrameType) -> None:
        """Note that a handler begins."""

    def line(self, frame: FrameType) -> None:
        """Note that the frame's current line is about to run."""

    def leave(self, frame: FrameType, result: int) -> None:
        """Note that a handler ends; an egress handler's result is its flags."""

    def managing(self, frame: FrameType) -> None:
        """Note that the traffic manager is about to see a packet."""

    def managed(self, frame: FrameType, count: int) -> None:
        """Note that the traffic manager has put `count` packets into the outbox."""


@contextmanager
def followed(program: Program, follower: Follower) -> Iterator[None]:
    """Tell a follower of everything that the program's handlers do inside this context.

    Raises:
        ConfigError: If the handlers are compiled.
    """
    if not compiled.UNCOMPILED:
        raise ConfigError(
            "walk: handlers must run uncompiled, got compiled ones; set NUMBA_DISABLE_JIT=1"
        )
    tracer = _Tracer(program, follower)
    before = sys.gettrace()
    sys.settrace(tracer.call)
    try:
        yield
    finally:
        sys.settrace(before)


class _Tracer:
    def __init__(self, program: Program, follower: Follower) -> None:
        self._follower = follower
        self._handlers = {_code_of(program.ingress), _code_of(program.egress)}

    def call(self, frame: FrameType, event: str, arg: Any) -> Any:
        """Begin to follow a function, if it is a handler or the traffic manager's."""
        if frame.f_code in self._handlers:
            self._follower.enter(frame)
            return self._in_handler
        if frame.f_code in _MANAGERS:
            frame.f_trace_lines = False
            self._follower.managing(frame)
            return self._in_replicate
        return None

    def _in_handler(self, frame: FrameType, event: str, arg: Any) -> Any:
        if event == "line":
            self._follower.line(frame)
        elif event == "return" and arg is not None:
            self._follower.leave(frame, int(arg))
        return self._in_handler

    def _in_replicate(self, frame: FrameType, event: str, arg: Any) -> Any:
        if event == "return" and arg is not None:
            self._follower.managed(frame, int(arg))
        return self._in_replicate


def _code_of(handler: Handler) -> CodeType:
    function: Any = getattr(handler, "__wrapped__", handler)
    code = function.__code__
    assert isinstance(code, CodeType)
    return code
