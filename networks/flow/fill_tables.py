"""The tables of the solver of the flow network: links, flows, and which cross which.

Flows cross directions of links, and have a weight, a peak (the most that one may have) and a level.
A row may stand for several flows that are alike. What changes here is noted, for `filling.py` to
solve again.

A link on which all flows together can't have more than its capacity, even at their peaks, never
limits anybody: it is slack.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ringleaf.core.arena import Store, Words
from ringleaf.core.compiled import inline
from ringleaf.core.views import as_floats

NONE = -1

# The block.
LINKS = 0
LINKS_AT = 1  # rows
FLOWS = 2
FLOWS_AT = 3
ENTRIES_AT = 4
STAMP = 5  # the number of the last solution
DIRTY_FLOWS = 6  # flows that have come since
DIRTY_FLOWS_AT = 7
DIRTY_LINKS = 8  # links that are not slack, or were not, and whose flows have changed since
DIRTY_LINKS_AT = 9
MET_FLOWS = 10  # flows of the last solution, in the order in which they were met
MET_FLOWS_AT = 11
MET_LINKS = 12  # links that are not slack: first those all of whose flows are met, then borders
MET_LINKS_AT = 13
INNER = 14  # the number of the former
ROUND = 15  # the number of the last time that flows were given rates
CAME_FLOWS = 16  # of the lists of flows and links that had changed before the last solution
CAME_LINKS = 17
GROWING_FLOWS_AT = 18  # room for the offsets of rows that still grow, and of links that they cross
GROWING_LINKS_AT = 19
FILLING_WORDS = 20

# A link's direction: a line of the cache for what each change of its flows needs, and one more.
CAPACITY = 0  # float
LOAD = 1  # float: of its flows, if each had its peak
FIRST = 2  # entry
LINK_STAMP = 3
IS_DIRTY_LINK = 4
LINK_ROUND = 5  # the last round in which it was among those met
IS_FULL = 6
GROWING = 7  # the number of rows that still grow
REST = 8  # float: what is left of the capacity
USAGE = 9  # float: the sum of flows' uses by weight, of those that still grow
FIRST_ANSWER = 10  # entry of a flow whose acknowledgements go by it
SHARE = 11  # float: the rate by weight at which it is full
LINK_WORDS = 16

# A flow, or several that are alike.
FIRST_ENTRY = 0
ENTRY_COUNT = 1
COUNT = 2  # of flows; 0: it is not there
WEIGHT = 3  # float
PEAK = 4  # float: the most that each may have
LEVEL = 5
RATE = 6  # float: of each
FLOW_STAMP = 7
IS_DIRTY_FLOW = 8
IS_FIXED = 9
BEFORE = 10  # float: its rate by the last solution
LIMIT = 11  # the link that keeps it from more; NONE: it has its peak
FLOW_WORDS = 16

# A flow's crossing of a link.
LINK = 0
USE = 1  # float: the bits that the link carries for each of the flow's
FLOW = 2
NEXT = 3  # entries of the link whose flows are there
PREVIOUS = 4
NEXT_ANSWER = 5  # entries of the link by which the answers to flows that are there go
PREVIOUS_ANSWER = 6
ENTRY_WORDS = 8

LEAST_WHOLE = 1e6  # bit/s
TOLERANCE = 1e-9  # of sums that are not of whole numbers


def make_filling(store: Store, capacities: Sequence[float]) -> int:
    """Return the offset of a solver without flows, for links of these capacities in bit/s."""
    at = store.allocate("words", FILLING_WORDS)
    rows = store.allocate("words", len(capacities) * LINK_WORDS)
    places = {
        LINKS_AT: rows,
        DIRTY_LINKS_AT: store.allocate("words", len(capacities)),
        MET_LINKS_AT: store.allocate("words", len(capacities)),
        GROWING_LINKS_AT: store.allocate("words", len(capacities)),
    }
    words = store.arena.words
    words[at + LINKS] = len(capacities)
    for word, offset in places.items():
        words[at + word] = offset
    table = words[rows : rows + len(capacities) * LINK_WORDS].reshape(-1, LINK_WORDS)
    table.view(np.float64)[:, CAPACITY] = capacities
    table[:, [FIRST, FIRST_ANSWER]] = NONE
    return at


def add_flows(
    store: Store,
    at: int,
    ways: Sequence[Sequence[tuple[int, float]]],
    peaks: Sequence[float] | None = None,
) -> int:
    """Add flows, which are not there yet; return the number of the first one.

    Others may be there. A flow's weight is 1.

    Args:
        store: The store that holds the solver.
        at: The solver's block.
        ways: By flow, the links that it crosses, each once, and its use of them.
        peaks: By flow, the most that it may have in bit/s; None: what its links have for it alone.
    """
    first, count = int(store.arena.words[at + FLOWS]), len(ways)
    total = first + count
    old_rows = int(store.arena.words[at + FLOWS_AT])
    rows = store.allocate("words", total * FLOW_WORDS)
    old_entries = int(store.arena.words[at + ENTRIES_AT])
    used = _entries(store.arena.words, at)
    entries = store.allocate("words", (used + sum(map(len, ways))) * ENTRY_WORDS)
    lists = [store.allocate("words", total) for _ in range(3)]
    words = store.arena.words
    words[rows : rows + first * FLOW_WORDS] = words[old_rows:][: first * FLOW_WORDS]
    words[entries : entries + used * ENTRY_WORDS] = words[old_entries:][: used * ENTRY_WORDS]
    dirty = int(words[at + DIRTY_FLOWS])
    words[lists[0] : lists[0] + dirty] = words[words[at + DIRTY_FLOWS_AT] :][:dirty]
    words[at + FLOWS], words[at + FLOWS_AT], words[at + ENTRIES_AT] = total, rows, entries
    words[at + DIRTY_FLOWS_AT], words[at + MET_FLOWS_AT], words[at + GROWING_FLOWS_AT] = lists
    for number, way in enumerate(ways, first):
        row, floats = flow_row(words, at, number), as_floats(words)
        _write_way(words, at, number, way, used)
        floats[row + WEIGHT] = 1.0
        alone = (floats[link_row(words, at, link) + CAPACITY] / use for link, use in way)
        floats[row + PEAK] = min(alone) if peaks is None else peaks[number - first]
        used += len(way)
    return first


def _entries(words: Words, at: int) -> int:
    """Return the number of entries of all flows, and of those that flows have had before."""
    rows = _rows(words, at)
    return int((rows[:, FIRST_ENTRY] + rows[:, ENTRY_COUNT]).max(initial=0))


def _rows(words: Words, at: int) -> Words:
    """Return the rows of all flows."""
    first, count = words[at + FLOWS_AT], words[at + FLOWS]
    return words[first : first + count * FLOW_WORDS].reshape(-1, FLOW_WORDS)


def crossings(words: Words, at: int) -> tuple[Words, Words]:
    """Return the flows and the links of all their crossings, flow by flow."""
    counts, firsts = _rows(words, at)[:, ENTRY_COUNT], _rows(words, at)[:, FIRST_ENTRY]
    flows = np.repeat(np.arange(len(counts)), counts)
    starts = np.repeat(firsts - (np.cumsum(counts) - counts), counts)
    entries = starts + np.arange(len(flows))
    return flows, words[words[at + ENTRIES_AT] + entries * ENTRY_WORDS + LINK]


def move_flows(
    store: Store, at: int, ways: Mapping[int, Sequence[tuple[int, float]]], peaks: Sequence[float]
) -> None:
    """Have flows, none of which is there, cross other links.

    Args:
        store: The store that holds the solver.
        at: The solver's block.
        ways: By flow, the links that it crosses from now on, and its use of them.
        peaks: Likewise in order, the most that each may have in bit/s.
    """
    used, old = _entries(store.arena.words, at), int(store.arena.words[at + ENTRIES_AT])
    entries = store.allocate("words", (used + sum(map(len, ways.values()))) * ENTRY_WORDS)
    words = store.arena.words
    words[entries : entries + used * ENTRY_WORDS] = words[old:][: used * ENTRY_WORDS]
    words[at + ENTRIES_AT] = entries
    for (flow, way), peak in zip(ways.items(), peaks, strict=True):
        assert words[flow_row(words, at, flow) + COUNT] == 0
        _write_way(words, at, flow, way, used)
        as_floats(words)[flow_row(words, at, flow) + PEAK] = peak
        used += len(way)


def _write_way(
    words: Words, at: int, flow: int, way: Sequence[tuple[int, float]], first: int
) -> None:
    """Write a flow's crossings of links, the first of which has this number."""
    row, floats = flow_row(words, at, flow), as_floats(words)
    words[row + FIRST_ENTRY], words[row + ENTRY_COUNT] = first, len(way)
    for place, (link, use) in enumerate(way, first):
        entry = entry_row(words, at, place)
        words[entry + LINK], words[entry + FLOW] = link, flow
        floats[entry + USE] = use


