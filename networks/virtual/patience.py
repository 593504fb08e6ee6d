"""Detection of stalls, in which nothing gets through while timers go on sending in vain."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil, log, log1p

import numpy as np

from ringleaf.core.arena import Store
from ringleaf.core.units import PS_PER_S, format_count, format_time
from ringleaf.hosts.agent import PROGRESS
from ringleaf.hosts.rc.state import LONGEST_PAUSE
from ringleaf.networks.endpoints.operation import CollectiveOperation

LEAST_PS = PS_PER_S
PROBES = 100
"""The least number of probes in a row without an answer that make a stall."""
UNLIKELY = 1e-9
"""The chance that so many probes in a row are lost although the path works."""
MOST_LOSS = 0.1
"""The largest loss per link with which every run ends with a result."""
ROUND_TRIPS = 10
"""The least timeout of a connection is taken for at least so many of the longest round trips."""

_NAMED = 4  # nodes that a message names


def probes_of(loss: float, links: int) -> int:
    """Return the number of probes without an answer that make a stall.

    Args:
        loss: The probability that a link loses a packet; more than MOST_LOSS counts as that.
        links: The number of links of the longest path.
    """
    answered = (1 - min(loss, MOST_LOSS)) ** (2 * links)
    return PROBES if answered == 1 else max(PROBES, ceil(log(UNLIKELY) / log1p(-answered)))


def limit_ps(rtt_ps: int, *, timeout_ps: int = 0, quiet_ps: int = 0, probes: int = PROBES) -> int:
    """Return the time without progress that makes a stall.

    Nothing lets a probe wait for longer than `LONGEST_PAUSE` times the least timeout, and the
    network's quiet time: neither timeouts nor a congestion controller's pause (`hosts/rc`).

    Args:
        rtt_ps: The longest path's round trip.
        timeout_ps: The longest of connections' least timeouts.
        quiet_ps: The time that each of them allows for silence.
        probes: The number of probes, of `probes_of`.
    """
    longest_ps = LONGEST_PAUSE * max(ROUND_TRIPS * rtt_ps, timeout_ps) + quiet_ps
    return max(LEAST_PS, probes * longest_ps)


class Patience:
    """A watch on the progress that agents count, for each group by itself.

    So an endless job does not hide that another one waits in vain.

    Args:
        store: The store that holds the agents.
        agents: Offsets of the agents' blocks that work for each group.
        limit_ps: The time without progress that makes a stall.
        now_ps: Start of the watch.
    """

    def __init__(
        self, store: Store, agents: Sequence[Sequence[int]], *, limit_ps: int, now_ps: int
    ) -> None:
        self._store = store
        self._places = [np.array(blocks, np.int64) + PROGRESS for blocks in agents]
        self.limit_ps = limit_ps
        self._seen = self._progress()
        self._waited: list[CollectiveOperation] = []
        self.deadline_ps = now_ps + self.limit_ps

    def _progress(self) -> list[int]:
        words = self._store.arena.words
        return [int(words[places].sum()) for places in self._places]

    def stalled(
        self, operations: Sequence[CollectiveOperation], now_ps: int
    ) -> list[CollectiveOperation]:
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

    def complaint(
        self, operations: Iterable[tuple[CollectiveOperation, Sequence[str]]], remedy: str
    ) -> str:
        """Return an error text that says who waits for whom, and what to do.

        Operations come with nodes' names.
        """
        waiting = [
            f"{names[node]} waits for {', '.join(parts)}"
            for operation, names in operations
            for node in operation.unfinished()
            if (parts := operation.waits(node, names))
        ]
        more = (
            f"; and {format_count(len(waiting) - _NAMED, 'more node')}"
            if len(waiting) > _NAMED
            else ""
        )
        reasons = "; ".join(waiting[:_NAMED]) or "nobody says for what"
        return (
            f"run: nothing has got through for {format_time(self.limit_ps)} of simulated time, "
            f"got {reasons}{more}; {remedy}"
        )
