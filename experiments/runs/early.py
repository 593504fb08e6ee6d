"""The process that draws a command's figures, started before the command imports anything."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module

_RUN = "run"
_VAIN = frozenset({"-h", "--help", "--help-all", "--dry-run", "--spec", "--figures", "mininet"})
"""Words with which a run draws nothing, or not at once, or wants all cores for itself."""


def beside(words: Sequence[str]) -> AbstractContextManager[None]:
    """Start the process that draws, for as long as this is entered, if a command line will draw.

    Whether it will is a guess: a run that has none starts one, and one that no run has is ended.

    Args:
        words: The command line, without the program's name.
    """
    if not may_draw(words):
        return nullcontext()
    started: AbstractContextManager[None] = import_module(
        "ringleaf.experiments.runs.drawer"
    ).started_early()
    return started


def may_draw(words: Sequence[str]) -> bool:
    """Return whether a command line looks like one of a run that draws figures."""
    parts = {part for word in words for part in word.split("=")}
    return words[:1] == [_RUN] and parts.isdisjoint(_VAIN)
