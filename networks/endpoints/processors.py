"""The time that hosts' processors spend on each message: the overhead o of LogGP.

"The length of time that a processor is engaged in the transmission or reception of each message;
during this time, the processor cannot perform other operations" (Culler et al., "LogP", PPoPP
1993; Alexandrov et al., "LogGP", SPAA 1995, keep it). So a host handles one message at a time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from heapq import heappop, heappush

from ringleaf.units import FOREVER_PS

Action = Callable[[int], None]
"""A function that is called with the time at which a processor has completed it."""


class Processors:
    """The processors of all hosts.

    Args:
        overhead_ps: Time that each takes for a message, above 0.
    """

    def __init__(self, overhead_ps: int) -> None:
        self._overhead_ps = overhead_ps
        self._free_ps: dict[int, int] = defaultdict(int)  # by host: time at which it is idle
        self._due: list[tuple[int, int, Action]] = []  # a heap of (time_ps, sequence, action)
        self._sequence = 0

    @property
    def next_ps(self) -> int:
        """The time at which the next action is completed."""
        return self._due[0][0] if self._due else FOREVER_PS

    def engage(self, host: int, now_ps: int, action: Action) -> None:
        """Queue a message on a host's processor, behind those it has already."""
        done_ps = max(now_ps, self._free_ps[host]) + self._overhead_ps
        self._free_ps[host] = done_ps
        heappush(self._due, (done_ps, self._sequence, action))
        self._sequence += 1

    def act(self, now_ps: int) -> None:
        """Run the actions completed by `now_ps`, in the order of their times."""
        while self.next_ps <= now_ps:
            time_ps, _, action = heappop(self._due)
            action(time_ps)
