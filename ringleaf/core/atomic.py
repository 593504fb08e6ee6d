"""What threads that work on one arena need to meet: atomic words, and sleep.

Uncompiled, there is only one thread at a time, and these are plain functions;
`ringleaf.core.compiler.atomics` has the others.
"""

from __future__ import annotations

from typing import Any


def add_atomically(words: Any, at: int, value: int) -> int:
    """Add to a word; return what it was. All that was written before is there for others."""
    before: int = words[at]
    words[at] = before + value
    return before


def load_atomically(words: Any, at: int) -> int:
    """Return a word that another thread may write; what that wrote before can be read then."""
    word: int = words[at]
    return word


def sleep_while(words: Any, at: int, value: int) -> None:
    """Sleep while a word is `value`, until `wake_sleepers`, for 10 ms at most, or not at all."""


def wake_sleepers(words: Any, at: int) -> None:
    """Wake the threads that sleep for a word."""
