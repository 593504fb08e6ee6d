"""INAlloc: a manager of switches' memory, which models how long jobs take with it.

Fixed by the source (its abstract, and one line about it elsewhere; no more was read): a layer
between job scheduler and switches manages the memory of several jobs; a model of job completion
times includes this memory; it is allocated again at run time, without disturbing jobs; jobs have
deadlines, of which fewer are missed.

Chosen here, as the protocol and the model are not known to us:

- Entries are given per job, in one range that is the same in all switches. They are SwitchML's
  slots, or the aggregators of ATP, A2TP and ESA; so jobs of these systems, beside each other on
  one program, exchange memory, too.
- Parts are decided when a job begins or ends. A job's part changes while nothing of it is under
  way: it begins no further tensor, its last sums come, switches' tables are rewritten over
  P4Runtime, and it goes on. Nobody gets an entry before its last owner has left it. Writes take no
  time in virtual time.
- The model: a job sends during its backward passes, and computes nothing where that takes longer.
  It sends with what its entries carry per round trip, at most its line's rate. First all jobs get
  what they can run with. Then those with deadlines, the earliest first, get what they need to be
  in time, if that is possible at all. Each further entry goes where it shortens a job's time
  most, as a part of its time with all entries that it can use. That makes the sum of these ratios
  least, as each job gains less by each further entry; with times in place of ratios, long jobs
  would starve short ones.

Source:
    "INAlloc", INFOCOM 2023 (abstract).
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush

from ringleaf.ina.allocation import Claim, serve_least

MARGIN = 1.1
"""Times that the model foretells are taken to be longer by this factor, for deadlines."""


class Inalloc:
    """The allocator of INAlloc."""

    name = "inalloc"
    title = "INAlloc"

    def allot(self, claims: Sequence[Claim], entries: int) -> list[int]:
        """Return entries so that deadlines are met, and then the sum of slowdowns is least."""
        allotted = serve_least(claims, entries)
        left = entries - sum(allotted)
        served = [place for place, claim in enumerate(claims) if allotted[place] >= claim.least]
        due = [(due_ps, place) for place in served if (due_ps := claims[place].due_ps) is not None]
        for due_ps, place in sorted(due):
            needed = _needed(claims[place], due_ps)
            if needed is not None and allotted[place] < needed <= allotted[place] + left:
                left -= needed - allotted[place]
                allotted[place] = needed
        gains = [_gain(claims[place], allotted[place], place) for place in served]
        heapify(gains)
        while left and gains:
            gain, place = heappop(gains)
            if gain < 0:
                allotted[place] += 1
                left -= 1
                heappush(gains, _gain(claims[place], allotted[place], place))
        return allotted


def _needed(claim: Claim, due_ps: int) -> int | None:
    """Return the fewest entries with which a job is in time; None: there is no such number."""
    if MARGIN * claim.time_ps(claim.most) > due_ps:
        return None
    low, high = claim.least, claim.most
    while low < high:
        middle = (low + high) // 2
        if MARGIN * claim.time_ps(middle) <= due_ps:
            high = middle
        else:
            low = middle + 1
    return high


def _gain(claim: Claim, entries: int, place: int) -> tuple[float, int]:
    """Return minus the share of its best time that an entry more saves a job, and its place."""
    if entries >= claim.most:
        return 0.0, place
    saved_ps = claim.time_ps(entries) - claim.time_ps(entries + 1)
    return -saved_ps / max(claim.time_ps(claim.most), 1.0), place


ALLOCATOR = Inalloc()
