"""Losses of workers in the order of time, as a list or drawn from rates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import merge

from ringleaf.core.units import FOREVER_PS


@dataclass(frozen=True, slots=True, order=True)
class Loss:
    """A worker that is lost.

    Attributes:
        at_ps: When.
        worker: Its number.
        kind: What has failed, for people.
        back_ps: When what has failed is there again; None: never.
        host: The number of its host that fails.
    """

    at_ps: int
    worker: int
    kind: str = "host"
    back_ps: int | None = None
    host: int = 0


class LossQueue:
    """The losses to come, from sources that are each in the order of time and may have no end."""

    def __init__(self, *sources: Iterable[Loss]) -> None:
        self._left: Iterator[Loss] = merge(*sources, key=lambda loss: (loss.at_ps, loss.worker))
        self._next = next(self._left, None)

    @property
    def next_ps(self) -> int:
        """Time of the next one; `FOREVER_PS` if there is none."""
        return self._next.at_ps if self._next else FOREVER_PS

    def take(self) -> Loss:
        """Remove and return the next one, which there must be."""
        assert self._next is not None
        loss, self._next = self._next, next(self._left, None)
        return loss
