"""Detection of stalls, in which nothing gets through while timers go on sending in vain."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ringleaf.arena import Store
from ringleaf.hosts.agent import PROGRESS
from ringleaf.networks.endpoints.operation import Operation
from ringleaf.units import PS_PER_S, format_time

LEAST_PS = PS_PER_S
ROUND_TRIPS = 250_000
"""Round trips of the longest path without progress that make a stall, on links of any speed.

They are a hundred probes of a connection whose timeout has backed off to its limit: `MAX_BACKOFF`
times ten round trips. Fewer may all be lost where each link of a long path loses a tenth.
"""

_NAMED = 4  # nodes that a message names


def limit_ps(rtt_ps: int) -> int:
    """Return the time without progress that makes a stall, for the longest path's round trip."""
    return max(LEAST_PS, ROUND_TRIPS * rtt_ps)


class Patience:
    """A watch on the progress that agents count, for each group by itself.

    So an endless job does not hide that another one waits in vain.

    Args:
        store: The store that holds the agents.
        agents: Offsets of the agents' blocks that work for each group.
        rtt_ps: The longest round trip without queues.
        now_ps: Start of the watch.
    """

    def __init__(
        self, store: Store, agents: Sequence[Sequence[int]], *, rtt_ps: int, now_ps: int
    ) -> None:
        self._store = store
        self._places = [np.array(blocks, np.int64) + PROGRESS for blocks in agents]
        self.limit_ps = limit_ps(rtt_ps)
        self._seen = self._progress()
        self._waited: list[Operation] = []
        self.deadline_ps = now_ps + self.limit_ps

    def _progress(self) -> list[int]:
        words = self._store.arena.words
        return [int(words[places].sum()) for places in self._places]

    def stalled(self, operations: Sequence[Operation], now_ps: int) -> list[Operation]:
        """Return the operations under way at the last deadline whose groups made no progress since.

        Before the next deadline there are none.
        """
        if now_ps < self.deadline_ps:
            return []
        before, self._seen = self._seen, self._progress()
        waited, self._waited = self._waited, list(operations)
        self.deadline_ps = now_ps + self.limit_ps
        return [
            operation
            for operation in operations
            if any(operation is each for each in waited)
            and before[operation.group] == self._seen[operation.group]
        ]

    def complaint(self, operations: Iterable[tuple[Operation, Sequence[str]]]) -> str:
        """Return an error text that says who waits for whom; operations come with nodes' names."""
        waiting = [
            f"{names[node]} waits for {', '.join(parts)}"
            for operation, names in operations
            for node in operation.unfinished()
            if (parts := operation.waits(node, names))
        ]
        more = f"; and {len(waiting) - _NAMED} more nodes" if len(waiting) > _NAMED else ""
        said = "; ".join(waiting[:_NAMED]) or "nobody says for what"
        return (
            f"run: nothing has got through for {format_time(self.limit_ps)} of simulated time, "
            f"got {said}{more}"
        )
