"""Checks that are put off, as a live network does not wait meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ringleaf.core.tensors import Array

MOST_BYTES = 1 << 30


class Later:
    """Results that wait to be checked; when there are too many, all are checked at once.

    Args:
        judge: Checks a result: it is called with what `keep` was given, its tensors last.
        most_bytes: The most that waits.
    """

    def __init__(self, judge: Callable[..., None], most_bytes: int = MOST_BYTES) -> None:
        self._judge = judge
        self._most_bytes = most_bytes
        self._kept: list[tuple[tuple[Any, ...], list[Array]]] = []
        self._kept_bytes = 0

    def keep(self, *about: Any, tensors: Sequence[Array]) -> None:
        """Copy a result, to be checked later."""
        self._kept.append((about, [each.copy() for each in tensors]))
        self._kept_bytes += sum(each.nbytes for each in tensors)
        if self._kept_bytes > self._most_bytes:
            self.settle()

    def settle(self) -> None:
        """Check all that waits."""
        for about, tensors in self._kept:
            self._judge(*about, tensors)
        self._kept.clear()
        self._kept_bytes = 0
