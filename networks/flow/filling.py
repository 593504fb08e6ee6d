"""Max-min fair rates by progressive filling: the solver of the flow network.

Flows of a higher level are served first (strict priority); within a level, the rates of all flows
grow in proportion to their weights until a link is full or a flow has its peak, and so forth
(Bertsekas and Gallager, "Data Networks", 6.5.2).

After a flow has come or gone, only those are solved again that it may concern: flows of links that
are not slack and on which anything changes.

Rates are in bit/s. Whole numbers are exact as floats, and so are their sums.
"""

from __future__ import annotations

import numpy as np

import ringleaf.networks.flow.fill_tables as f
from ringleaf.core.arena import Words
from ringleaf.core.compiled import inline
from ringleaf.core.views import as_floats


@inline
def meet_flow(words: Words, at: int, flow: int) -> None:
    """Have a flow solved, if it is there."""
    row = f.flow_row(words, at, flow)
    if words[row + f.COUNT] > 0 and words[row + f.FLOW_STAMP] != words[at + f.STAMP]:
        words[row + f.FLOW_STAMP] = words[at + f.STAMP]
        as_floats(words)[row + f.BEFORE] = as_floats(words)[row + f.RATE]
        words[words[at + f.MET_FLOWS_AT] + words[at + f.MET_FLOWS]] = flow
        words[at + f.MET_FLOWS] += 1


@inline
def add_link(words: Words, at: int, link: int) -> None:
    """Add a link to those that limit the flows met."""
    words[words[at + f.MET_LINKS_AT] + words[at + f.MET_LINKS]] = link
    words[at + f.MET_LINKS] += 1


@inline
def meet_link(words: Words, at: int, link: int) -> None:
    """Have a link's flows solved, and the link with them unless it is slack."""
    row = f.link_row(words, at, link)
    if words[row + f.LINK_STAMP] == words[at + f.STAMP]:
        return
    words[row + f.LINK_STAMP] = words[at + f.STAMP]
    if not f.is_slack(words, row):
        add_link(words, at, link)
    entry = words[row + f.FIRST]
    while entry != f.NONE:
        here = f.entry_row(words, at, entry)
        meet_flow(words, at, words[here + f.FLOW])
        entry = words[here + f.NEXT]


@inline
def meet_changes(words: Words, at: int) -> None:
    """Meet the flows that have come, and all flows of links that have changed."""
    words[at + f.STAMP] += 1
    words[at + f.MET_FLOWS] = words[at + f.MET_LINKS] = 0
    for i in range(words[at + f.DIRTY_FLOWS]):
        flow = words[words[at + f.DIRTY_FLOWS_AT] + i]
        words[f.flow_row(words, at, flow) + f.IS_DIRTY_FLOW] = 0
        meet_flow(words, at, flow)
    for i in range(words[at + f.DIRTY_LINKS]):
        link = words[words[at + f.DIRTY_LINKS_AT] + i]
        words[f.link_row(words, at, link) + f.IS_DIRTY_LINK] = 0
        meet_link(words, at, link)
    words[at + f.CAME_FLOWS], words[at + f.CAME_LINKS] = (
        words[at + f.DIRTY_FLOWS],
        words[at + f.DIRTY_LINKS],
    )
    words[at + f.DIRTY_FLOWS] = words[at + f.DIRTY_LINKS] = 0


@inline
def open_round(words: Words, at: int) -> None:
    """Have all flows met without a rate, and the links on their ways with what they may have."""
    floats = as_floats(words)
    words[at + f.ROUND] += 1
    words[at + f.INNER] = words[at + f.MET_LINKS]
    for i in range(words[at + f.INNER]):
        row = f.link_row(words, at, words[words[at + f.MET_LINKS_AT] + i])
        words[row + f.LINK_ROUND], words[row + f.IS_FULL] = words[at + f.ROUND], 0
        floats[row + f.REST] = floats[row + f.CAPACITY]
    for i in range(words[at + f.MET_FLOWS]):
        row = f.flow_row(words, at, words[words[at + f.MET_FLOWS_AT] + i])
        words[row + f.IS_FIXED] = 0
        first = words[row + f.FIRST_ENTRY]
        for entry in range(first, first + words[row + f.ENTRY_COUNT]):
            meet_border(words, at, words[f.entry_row(words, at, entry) + f.LINK])


