"""Rounds in which queues and the rates of flows with windows come to fit each other.

In each, flows have what their windows let through with the queues as they are, hosts send them in
turns, and links have longer queues where that is too much, and shorter ones where it is too little.
All links change at once, as if the others on the ways of their flows changed by as much, so that
their order does not count. All sums are of whole numbers, so that they are exact.

A link whose flows nearly fit is left as it is. After `MOST_ROUNDS`, what is still too much is cut
off, and the next change of any flow goes on from there; where it is more than `MOST_OFF`, flows
have max-min shares, as if no window were used up.
"""

from __future__ import annotations

import numpy as np

import ringleaf.networks.flow.fill_tables as f
import ringleaf.networks.flow.state as n
from ringleaf.core.arena import Words
from ringleaf.core.compiled import inline
from ringleaf.core.units import PS_PER_S
from ringleaf.core.views import as_floats

MOST_ROUNDS = 8
ENOUGH = 3e-3  # what rates may differ by for no more rounds
MOST_OFF = 0.05  # likewise, after the last round: else there are no queues
CLOSE = 1e-3  # what rates may differ by from a link whose queue is right
MOST_STEPS = 8  # to a longer queue of one link
SCALE = 1e6  # of slopes, whose sums are of whole numbers


@inline
def fit_all(words: Words, at: int) -> bool:
    """Fit the queues of links met, and the rates of flows met; return whether they nearly do."""
    worst = 0.0
    for number in range(MOST_ROUNDS):
        wish(words, at)
        share_hosts(words, at)
        count_rates(words, at, number)
        worst = adjust(words, at)
        if worst <= ENOUGH:
            break
    count_rates(words, at, 0)
    cut_off(words, at)
    return worst <= MOST_OFF


@inline
def wish(words: Words, at: int) -> None:
    """Find what flows met would have with the queues as they are: a window in each round trip."""
    filling, floats = words[at + n.FILLING_AT], as_floats(words)
    for i in range(words[at + n.FROM_FLOW], words[at + n.MET_FLOWS]):
        flow = words[words[at + n.MET_FLOWS_AT] + i]
        mine = n.flow_at(words, at, flow)
        most = floats[mine + n.ALONE]
        if not words[mine + n.HAS_WINDOW]:
            most = floats[f.flow_row(words, filling, flow) + f.RATE]
        if words[mine + n.AGENT] == 0:  # switches add it up: it has no window of packets
            floats[mine + n.WISH] = floats[mine + n.FITTING] = most
            floats[mine + n.BY_WINDOW] = 0.0
            continue
        floats[mine + n.WAIT_PS] = 0.0
        words[mine + n.WAITS] = 0
        add_waits(words, at, mine, flow)
        add_waits(words, at, mine, words[mine + n.BACK])
        around_ps = floats[mine + n.EMPTY_PS] + floats[mine + n.WAIT_PS]
        by_window = window_of(words, mine) / around_ps
        floats[mine + n.BY_WINDOW] = f.whole(by_window)
        floats[mine + n.WISH] = floats[mine + n.FITTING] = f.whole(min(by_window, most))


@inline
def window_of(words: Words, mine: int) -> float:
    """Return a flow's window, such that it is a rate if divided by a time in picoseconds.

    As a whole number, it would overflow from 1.15 MB on.
    """
    return float(words[mine + n.WINDOW]) * PS_PER_S


@inline
def add_waits(words: Words, at: int, mine: int, flow: int) -> None:
    """Add the queues on the way of a flow to the waits of another one, or its own."""
    filling, floats = words[at + n.FILLING_AT], as_floats(words)
    row = f.flow_row(words, filling, flow)
    first = words[row + f.FIRST_ENTRY]
    for entry in range(first, first + words[row + f.ENTRY_COUNT]):
        link = words[f.entry_row(words, filling, entry) + f.LINK]
        here = n.link_at(words, at, link)
        queue_ps = floats[here + n.QUEUE_PS]
        floats[mine + n.WAIT_PS] += queue_ps
        words[mine + n.WAITS] += queue_ps > 0 or may_grow(words, at, link, here)


@inline
def may_grow(words: Words, at: int, link: int, here: int) -> bool:
    """Return whether a link may soon have a queue: more came than it carries, or nobody knows."""
    if words[here + n.LINK_STAMP] != words[at + n.STAMP] or words[here + n.IS_OF_HOST]:
        return False
    floats = as_floats(words)
    room = floats[f.link_row(words, words[at + n.FILLING_AT], link) + f.CAPACITY]
    return not 0 < floats[here + n.SUM] <= room


@inline
def share_hosts(words: Words, at: int) -> None:
    """Have flows of one host share its link in turns."""
    for i in range(words[at + n.FROM_LINK], words[at + n.MET_LINKS]):
        link = words[words[at + n.MET_LINKS_AT] + i]
        if words[n.link_at(words, at, link) + n.IS_OF_HOST]:
            share_host(words, at, link)