@inline
def link_row(words: Words, at: int, link: int) -> int:
    """Return the offset of a link's row."""
    return words[at + LINKS_AT] + link * LINK_WORDS


@inline
def flow_row(words: Words, at: int, flow: int) -> int:
    """Return the offset of a flow's row."""
    return words[at + FLOWS_AT] + flow * FLOW_WORDS


@inline
def entry_row(words: Words, at: int, entry: int) -> int:
    """Return the offset of an entry's row."""
    return words[at + ENTRIES_AT] + entry * ENTRY_WORDS


@inline
def first_entry(words: Words, at: int, flow: int) -> int:
    """Return the offset of the entry by which a flow crosses the first link of its way."""
    return entry_row(words, at, words[flow_row(words, at, flow) + FIRST_ENTRY])


@inline
def times(words: Words, entry: int) -> int:
    """Return how many flows a row stands for on a link, by the offset of its entry."""
    return round(as_floats(words)[entry + USE])


def set_peak(words: Words, at: int, flow: int, peak: float) -> None:
    """Set the most that a flow may have, in bit/s, if that is less; it must not be there."""
    row = flow_row(words, at, flow)
    assert words[row + COUNT] == 0
    floats = as_floats(words)
    floats[row + PEAK] = min(floats[row + PEAK], peak)


