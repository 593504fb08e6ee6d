"""Queues that windows leave in front of full links, and what these leave of flows' rates.

A sender has at most a window in flight. Once it has, its rate is that window over the round trip:
that of a packet and its acknowledgement alone, and the queues that both wait in. Queues are as long
as it takes for all rates to fit the links (Mo and Walrand, "Fair End-to-End Window-Based Congestion
Control", IEEE/ACM Transactions on Networking 8(5), 2000). So a flow through several of them has
less than its max-min share, and so has one whose acknowledgements wait behind data.

Flows whose windows are not used up yet have at most their max-min shares. Where flows of several
priorities meet, all have these; so have, in large networks, those of hosts that send several
messages in turns, and in very large ones all, as more and more links would have to do with each
other. Where all packets of a link come by another one that is full, they wait there; so what comes
to a link is what earlier ones let through.
"""

from __future__ import annotations

import numpy as np

import ringleaf.networks.flow.fill_tables as f
import ringleaf.networks.flow.state as n
from ringleaf.core.arena import Words
from ringleaf.core.compiled import inline
from ringleaf.core.views import as_floats
from ringleaf.networks.flow.balancing import CLOSE, fit_all, set_queue


@inline
def balance(words: Words, at: int) -> bool:
    """Fit queues, and the rates of flows with windows, to what the solver has just changed.

    Links that no queue and no flow joins are solved apart, so that what is elsewhere never counts.

    Returns:
        Whether flows have been met, which have rates that fit, in place of those of the solver.
    """
    if not may_call(words, at):
        return False
    filling = words[at + n.FILLING_AT]
    words[at + n.STAMP] += 1
    words[at + n.MET_FLOWS] = words[at + n.MET_LINKS] = 0
    for i in range(words[filling + f.CAME_LINKS]):
        begin_part(words, at)
        meet_link(words, at, words[words[filling + f.DIRTY_LINKS_AT] + i])
        balance_part(words, at)
    for i in range(words[filling + f.CAME_FLOWS]):
        begin_part(words, at)
        meet_flow(words, at, words[words[filling + f.DIRTY_FLOWS_AT] + i])
        balance_part(words, at)
    return bool(words[at + n.MET_FLOWS] > 0)


@inline
def begin_part(words: Words, at: int) -> None:
    """Have what is met next be solved apart from what has been met."""
    words[at + n.FROM_FLOW] = words[at + n.MET_FLOWS]
    words[at + n.FROM_LINK] = words[at + n.MET_LINKS]


@inline
def may_call(words: Words, at: int) -> bool:
    """Return whether there are queues anywhere, or a flow calls for one."""
    if not words[at + n.HAS_QUEUES]:
        return False
    if words[at + n.QUEUED] > 0:
        return True
    filling = words[at + n.FILLING_AT]
    for i in range(words[filling + f.MET_FLOWS]):
        if calls(words, at, words[words[filling + f.MET_FLOWS_AT] + i]):
            return True
    return False


@inline
def calls(words: Words, at: int, flow: int) -> bool:
    """Return whether a flow calls for a queue: a switch keeps it from what its window would be."""
    return bool(words[n.flow_at(words, at, flow) + n.HAS_WINDOW] and is_kept(words, at, flow))


@inline
def balance_part(words: Words, at: int) -> None:
    """Fit queues and rates of all that the link or flow just met has to do with."""
    meet_all(words, at)
    if not is_called_for(words, at):
        keep(words, at)
    elif not (may_have_queues(words, at) and fit_all(words, at)):
        clear(words, at)
        keep(words, at)


@inline
def is_called_for(words: Words, at: int) -> bool:
    """Return whether links met have queues, or a flow that was solved again calls for one."""
    filling = words[at + n.FILLING_AT]
    for i in range(words[at + n.FROM_LINK], words[at + n.MET_LINKS]):
        link = words[words[at + n.MET_LINKS_AT] + i]
        if as_floats(words)[n.link_at(words, at, link) + n.QUEUE_PS] > 0:
            return True
    for i in range(words[at + n.FROM_FLOW], words[at + n.MET_FLOWS]):
        flow = words[words[at + n.MET_FLOWS_AT] + i]
        is_new = words[f.flow_row(words, filling, flow) + f.FLOW_STAMP] == words[filling + f.STAMP]
        if is_new and calls(words, at, flow):
            return True
    return False


@inline
def keep(words: Words, at: int) -> None:
    """Have flows met keep the solver's rates."""
    filling, floats = words[at + n.FILLING_AT], as_floats(words)
    for i in range(words[at + n.FROM_FLOW], words[at + n.MET_FLOWS]):
        flow = words[words[at + n.MET_FLOWS_AT] + i]
        rate = floats[f.flow_row(words, filling, flow) + f.RATE]
        floats[n.flow_at(words, at, flow) + n.FITTING] = rate


@inline
def is_kept(words: Words, at: int, flow: int) -> bool:
    """Return whether a flow has less than its host sends, as links of switches have no more."""
    filling, floats = words[at + n.FILLING_AT], as_floats(words)
    row = f.flow_row(words, filling, flow)
    if words[row + f.LIMIT] != f.NONE:
        return words[n.link_at(words, at, words[row + f.LIMIT]) + n.IS_OF_HOST] == 0
    leaves = floats[n.flow_at(words, at, flow) + n.LEAVES]
    return bool(leaves > floats[row + f.PEAK] * (1 + CLOSE))