@inline
def share_host(words: Words, at: int, link: int) -> None:
    """Give flows of a host what they wish, as far as others leave it: none has more of the rest."""
    filling, floats = words[at + n.FILLING_AT], as_floats(words)
    share = share_of_host(words, at, link)
    entry = words[f.link_row(words, filling, link) + f.FIRST]
    while entry != f.NONE:
        there = f.entry_row(words, filling, entry)
        mine = n.flow_at(words, at, words[there + f.FLOW])
        floats[mine + n.FITTING] = min(floats[mine + n.FITTING], share)
        entry = words[there + f.NEXT]


@inline
def share_of_host(words: Words, at: int, link: int) -> float:
    """Return the most that each flow of a host's link has which wishes for more."""
    filling, floats = words[at + n.FILLING_AT], as_floats(words)
    row = f.link_row(words, filling, link)
    share, before = 0.0, -1.0
    while share > before:
        before, left, growing = share, floats[row + f.CAPACITY], 0.0
        entry = words[row + f.FIRST]
        while entry != f.NONE:
            there = f.entry_row(words, filling, entry)
            wished = floats[n.flow_at(words, at, words[there + f.FLOW]) + n.WISH]
            if wished <= share:
                left -= wished * floats[there + f.USE]
            else:
                growing += floats[there + f.USE]
            entry = words[there + f.NEXT]
        if growing == 0:
            return np.inf
        share = f.whole(left / growing)
    return share


@inline
def count_rates(words: Words, at: int, number: int) -> None:
    """Add up what the links met have of their flows, as far as earlier links let it through."""
    filling, floats = words[at + n.FILLING_AT], as_floats(words)
    for i in range(words[at + n.FROM_LINK], words[at + n.MET_LINKS]):
        here = n.link_at(words, at, words[words[at + n.MET_LINKS_AT] + i])
        if number < 2:
            floats[here + n.CAME] = floats[here + n.SUM] * number
        else:
            floats[here + n.CAME] += (floats[here + n.SUM] - floats[here + n.CAME]) / 4
        floats[here + n.SUM] = 0.0
    for i in range(words[at + n.FROM_FLOW], words[at + n.MET_FLOWS]):
        flow = words[words[at + n.MET_FLOWS_AT] + i]
        row, mine = f.flow_row(words, filling, flow), n.flow_at(words, at, flow)
        first, rate = words[row + f.FIRST_ENTRY], floats[mine + n.FITTING]
        for entry in range(first, first + words[row + f.ENTRY_COUNT]):
            there = f.entry_row(words, filling, entry)
            here = n.link_at(words, at, words[there + f.LINK])
            if words[here + n.LINK_STAMP] != words[at + n.STAMP]:
                continue
            floats[here + n.SUM] += rate * floats[there + f.USE]
            room = floats[f.link_row(words, filling, words[there + f.LINK]) + f.CAPACITY]
            if floats[here + n.CAME] > room:
                rate = f.whole(rate * (room / floats[here + n.CAME]))


@inline
def adjust(words: Words, at: int) -> float:
    """Make queues longer or shorter; return the most by which a link's flows did not fit it."""
    filling, floats = words[at + n.FILLING_AT], as_floats(words)
    worst = 0.0
    for i in range(words[at + n.FROM_LINK], words[at + n.MET_LINKS]):
        link = words[words[at + n.MET_LINKS_AT] + i]
        here = n.link_at(words, at, link)
        if words[here + n.IS_OF_HOST]:
            continue
        room = floats[f.link_row(words, filling, link) + f.CAPACITY]
        before_ps, over = floats[here + n.QUEUE_PS], floats[here + n.SUM] - room
        queue_ps = before_ps
        if abs(over) > CLOSE * room:
            queue_ps = better_ps(words, at, link, over)
        floats[here + n.WAS_PS], floats[here + n.WAS_OVER] = before_ps, over
        if max(before_ps, queue_ps) > 0:
            worst = max(worst, abs(over) / room)
        set_queue(words, at, link, queue_ps)
    return worst


@inline
def better_ps(words: Words, at: int, link: int, over: float) -> float:
    """Return a better queue of a link, whose flows have too much by `over`, or too little.

    What was tried last counts, too: between too long and too short there is a right one, and where
    a longer queue has not helped, the next is twice as much longer.
    """
    floats, here = as_floats(words), n.link_at(words, at, link)
    queue_ps, was_ps = floats[here + n.QUEUE_PS], floats[here + n.WAS_PS]
    was_over = floats[here + n.WAS_OVER]
    if over * was_over < 0:
        share = min(max(was_over / (was_over - over), 0.1), 0.9)
        return np.floor(was_ps + (queue_ps - was_ps) * share)
    if over < 0:
        return max(0.0, queue_ps - shorter_ps(words, at, link, -over))
    longer = queue_ps + longer_ps(words, at, link, over)
    if over > 0.9 * was_over > 0:
        longer = max(longer, queue_ps + 2 * (queue_ps - was_ps))
    return longer


