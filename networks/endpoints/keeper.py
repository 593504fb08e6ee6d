"""The jobs' holdings of switches' memory over time: which change next, and which jobs must wait."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ringleaf.ina.allocation import Allocator, Claim, lay_out
from ringleaf.ina.holdings import NOTHING, Holding, Mover


class Keeper:
    """The holdings of jobs whose systems can change them.

    A job whose holding is to change must not begin anything (`held`) until nothing of it is under
    way; then it is moved (`next_move`). It is held no sooner than the entries that it will get have
    been left by others. If jobs wait for one another in a circle, one of them leaves its own first.

    Args:
        movers: By job's number.
        allocator: Says how many entries each job shall have.
    """

    def __init__(self, movers: Mapping[int, Mover], allocator: Allocator) -> None:
        self._movers = movers
        self._allocator = allocator
        self._entries = min(mover.available for mover in movers.values())
        self._goal = {job: mover.holding for job, mover in movers.items()}

    def plan(self, claims: Sequence[Claim]) -> None:
        """Decide on all holdings anew; jobs without a claim leave theirs."""
        sizes = dict.fromkeys(self._movers, 0)
        if claims:
            parts = self._allocator.allot(claims, self._entries)
            sizes |= {claim.job: part for claim, part in zip(claims, parts, strict=True)}
        self._goal = lay_out(self._now, sizes, self._entries)

    def held(self) -> set[int]:
        """Return the jobs that must not begin anything now."""
        idle = {job for job, each in self._movers.items() if each.holding.entries < each.least}
        return idle | set(self._targets())

    def next_move(self, is_idle: Callable[[int], bool]) -> tuple[int, Holding] | None:
        """Return a job to be moved now, and its new holding; None if there is none."""
        for job, target in self._targets().items():
            if is_idle(job):
                return job, target
        return None

    @property
    def _now(self) -> dict[int, Holding]:
        return {job: mover.holding for job, mover in self._movers.items()}

    def _targets(self) -> dict[int, Holding]:
        """Return the new holdings whose entries nobody else has."""
        now = self._now
        pending = [job for job in now if now[job] != self._goal[job]]
        free = {job: self._goal[job] for job in pending if self._is_free(job, now)}
        if pending and not free:
            return {next(job for job in pending if now[job].entries): NOTHING}
        return free

    def _is_free(self, job: int, now: Mapping[int, Holding]) -> bool:
        target = self._goal[job]
        return not any(target.overlaps(holding) for other, holding in now.items() if other != job)
