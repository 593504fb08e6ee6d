"""An accelerator that several jobs have, and that computes for one of them at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class User(Protocol):
    """A job that computes on the accelerator."""

    def begin(self, now_ps: int) -> None:
        """Begin the computation that it has asked for."""


class Accelerator:
    """An accelerator; it is left between computations, each of a layer or a step.

    Args:
        users: The jobs; of those that wait, the first one is next.
    """

    def __init__(self, users: Sequence[User]) -> None:
        self._users = users
        self._waiting: set[int] = set()  # places of users
        self._busy = False
        self._free_ps = 0  # since when nobody computes

    def ask(self, user: User, now_ps: int) -> None:
        """Let a job begin as soon as it is its turn, which may be now."""
        self._waiting.add(self._users.index(user))
        if not self._busy:
            self._pass_on(now_ps)

    def leave(self, now_ps: int) -> None:
        """Note the end of a computation."""
        self._busy, self._free_ps = False, now_ps
        if self._waiting:
            self._pass_on(now_ps)

    def _pass_on(self, now_ps: int) -> None:
        first = min(self._waiting)
        self._waiting.remove(first)
        self._busy = True
        # A job may hear of a sum some time after it was there, when others have computed since.
        self._users[first].begin(max(now_ps, self._free_ps))
