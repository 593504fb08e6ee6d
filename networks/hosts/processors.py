"""The time that hosts' processors spend on each message: the overhead o of LogGP.

"The length of time that a processor is engaged in the transmission or reception of each message;
during this time, the processor cannot perform other operations" (Culler et al., "LogP", PPoPP
1993; Alexandrov et al., "LogGP", SPAA 1995, keep it). So a host does one such thing after another.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from heapq import heappop, heappush

from ringleaf.units import FOREVER_PS

Action = Callable[[int], None]
"""Called with the time when a processor is through with it."""


class Processors:
    """Every host's processor.

    Args:
        overhead_ps: What each takes for each message, above 0.
    """

    def __init__(self, overhead_ps: int) -> None:
        self._overhead_ps = overhead_ps
        self._free_ps: dict[int, int] = defaultdict(int)  # by host: when it is through with all
        self._due: list[tuple[int, int, Action]] = []  # a heap of (time_ps, sequence, action)
        self._sequence = 0

    @property
    def next_ps(self) -> int:
        """When the first of them is through with something."""
        return self._due[0][0] if self._due else FOREVER_PS

    def engage(self, host: int, now_ps: int, action: Action) -> None:
        """Have a host's processor see to a message, after what it has to do already."""
        done_ps = max(now_ps, self._free_ps[host]) + self._overhead_ps
        self._free_ps[host] = done_ps
        heappush(self._due, (done_ps, self._sequence, action))
        self._sequence += 1

    def act(self, now_ps: int) -> None:
        """Do what processors are through with at `now_ps`, in the order in which it was given."""
        while self.next_ps <= now_ps:
            time_ps, _, action = heappop(self._due)
            action(time_ps)
