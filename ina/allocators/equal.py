"""Equal parts of the switches' memory for all jobs that run, divided again when one comes or ends.

No published system: the part of INAlloc's gain that needs no model of the jobs.
"""

from __future__ import annotations

from collections.abc import Sequence

from ringleaf.ina.allocation import Claim, serve_least


class Equal:
    """The allocator of equal parts."""

    name = "equal"
    title = "equal parts for jobs that run"

    def allot(self, claims: Sequence[Claim], entries: int) -> list[int]:
        """Return equal numbers of entries; what a job can't use is for the others."""
        allotted = serve_least(claims, entries)
        served = [place for place, claim in enumerate(claims) if allotted[place] >= claim.least]
        left = entries - sum(allotted)
        for done, place in enumerate(sorted(served, key=lambda each: claims[each].most)):
            part = left // (len(served) - done)
            more = max(0, min(part, claims[place].most - allotted[place]))
            allotted[place] += more
            left -= more
        return allotted


ALLOCATOR = Equal()