@inline
def meet_border(words: Words, at: int, link: int) -> None:
    """Have a link limit the flows met to what its other flows leave."""
    floats, row = as_floats(words), f.link_row(words, at, link)
    if words[row + f.LINK_ROUND] == words[at + f.ROUND] or f.is_slack(words, row):
        return
    words[row + f.LINK_ROUND], words[row + f.IS_FULL] = words[at + f.ROUND], 0
    floats[row + f.REST] = floats[row + f.CAPACITY]
    add_link(words, at, link)
    entry = words[row + f.FIRST]
    while entry != f.NONE:
        here = f.entry_row(words, at, entry)
        other = f.flow_row(words, at, words[here + f.FLOW])
        if words[other + f.FLOW_STAMP] != words[at + f.STAMP]:
            floats[row + f.REST] -= (
                words[other + f.COUNT] * floats[here + f.USE] * floats[other + f.RATE]
            )
        entry = words[here + f.NEXT]


@inline
def meet_disturbed(words: Words, at: int) -> bool:
    """Meet all flows of the borders where a rate has changed, or should; return if there are any.

    All other flows have the rates that they had, on links on which nothing has changed. So these
    are still the right ones.
    """
    met, count = words[at + f.INNER], words[at + f.MET_LINKS]
    words[at + f.MET_LINKS] = met
    for i in range(met, count):
        link = words[words[at + f.MET_LINKS_AT] + i]
        if is_disturbed(words, at, link):  # what is added takes the places of those looked at
            meet_link(words, at, link)
    return bool(words[at + f.MET_LINKS] > met)


@inline
def is_disturbed(words: Words, at: int, link: int) -> bool:
    """Return whether a flow met has another rate on a link, or would have if others had less."""
    entry = words[f.link_row(words, at, link) + f.FIRST]
    while entry != f.NONE:
        here = f.entry_row(words, at, entry)
        row = f.flow_row(words, at, words[here + f.FLOW])
        is_met = words[row + f.FLOW_STAMP] == words[at + f.STAMP]
        if is_met and has_changed(words, row):
            return True
        if is_met and words[row + f.LIMIT] == link and is_envious(words, at, link, row):
            return True
        entry = words[here + f.NEXT]
    return False


@inline
def has_changed(words: Words, row: int) -> bool:
    """Return whether a flow has another rate than by the last solution."""
    floats = as_floats(words)
    return bool(
        abs(floats[row + f.RATE] - floats[row + f.BEFORE]) > f.TOLERANCE * floats[row + f.BEFORE]
    )


@inline
def is_envious(words: Words, at: int, link: int, own: int) -> bool:
    """Return whether flows of a link that are not met have what should be another one's."""
    floats = as_floats(words)
    share = floats[own + f.RATE] / floats[own + f.WEIGHT] * (1 + f.TOLERANCE)
    entry = words[f.link_row(words, at, link) + f.FIRST]
    while entry != f.NONE:
        here = f.entry_row(words, at, entry)
        row = f.flow_row(words, at, words[here + f.FLOW])
        if words[row + f.FLOW_STAMP] != words[at + f.STAMP] and floats[row + f.RATE] > 0:
            is_alike = words[row + f.LEVEL] == words[own + f.LEVEL]
            if words[row + f.LEVEL] < words[own + f.LEVEL] or (
                is_alike and floats[row + f.RATE] / floats[row + f.WEIGHT] > share
            ):
                return True
        entry = words[here + f.NEXT]
    return False