@inline
def longer_ps(words: Words, at: int, link: int, over: float) -> float:
    """Return by how much a link's queue must be longer for its flows to have less by `over`."""
    filling, floats, more_ps = words[at + n.FILLING_AT], as_floats(words), 0.0
    for _ in range(MOST_STEPS):
        less, slope, near_ps = 0.0, 0.0, np.inf
        entry = words[f.link_row(words, filling, link) + f.FIRST]
        while entry != f.NONE:
            there = f.entry_row(words, filling, entry)
            mine = n.flow_at(words, at, words[there + f.FLOW])
            entry = words[there + f.NEXT]
            rate, waits = floats[mine + n.FITTING], max(words[mine + n.WAITS], 1)
            if floats[mine + n.BY_WINDOW] == 0 or rate <= 0:
                continue
            window = window_of(words, mine)
            around_ps = floats[mine + n.EMPTY_PS] + floats[mine + n.WAIT_PS] + more_ps * waits
            if window / around_ps > rate:
                near_ps = min(near_ps, np.ceil((window / rate - around_ps) / waits))
            else:
                less += f.whole(rate - window / around_ps) * floats[there + f.USE]
                slope += slope_of(window, around_ps, waits) * floats[there + f.USE]
        if less >= over or (slope == 0 and near_ps == np.inf):
            break
        step_ps = near_ps + 1
        if slope > 0:
            step_ps = min(step_ps, np.ceil((over - less) / slope * SCALE))
        more_ps += step_ps
    return more_ps


@inline
def shorter_ps(words: Words, at: int, link: int, under: float) -> float:
    """Return by how much a link's queue may be shorter for its flows to have more by `under`."""
    filling, floats, slope = words[at + n.FILLING_AT], as_floats(words), 0.0
    row, here = f.link_row(words, filling, link), n.link_at(words, at, link)
    entry = words[row + f.FIRST]
    while entry != f.NONE:
        there = f.entry_row(words, filling, entry)
        mine = n.flow_at(words, at, words[there + f.FLOW])
        entry = words[there + f.NEXT]
        if 0 < floats[mine + n.BY_WINDOW] <= floats[mine + n.FITTING]:
            window = window_of(words, mine)
            around_ps = floats[mine + n.EMPTY_PS] + floats[mine + n.WAIT_PS]
            slope += (
                slope_of(window, around_ps, max(words[mine + n.WAITS], 1)) * floats[there + f.USE]
            )
    if slope == 0:
        return np.inf
    # Rates grow faster than by the slope as queues get shorter.
    return np.floor(under / slope * SCALE * (floats[here + n.SUM] / floats[row + f.CAPACITY]))


@inline
def slope_of(window: float, around_ps: float, waits: int) -> float:
    """Return how fast a flow's rate falls as all queues get longer in which it waits."""
    return np.floor(window / around_ps / around_ps * waits * SCALE)


@inline
def set_queue(words: Words, at: int, link: int, queue_ps: float) -> None:
    """Set a link's queue."""
    floats, here = as_floats(words), n.link_at(words, at, link)
    words[at + n.QUEUED] += int(queue_ps > 0) - int(floats[here + n.QUEUE_PS] > 0)
    floats[here + n.QUEUE_PS] = queue_ps


@inline
def wait_ps(words: Words, at: int, flow: int) -> float:
    """Return how long a flow's packets wait on their way."""
    if words[at + n.QUEUED] == 0:
        return 0.0
    filling, floats = words[at + n.FILLING_AT], as_floats(words)
    row = f.flow_row(words, filling, flow)
    first, sum_ps = words[row + f.FIRST_ENTRY], 0.0
    for entry in range(first, first + words[row + f.ENTRY_COUNT]):
        link = words[f.entry_row(words, filling, entry) + f.LINK]
        sum_ps += floats[n.link_at(words, at, link) + n.QUEUE_PS]
    return sum_ps


@inline
def cut_off(words: Words, at: int) -> None:
    """Have rates fit links in full, where the last queues leave a little too much."""
    filling, floats = words[at + n.FILLING_AT], as_floats(words)
    for i in range(words[at + n.FROM_FLOW], words[at + n.MET_FLOWS]):
        flow = words[words[at + n.MET_FLOWS_AT] + i]
        row, mine = f.flow_row(words, filling, flow), n.flow_at(words, at, flow)
        first, share = words[row + f.FIRST_ENTRY], 1.0
        for entry in range(first, first + words[row + f.ENTRY_COUNT]):
            number = words[f.entry_row(words, filling, entry) + f.LINK]
            here, link = n.link_at(words, at, number), f.link_row(words, filling, number)
            if words[here + n.LINK_STAMP] == words[at + n.STAMP]:
                share = min(share, floats[link + f.CAPACITY] / max(floats[here + n.SUM], 1.0))
        floats[mine + n.FITTING] = f.whole(floats[mine + n.FITTING] * share)