@inline
def is_dirty(words: Words, at: int) -> bool:
    """Return whether anything has changed since the last solution."""
    return bool(words[at + DIRTY_FLOWS] > 0 or words[at + DIRTY_LINKS] > 0)


@inline
def is_slack(words: Words, row: int) -> bool:
    """Return whether a link's flows have all that they may have, as far as the link goes."""
    floats = as_floats(words)
    return bool(floats[row + LOAD] <= floats[row + CAPACITY] * (1 + TOLERANCE))


@inline
def set_count(words: Words, at: int, flow: int, count: int) -> None:
    """Set how many flows there are of one row."""
    row = flow_row(words, at, flow)
    before = words[row + COUNT]
    words[row + COUNT] = count
    mark_flow(words, at, flow)
    more = (count - before) * as_floats(words)[row + PEAK]
    first = words[row + FIRST_ENTRY]
    for entry in range(first, first + words[row + ENTRY_COUNT]):
        change_entry(words, at, entry, more)
        if before == 0 and count > 0:
            put_in(words, at, entry)
        elif before > 0 and count == 0:
            take_out(words, at, entry)


@inline
def mark_flow(words: Words, at: int, flow: int) -> None:
    """Have a flow solved again."""
    row = flow_row(words, at, flow)
    if not words[row + IS_DIRTY_FLOW]:
        words[row + IS_DIRTY_FLOW] = 1
        words[words[at + DIRTY_FLOWS_AT] + words[at + DIRTY_FLOWS]] = flow
        words[at + DIRTY_FLOWS] += 1


@inline
def change_entry(words: Words, at: int, entry: int, more: float) -> None:
    """Add to what a flow may have of one of its links."""
    floats = as_floats(words)
    here = entry_row(words, at, entry)
    link = words[here + LINK]
    row = link_row(words, at, link)
    was_slack = is_slack(words, row)
    floats[row + LOAD] += more * floats[here + USE]
    if not (was_slack and is_slack(words, row)):
        mark_link(words, at, link)


@inline
def mark_link(words: Words, at: int, link: int) -> None:
    """Have a link's flows solved again."""
    row = link_row(words, at, link)
    if not words[row + IS_DIRTY_LINK]:
        words[row + IS_DIRTY_LINK] = 1
        words[words[at + DIRTY_LINKS_AT] + words[at + DIRTY_LINKS]] = link
        words[at + DIRTY_LINKS] += 1


@inline
def set_capacity(words: Words, at: int, link: int, capacity: float) -> None:
    """Change a link's capacity, in bit/s."""
    row = link_row(words, at, link)
    was_slack = is_slack(words, row)
    as_floats(words)[row + CAPACITY] = capacity
    if not (was_slack and is_slack(words, row)):
        mark_link(words, at, link)


@inline
def put_in(words: Words, at: int, entry: int, head: int = FIRST, following: int = NEXT) -> None:
    """Put an entry into a list of its link, given the words of the list's head and of what follows.

    The word after that is what comes before.
    """
    here = entry_row(words, at, entry)
    row = link_row(words, at, words[here + LINK])
    after = words[row + head]
    words[here + following], words[here + following + 1] = after, NONE
    if after != NONE:
        words[entry_row(words, at, after) + following + 1] = entry
    words[row + head] = entry


@inline
def take_out(words: Words, at: int, entry: int, head: int = FIRST, following: int = NEXT) -> None:
    """Take an entry out of a list of its link, as `put_in`."""
    here = entry_row(words, at, entry)
    after, before = words[here + following], words[here + following + 1]
    if after != NONE:
        words[entry_row(words, at, after) + following + 1] = before
    if before != NONE:
        words[entry_row(words, at, before) + following] = after
    else:
        words[link_row(words, at, words[here + LINK]) + head] = after


@inline
def whole(rate: float) -> float:
    """Return a rate without its fraction of a bit/s, unless that is more than a millionth.

    Sums of whole numbers are exact, in any order, and those of several flows that are alike.
    """
    return float(np.floor(rate)) if rate >= LEAST_WHOLE else rate
