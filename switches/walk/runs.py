"""Runs: consecutive generated lines of one mark, and the state after them."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from ringleaf.switches.generate.marks import LineMark
from ringleaf.switches.walk.steps import StepWrite
from ringleaf.switches.walk.views import Locals, Values, joined


@dataclass(slots=True)
class Run:
    """Consecutive lines of one mark; `values` and `variables` are from before them."""

    mark: LineMark
    variables: Locals
    values: Values
    lines: set[int]


@dataclass(slots=True)
class EndedRun:
    """A run, and the state after it."""

    run: Run
    frame: FrameType
    variables: Locals
    values: Values
    writes: tuple[StepWrite, ...]
    following: LineMark | None  # the mark that comes next
    what: Any = field(init=False)

    def __post_init__(self) -> None:
        self.what = self.run.mark.what


def evaluated(words: tuple[str, ...], ended: EndedRun) -> int:
    """Return the value of the generator's own code, in the handler."""
    scope = dict(ended.variables)
    return joined([eval(word, ended.frame.f_globals, scope) for word in words])
