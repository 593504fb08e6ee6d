"""An allocator of switches' memory that gives the first jobs all that they can use."""

from __future__ import annotations

from collections.abc import Sequence

from ringleaf.ina.allocation import Claim, serve_least


class Greedy:
    name = "greedy"
    title = "first come, first served"

    def allot(self, claims: Sequence[Claim], entries: int) -> list[int]:
        allotted = serve_least(claims, entries)
        for place, claim in enumerate(claims):
            if allotted[place] >= claim.least:
                allotted[place] = min(claim.most, allotted[place] + entries - sum(allotted))
        return allotted


ALLOCATOR = Greedy()