@inline
def use(words: Words, at: int, row: int, rows: int, each: float, rate: float) -> None:
    """Count a flow on its links: rows that grow, their growth together, and what is taken."""
    floats = as_floats(words)
    first = words[row + f.FIRST_ENTRY]
    for entry in range(first, first + words[row + f.ENTRY_COUNT]):
        here = f.entry_row(words, at, entry)
        link = f.link_row(words, at, words[here + f.LINK])
        words[link + f.GROWING] += rows
        floats[link + f.USAGE] += words[row + f.COUNT] * floats[here + f.USE] * each
        floats[link + f.REST] -= words[row + f.COUNT] * floats[here + f.USE] * rate


@inline
def fix(words: Words, at: int, row: int, rate: float, limit: int) -> None:
    """Give a flow its rate, and note what limits it."""
    floats = as_floats(words)
    words[row + f.IS_FIXED], words[row + f.LIMIT] = 1, limit
    floats[row + f.RATE] = rate
    use(words, at, row, -1, -floats[row + f.WEIGHT], rate)


@inline
def open_level(words: Words, at: int) -> int:
    """Let the flows of the highest level grow that are not fixed; return how many rows."""
    floats = as_floats(words)
    level = f.NONE
    for i in range(words[at + f.MET_FLOWS]):
        row = f.flow_row(words, at, words[words[at + f.MET_FLOWS_AT] + i])
        if not words[row + f.IS_FIXED]:
            level = max(level, words[row + f.LEVEL])
    if level == f.NONE:
        return 0
    for i in range(words[at + f.MET_LINKS]):
        link = f.link_row(words, at, words[words[at + f.MET_LINKS_AT] + i])
        words[words[at + f.GROWING_LINKS_AT] + i] = link
        words[link + f.GROWING] = 0
        floats[link + f.USAGE] = 0.0
    growing = 0
    for i in range(words[at + f.MET_FLOWS]):
        row = f.flow_row(words, at, words[words[at + f.MET_FLOWS_AT] + i])
        if not words[row + f.IS_FIXED] and words[row + f.LEVEL] == level:
            words[words[at + f.GROWING_FLOWS_AT] + growing] = row
            growing += 1
            use(words, at, row, 1, floats[row + f.WEIGHT], 0.0)
    return growing


@inline
def find_shares(words: Words, at: int, links: int) -> int:
    """Note at which rate by weight links are full; return on how many of them flows still grow."""
    floats, start, left = as_floats(words), words[at + f.GROWING_LINKS_AT], 0
    for i in range(links):
        link = words[start + i]
        if words[link + f.GROWING] > 0:
            words[start + left] = link
            left += 1
            floats[link + f.SHARE] = max(floats[link + f.REST], 0.0) / floats[link + f.USAGE]
    return left


@inline
def least_share(words: Words, at: int, links: int) -> float:
    """Return the least of links' shares; infinite, if there are none."""
    share = np.inf
    for i in range(links):
        share = min(share, as_floats(words)[words[words[at + f.GROWING_LINKS_AT] + i] + f.SHARE])
    return share


@inline
def fill_level(words: Words, at: int, growing: int) -> None:
    """Give the flows that grow their rates."""
    links = words[at + f.MET_LINKS]
    while growing > 0:
        links = find_shares(words, at, links)
        share = least_share(words, at, links)
        left = fix_at_peak(words, at, growing, share)
        if left == growing:
            note_full(words, at, links, share)
            left = fix_full(words, at, growing, share)
        growing = left


@inline
def fix_at_peak(words: Words, at: int, growing: int, share: float) -> int:
    """Give the flows their peaks whose share is no less; return how many rows still grow."""
    floats, start, left = as_floats(words), words[at + f.GROWING_FLOWS_AT], 0
    for i in range(growing):
        row = words[start + i]
        if floats[row + f.PEAK] <= share * floats[row + f.WEIGHT]:
            fix(words, at, row, floats[row + f.PEAK], f.NONE)
        else:
            words[start + left] = row
            left += 1
    return left


