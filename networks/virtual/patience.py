"""Notices that nothing gets through any more, while timers go on sending in vain."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ringleaf.arena import Store, Words
from ringleaf.hosts.agent import PROGRESS
from ringleaf.networks.hosts.execution import Operation
from ringleaf.units import PS_PER_S, format_time

LEAST_PS = PS_PER_S
ROUND_TRIPS = 250_000
"""So many of the longest path must pass without progress, however slow the links are.

A hundred probes of a connection whose timeout has backed off as far as it goes: `MAX_BACKOFF`
times ten round trips. Fewer may all be lost where each link of a long path loses a tenth.
"""

_NAMED = 4  # nodes that a message names


class Patience:
    """Watches the progress that agents count.

    Args:
        store: Where the agents live.
        agents: Offsets of all agents' blocks.
        rtt_ps: The longest round trip without queues.
        now_ps: When the watch begins.
    """

    def __init__(self, store: Store, agents: Words, *, rtt_ps: int, now_ps: int) -> None:
        self._store = store
        self._places = agents + PROGRESS
        self.limit_ps = max(LEAST_PS, ROUND_TRIPS * rtt_ps)
        self._seen = self._progress()
        self.deadline_ps = now_ps + self.limit_ps

    def _progress(self) -> int:
        return int(self._store.arena.words[self._places].sum())

    def is_over(self, now_ps: int) -> bool:
        """Whether the deadline has come and nothing got through since the one before."""
        if now_ps < self.deadline_ps:
            return False
        before, self._seen = self._seen, self._progress()
        self.deadline_ps = now_ps + self.limit_ps
        return before == self._seen

    def complaint(self, operations: Iterable[tuple[Operation, Sequence[str]]]) -> str:
        """Say who waits for whom; each operation comes with its nodes' names."""
        waiting = [
            f"{names[node]} waits for {', '.join(parts)}"
            for operation, names in operations
            for node in sorted(operation.left)
            if (parts := operation.executors[node].waits(names))
        ]
        more = f"; and {len(waiting) - _NAMED} more nodes" if len(waiting) > _NAMED else ""
        said = "; ".join(waiting[:_NAMED]) or "nobody says for what"
        return (
            f"run: nothing has got through for {format_time(self.limit_ps)} of simulated time, "
            f"got {said}{more}"
        )
