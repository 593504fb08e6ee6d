"""The demand of flows that are limited by hosts' NICs alone, as Hedera estimates it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from fractions import Fraction
from itertools import chain

Flow = tuple[Hashable, Hashable]
"""The two ends: the one that sends, and the one that receives."""


def estimate(flows: Sequence[Flow]) -> list[Fraction]:
    """Return the rate that each flow would have if only its ends were a limit, in rates of a NIC.

    Senders share their NICs equally; receivers that get too much share theirs equally, up to what
    each flow asks for; both again until nothing changes. Fractions are exact: with floats, a share
    may seem to be below one that it equals.

    Source:
        Al-Fares, Radhakrishnan, Raghavan, Huang and Vahdat, "Hedera: Dynamic Flow Scheduling for
        Data Center Networks", NSDI 2010, section 4.1 and figure 6.
    """
    return rounds(flows)[-1]


def rounds(flows: Sequence[Flow]) -> list[list[Fraction]]:
    """Return the demands after each round, the last of which changes nothing."""
    sent, received = _by_end(flows, 0), _by_end(flows, 1)
    demand = [Fraction(0)] * len(flows)
    settled: set[int] = set()
    history: list[list[Fraction]] = []
    while not history or demand != history[-1]:
        history.append(list(demand))
        for own in sent:
            _share(own, demand, settled)
        for own in received:
            _limit(own, demand, settled)
    return [*history[1:], demand]


def _by_end(flows: Sequence[Flow], end: int) -> Iterable[list[int]]:
    groups: dict[Hashable, list[int]] = defaultdict(list)
    for number, flow in enumerate(flows):
        groups[flow[end]].append(number)
    return list(groups.values())


def _share(own: Sequence[int], demand: list[Fraction], settled: set[int]) -> None:
    """Share a sender's NIC among its flows that no receiver limits."""
    free = [flow for flow in own if flow not in settled]
    if free:
        others = [flow for flow in own if flow in settled]
        share = (1 - _total(alike(others, demand))) / Fraction(len(free))
        for flow in free:
            demand[flow] = share


def _limit(own: Sequence[int], demand: list[Fraction], settled: set[int]) -> None:
    """Share a receiver's NIC among its flows, if they ask for more than it has."""
    limited, left = alike(own, demand), Fraction(1)
    if _total(limited) <= left:
        return
    while True:
        share = left / sum(len(flows) for _, flows in limited)
        small = [(asked, flows) for asked, flows in limited if asked < share]
        if not small:
            break
        left -= _total(small)
        limited = [(asked, flows) for asked, flows in limited if asked >= share]
    for flow in chain.from_iterable(flows for _, flows in limited):
        demand[flow] = share
        settled.add(flow)


Alike = Sequence[tuple[Fraction, Sequence[int]]]
"""Flows by what they ask for, which several may have in common."""


def alike(flows: Iterable[int], demand: Sequence[Fraction]) -> Alike:
    """Return flows by their demand, as fractions take so long that each is looked at only once."""
    groups: dict[tuple[int, int], list[int]] = defaultdict(list)
    for flow in flows:
        groups[demand[flow].as_integer_ratio()].append(flow)  # a fraction's hash takes longer
    return [(demand[own[0]], own) for own in groups.values()]


def _total(groups: Alike) -> Fraction:
    return sum((asked * len(flows) for asked, flows in groups), Fraction(0))