@inline
def may_queue(words: Words, at: int, link: int) -> bool:
    """Return whether more may come to a link than it carries, or has come."""
    filling, floats, here = words[at + n.FILLING_AT], as_floats(words), n.link_at(words, at, link)
    if floats[here + n.QUEUE_PS] > 0:
        return True
    comes = 0.0
    entry = words[f.link_row(words, filling, link) + f.FIRST]
    while entry != f.NONE:
        there = f.entry_row(words, filling, entry)
        leaves = floats[n.flow_at(words, at, words[there + f.FLOW]) + n.LEAVES]
        comes += leaves * floats[there + f.USE]
        entry = words[there + f.NEXT]
    return bool(comes > floats[here + n.FULL] * (1 + CLOSE))


@inline
def meet_all(words: Words, at: int) -> None:
    """Meet links that may have queues, and flows, that those just met may concern."""
    met = words[at + n.FROM_FLOW]
    while met < words[at + n.MET_FLOWS]:
        flow = words[words[at + n.MET_FLOWS_AT] + met]
        meet_links(words, at, flow)
        if words[n.flow_at(words, at, flow) + n.AGENT] != 0:
            meet_links(words, at, words[n.flow_at(words, at, flow) + n.BACK])
        met += 1


@inline
def meet_flow(words: Words, at: int, flow: int) -> None:
    """Meet a flow, if it is there."""
    filling, mine = words[at + n.FILLING_AT], n.flow_at(words, at, flow)
    is_there = words[f.flow_row(words, filling, flow) + f.COUNT] > 0
    if is_there and words[mine + n.FLOW_STAMP] != words[at + n.STAMP]:
        words[mine + n.FLOW_STAMP] = words[at + n.STAMP]
        words[words[at + n.MET_FLOWS_AT] + words[at + n.MET_FLOWS]] = flow
        words[at + n.MET_FLOWS] += 1


@inline
def meet_links(words: Words, at: int, flow: int) -> None:
    """Meet the links on a flow's way."""
    filling = words[at + n.FILLING_AT]
    row = f.flow_row(words, filling, flow)
    first = words[row + f.FIRST_ENTRY]
    for entry in range(first, first + words[row + f.ENTRY_COUNT]):
        meet_link(words, at, words[f.entry_row(words, filling, entry) + f.LINK])


@inline
def meet_link(words: Words, at: int, link: int) -> None:
    """Meet a link that may have a queue, its flows, and those whose acknowledgements go by it."""
    filling, here = words[at + n.FILLING_AT], n.link_at(words, at, link)
    if words[here + n.LOOK_STAMP] == words[at + n.STAMP]:
        return
    words[here + n.LOOK_STAMP] = words[at + n.STAMP]
    if not may_queue(words, at, link):
        return
    words[here + n.LINK_STAMP] = words[at + n.STAMP]
    as_floats(words)[here + n.SUM] = as_floats(words)[here + n.WAS_OVER] = 0.0
    words[words[at + n.MET_LINKS_AT] + words[at + n.MET_LINKS]] = link
    words[at + n.MET_LINKS] += 1
    row = f.link_row(words, filling, link)
    entry = words[row + f.FIRST]
    while entry != f.NONE:
        there = f.entry_row(words, filling, entry)
        meet_flow(words, at, words[there + f.FLOW])
        entry = words[there + f.NEXT]
    entry = words[row + f.FIRST_ANSWER]
    while entry != f.NONE:
        there = f.entry_row(words, filling, entry)
        meet_flow(words, at, words[n.flow_at(words, at, words[there + f.FLOW]) + n.BACK])
        entry = words[there + f.NEXT_ANSWER]


@inline
def may_have_queues(words: Words, at: int) -> bool:
    """Return whether flows met are of one priority, and of hosts whose turns are known.

    What each may have alone is found meanwhile.
    """
    filling, floats = words[at + n.FILLING_AT], as_floats(words)
    level, has_turns = f.NONE, words[at + n.HAS_TURNS]
    for i in range(words[at + n.FROM_FLOW], words[at + n.MET_FLOWS]):
        flow = words[words[at + n.MET_FLOWS_AT] + i]
        row, mine = f.flow_row(words, filling, flow), n.flow_at(words, at, flow)
        is_like_others = level in (f.NONE, words[row + f.LEVEL])
        if not is_like_others or not (has_turns or is_alone(words, at, flow)):
            return False
        level = words[row + f.LEVEL]
        alone = np.inf
        first = words[row + f.FIRST_ENTRY]
        for entry in range(first, first + words[row + f.ENTRY_COUNT]):
            there = f.entry_row(words, filling, entry)
            here = n.link_at(words, at, words[there + f.LINK])
            if entry == first or words[here + n.LINK_STAMP] != words[at + n.STAMP]:
                link = f.link_row(words, filling, words[there + f.LINK])
                alone = min(alone, floats[link + f.CAPACITY])
        floats[mine + n.ALONE] = alone
    return True


@inline
def is_alone(words: Words, at: int, flow: int) -> bool:
    """Return whether a flow's host sends nothing else; switches' sums are as if it did not."""
    filling = words[at + n.FILLING_AT]
    if words[n.flow_at(words, at, flow) + n.AGENT] == 0:
        return True
    own = f.first_entry(words, filling, flow)
    is_only = words[own + f.NEXT] == f.NONE and words[own + f.PREVIOUS] == f.NONE
    return bool(is_only and f.times(words, own) == 1)


@inline
def clear(words: Words, at: int) -> None:
    """Have no queues at the links met."""
    for i in range(words[at + n.FROM_LINK], words[at + n.MET_LINKS]):
        set_queue(words, at, words[words[at + n.MET_LINKS_AT] + i], 0.0)
