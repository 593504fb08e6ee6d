"""Detection of stalls, in which nothing gets through while hosts go on sending in vain.

Timers that send in vain make a stall after a time in which one of them should have got through. But
if hosts resend at the full rate, as each packet that is lost is told at once and asked for again,
such a time may take hours to simulate; so many resends without any progress make a stall, too. So
do packets that go round in circles.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ringleaf.core.arena import Store
from ringleaf.core.units import PS_PER_S, format_count, format_time
from ringleaf.hosts.agent import PROGRESS, RETRANSMISSIONS
from ringleaf.hosts.rc.state import LONGEST_PAUSE
from ringleaf.networks.endpoints.operation import CollectiveOperation
from ringleaf.networks.virtual.circling import Circling

STALLED = "run: nothing has got through"
"""The beginning of what is said of a stall."""
LEAST_PS = PS_PER_S
PROBES = 100
"""The least number of probes in a row without an answer that make a stall."""
UNLIKELY = 1e-9
"""The chance that so many probes in a row bring no progress although the path works."""
MOST_LOSS = 0.1
"""The largest loss per link with which every run ends with a result."""
ROUND_TRIPS = 10
"""The least timeout of a connection is taken for at least so many of the longest round trips."""

MOST_RESENDS = 1 << 16
"""Packets that a group's agents send again, each on average, without any progress.

By timers, which double, those of 512 slots take longer than the time that makes a stall.
"""

_CIRCLES = 512
"""Packets that circle end a run after one in so many of the time that makes a stall."""

_LOOKS = 1024
"""How often in its time without progress a group is looked at."""

_NAMED = 4  # nodes that a message names


def probes_of(loss: float, links: int) -> int:
    """Return the number of probes without any progress that make a stall.

    Two of them must succeed: one that gets a NAK, and whose lost packet arrives when it is sent
    again, so that three ways are free of loss; and, if the acknowledgement of that packet is lost,
    one that gets another.

    Args:
        loss: The probability that a link loses a packet; more than MOST_LOSS counts as that.
        links: The number of links of the longest path.
    """
    success = (1 - min(loss, MOST_LOSS)) ** (3 * links)
    probes = PROBES
    while (1 - success) ** (probes - 1) * (1 + (probes - 1) * success) > UNLIKELY:
        probes += 1
    return probes


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


@dataclass(slots=True)
class _Wait:
    """An operation whose group has made no progress since a time.

    Attributes:
        operation: The operation.
        since_ps: The time.
        progress: Its group's progress then.
        resends_before: Packets that the group had sent again by then.
        for_ps: The time since then.
        resends: Packets that the group has sent again since then.
    """

    operation: CollectiveOperation
    since_ps: int
    progress: int
    resends_before: int
    for_ps: int = 0
    resends: int = 0


class Patience:
    """A watch on the progress that agents count, for each group by itself.

    So an endless job does not hide that another one waits in vain.

    Args:
        store: The store that holds the agents.
        agents: Offsets of the agents' blocks that work for each group.
        limit_ps: The time without progress that makes a stall.
        now_ps: Start of the watch.
        circling: Tells whether packets go round in circles, since any group has made progress.
    """

    def __init__(
        self,
        store: Store,
        agents: Sequence[Sequence[int]],
        *,
        limit_ps: int,
        now_ps: int,
        circling: Circling,
    ) -> None:
        self._store = store
        self._agents = [np.array(blocks, np.int64) for blocks in agents]
        self.limit_ps = limit_ps
        self._circling = circling
        self._progress: list[int] = []
        self._waits: dict[int, _Wait] = {}  # by the operation's id
        self.deadline_ps = now_ps + self._look_ps

    @property
    def _look_ps(self) -> int:
        return max(self.limit_ps // _LOOKS, 1)

    def _sums(self, word: int) -> list[int]:
        words = self._store.arena.words
        return [int(words[blocks + word].sum()) for blocks in self._agents]

    def stalled(
        self, operations: Sequence[CollectiveOperation], now_ps: int
    ) -> list[CollectiveOperation]:
        """Return the operations under way whose groups have sent in vain for too long.

        An operation has time from when it is seen first. Before the next deadline there are none.
        """
        if now_ps < self.deadline_ps:
            return []
        progress, resends = self._sums(PROGRESS), self._sums(RETRANSMISSIONS)
        if progress != self._progress:
            self._progress = progress
            self._circling.restart()
        waits = {}
        for operation in operations:
            group = operation.group
            wait = self._waits.get(id(operation))
            if wait is None or wait.progress != progress[group]:
                wait = _Wait(operation, now_ps, progress[group], resends[group])
            waits[id(operation)] = wait
            wait.for_ps = now_ps - wait.since_ps
            wait.resends = resends[group] - wait.resends_before
        self._waits = waits
        ends_ps = (wait.since_ps + self.limit_ps for wait in waits.values())
        self.deadline_ps = min([now_ps + self._look_ps, *(end for end in ends_ps if end > now_ps)])
        return [wait.operation for wait in waits.values() if self._is_in_vain(wait)]

    def _is_in_vain(self, wait: _Wait) -> bool:
        most_resends = MOST_RESENDS * self._agents[wait.operation.group].size
        is_long = wait.for_ps >= self.limit_ps or wait.resends >= most_resends
        return is_long or (wait.for_ps >= self.limit_ps // _CIRCLES and bool(self._circling))

    def complaint(
        self, operations: Iterable[tuple[CollectiveOperation, Sequence[str]]], remedy: str
    ) -> str:
        """Return an error text that says who waits for whom, and what to do.

        Operations come with nodes' names, and have stalled.
        """
        named = list(operations)
        waits = [self._waits[id(operation)] for operation, _ in named]
        waiting = [
            f"{names[node]} waits for {', '.join(parts)}"
            for operation, names in named
            for node in operation.unfinished()
            if (parts := operation.waits(node, names))
        ]
        more = (
            f"; and {format_count(len(waiting) - _NAMED, 'more node')}"
            if len(waiting) > _NAMED
            else ""
        )
        reasons = "; ".join(waiting[:_NAMED]) or "nobody says for what"
        longest = format_time(max(wait.for_ps for wait in waits))
        resends = max(wait.resends for wait in waits)
        vain = f" and {format_count(resends, 'resend')}" if resends else ""
        if self._circling:
            hops = format_count(self._circling.hops, "packet-hop")
            vain = f"{vain}, and in {hops}, so packets go round in circles"
        return f"{STALLED} for {longest} of simulated time{vain}, got {reasons}{more}; {remedy}"
