"""The order of a matched graph's nodes: whether all of them can run, one after the other.

Numbers stand for ends of nodes. Those that end together, as in a collective, have one. Where others
wait for a node's begin, that has a number of its own, and the end waits for it, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heappop, heappush

from ringleaf.errors import ConfigError
from ringleaf.hosts.workload.matched import Matched, PlacesOfRank

SHOWN = 6
"""The most nodes of a circle that a message names."""

Need = tuple[int, int, int, int]
"""A number, one that it waits for, and the rank and place of the node that waits."""


def program_order(after: PlacesOfRank, begun: PlacesOfRank) -> Sequence[int]:
    """Return the places of a rank's nodes, the first of the file first of those that may run.

    Args:
        after: By node, the places of those that must have ended, in order.
        begun: Likewise, of those that must have begun.
    """
    needs = [(*ends, *begins) for ends, begins in zip(after, begun, strict=True)]
    if all(place > needed for place, own in enumerate(needs) for needed in own):
        return range(len(needs))
    left = [len(own) for own in needs]
    then: list[list[int]] = [[] for _ in needs]
    for place, own in enumerate(needs):
        for needed in own:
            then[needed].append(place)
    ready = [place for place, count in enumerate(left) if not count]  # a heap, as it is in order
    order = []
    while ready:
        order.append(heappop(ready))
        for place in then[order[-1]]:
            left[place] -= 1
            if not left[place]:
                heappush(ready, place)
    return [*order, *(place for place, count in enumerate(left) if count)]  # these are in a circle


def check_order(matched: Matched) -> None:
    """Check that no node waits for itself, through nodes of any rank.

    Raises:
        ConfigError: If nodes wait for each other in a circle; the message names them.
    """
    numbers = _Numbers(matched)
    before = [0] * numbers.count
    then: list[list[int]] = [[] for _ in before]
    for here, needed, _, _ in numbers.needs():
        before[here] += 1
        then[needed].append(here)
    ready = [number for number, left in enumerate(before) if not left]
    while ready:
        for number in then[ready.pop()]:
            before[number] -= 1
            if not before[number]:
                ready.append(number)
    if any(before):
        _refuse_circle(numbers, before)


class _Numbers:
    """The numbers of all ends, and of the begins that matter, by rank and place."""

    def __init__(self, matched: Matched) -> None:
        self.matched = matched
        self.count = len(matched.meetings)
        self.ends: list[list[int]] = []
        self.begins: list[list[int]] = []
        for rank, meetings in enumerate(matched.meeting_of):
            begun = {each for needed in matched.begun[rank] for each in needed}
            ends = [
                number if number >= 0 and not self._is_sent(number, rank) else self._add()
                for number in meetings
            ]
            self.ends.append(ends)
            self.begins.append([self._add() if i in begun else end for i, end in enumerate(ends)])

    def _is_sent(self, number: int, rank: int) -> bool:
        """Return whether a rank sends an eager message, which is over for it before it arrives."""
        meeting = self.matched.meetings[number]
        return meeting.is_eager and meeting.ranks[0] == rank

    def _add(self) -> int:
        self.count += 1
        return self.count - 1

    def needs(self) -> Iterator[Need]:
        """Yield all that waits."""
        matched = self.matched
        for rank, (ends, begins) in enumerate(zip(self.ends, self.begins, strict=True)):
            for place, (end, begin) in enumerate(zip(ends, begins, strict=True)):
                if begin != end:
                    yield end, begin, rank, place
                for each in matched.after[rank][place]:
                    yield begin, ends[each], rank, place
                for each in matched.begun[rank][place]:
                    yield begin, begins[each], rank, place
        for number, meeting in enumerate(matched.meetings):
            if meeting.is_eager:
                (sender, receiver), (sent, place) = meeting.ranks, meeting.places
                yield number, self.ends[sender][sent], receiver, place


def _refuse_circle(numbers: _Numbers, before: Sequence[int]) -> None:
    """Name the nodes of a circle: follow what waits to what it waits for, until one comes again."""
    graph = numbers.matched.graph
    waits: dict[int, tuple[int, int, int]] = {}  # number -> its rank and place; what it waits for
    for here, needed, rank, place in numbers.needs():
        if before[needed]:
            waits.setdefault(here, (rank, place, needed))
    here = next(iter(waits))
    seen: dict[int, int] = {}
    while here not in seen:
        seen[here] = len(seen)
        here = waits[here][2]
    circle = [number for number, turn in seen.items() if turn >= seen[here]]
    places = dict.fromkeys(waits[number][:2] for number in circle)
    ends = [(rank, graph.ranks[rank].nodes[place]) for rank, place in places]
    others = "; ".join(f"rank {rank}, node {node.id}" for rank, node in ends[1:SHOWN]) or "itself"
    is_late = any(each.call is None and not each.is_eager for each in numbers.matched.meetings)
    advice = ", or make messages eager" if is_late else ""
    more = f" and {len(ends) - SHOWN} more" if len(ends) > SHOWN else ""
    raise ConfigError(
        f"{graph.place(*ends[0])}: nodes must not wait for each other in a circle, got it "
        f"waiting for {others}{more}; remove a dependency{advice}"
    )