@inline
def note_full(words: Words, at: int, links: int, share: float) -> None:
    """Note which links are full at a rate by weight."""
    for i in range(links):
        link = words[words[at + f.GROWING_LINKS_AT] + i]
        is_full = as_floats(words)[link + f.SHARE] <= share * (1 + f.TOLERANCE)
        words[link + f.IS_FULL] = is_full


@inline
def fix_full(words: Words, at: int, growing: int, share: float) -> int:
    """Give the flows of full links what they have now; return how many rows still grow."""
    floats, start, left = as_floats(words), words[at + f.GROWING_FLOWS_AT], 0
    for i in range(growing):
        row = words[start + i]
        limit = full_link(words, at, row)
        if limit == f.NONE:
            words[start + left] = row
            left += 1
        else:
            fix(words, at, row, f.whole(share * floats[row + f.WEIGHT]), limit)
    return left


@inline
def full_link(words: Words, at: int, row: int) -> int:
    """Return the first full link that a flow crosses; f.NONE, if there is none."""
    first = words[row + f.FIRST_ENTRY]
    for entry in range(first, first + words[row + f.ENTRY_COUNT]):
        number = words[f.entry_row(words, at, entry) + f.LINK]
        link = f.link_row(words, at, number)
        if words[link + f.LINK_ROUND] == words[at + f.ROUND] and words[link + f.IS_FULL]:
            return number
    return f.NONE


@inline
def give_rates(words: Words, at: int) -> None:
    """Give all flows met their rates, level by level."""
    growing = open_level(words, at)
    while growing > 0:
        fill_level(words, at, growing)
        growing = open_level(words, at)


@inline
def give_alone(words: Words, at: int) -> bool:
    """Give all flows met their rates, if each is alone on its links; return if that is so.

    That is what rounds would come to. If it is not so, they go on from here.
    """
    floats, met = as_floats(words), words[at + f.MET_LINKS]
    for i in range(words[at + f.MET_FLOWS]):
        row = f.flow_row(words, at, words[words[at + f.MET_FLOWS_AT] + i])
        share, limit = np.inf, f.NONE
        first = words[row + f.FIRST_ENTRY]
        for entry in range(first, first + words[row + f.ENTRY_COUNT]):
            here = f.entry_row(words, at, entry)
            link = f.link_row(words, at, words[here + f.LINK])
            if f.is_slack(words, link):
                continue
            if words[here + f.NEXT] != f.NONE or words[here + f.PREVIOUS] != f.NONE:
                words[at + f.MET_LINKS] = met
                return False
            if words[link + f.LINK_STAMP] != words[at + f.STAMP]:
                add_link(words, at, words[here + f.LINK])
            usage = words[row + f.COUNT] * floats[here + f.USE] * floats[row + f.WEIGHT]
            of_link = max(floats[link + f.CAPACITY], 0.0) / usage
            if of_link * (1 + f.TOLERANCE) < share:
                limit = words[here + f.LINK]
            share = min(share, of_link)
        if floats[row + f.PEAK] <= share * floats[row + f.WEIGHT]:
            floats[row + f.RATE], words[row + f.LIMIT] = floats[row + f.PEAK], f.NONE
        else:
            floats[row + f.RATE] = f.whole(share * floats[row + f.WEIGHT])
            words[row + f.LIMIT] = limit
    return True


@inline
def solve_changes(words: Words, at: int) -> None:
    """Give all flows their rates that what has changed since the last solution may concern.

    Flows of links that have changed are solved first, beside all others as they were. Where that
    changes more links, their flows are solved with them, and so on. The numbers of flows met are
    in a list. A flow that has gone keeps its last rate.
    """
    meet_changes(words, at)
    if give_alone(words, at):
        return
    while True:
        open_round(words, at)
        give_rates(words, at)
        if not meet_disturbed(words, at):
            return
