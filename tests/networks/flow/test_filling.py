"""Rates are max-min fair: by published values, by the definition, and whatever has changed."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from uncompiled import run_uncompiled, starts_uncompiled

import ringleaf.networks.flow.fill_tables as f
from bench.peers.simgrid_star import interpreter
from ringleaf.core import native_types as types
from ringleaf.core.arena import Arena, Store
from ringleaf.core.compiled import compiled
from ringleaf.core.native_types import ARENA
from ringleaf.core.views import as_floats
from ringleaf.networks.flow.filling import solve_changes

FOREVER = float("inf")


@compiled(types.void(ARENA, types.int64))
def solve(arena: Arena, at: int) -> None:
    solve_changes(arena.words, at)


@dataclass(frozen=True)
class Flow:
    """A flow: the links that it crosses with its use of each, and its terms."""

    way: dict[int, int]
    weight: int = 1
    peak: float = FOREVER
    level: int = 0
    count: int = 1


@dataclass
class Solver:
    """The solver with some flows, of which none is there at first."""

    capacities: Sequence[int]
    flows: Sequence[Flow]
    store: Store = field(default_factory=Store)
    present: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.at = f.make_filling(self.store, [float(each) for each in self.capacities])
        f.add_flows(self.store, self.at, [list(flow.way.items()) for flow in self.flows])
        for number, flow in enumerate(self.flows):
            row = self.row(number)
            as_floats(self.words)[row + f.WEIGHT] = flow.weight
            self.words[row + f.LEVEL] = flow.level
            f.set_peak(self.words, self.at, number, flow.peak)

    @property
    def words(self) -> np.ndarray:
        return self.store.arena.words

    def row(self, number: int) -> int:
        return int(f.flow_row(self.words, self.at, number))

    def change(self, number: int) -> None:
        """Let a flow come, or go if it is there."""
        count = 0 if number in self.present else self.flows[number].count
        f.set_count(self.words, self.at, number, count)
        self.present ^= {number}

    def rates(self) -> dict[int, float]:
        solve(self.store.arena, self.at)
        floats = as_floats(self.words)
        return {number: float(floats[self.row(number) + f.RATE]) for number in self.present}


def rates_of(capacities: Sequence[int], flows: Sequence[Flow]) -> list[float]:
    solver = Solver(capacities, flows)
    for number in range(len(flows)):
        solver.change(number)
    rates = solver.rates()
    return [rates[number] for number in range(len(flows))]


# SimGrid's penalties are the reciprocals of weights; its weights are the uses of links
# (simgrid, src/kernel/lmm/maxmin_test.cpp). The others are worked out by hand.
@pytest.mark.parametrize(
    ("capacities", "flows", "expected"),
    [
        ([3], [Flow({0: 1}, weight=2), Flow({0: 1}, weight=1)], [2, 1]),
        ([3], [Flow({0: 1}), Flow({0: 2})], [1, 1]),
        ([20], [Flow({0: 1}, weight=2), Flow({0: 2})], [10, 5]),
        (
            [20, 60],
            [Flow({0: 1, 1: 2}, weight=2), Flow({0: 2}), Flow({1: 1}, weight=2)],
            [10, 5, 40],
        ),
        ([10, 20], [Flow({0: 1, 1: 1}), Flow({0: 1}), Flow({1: 1})], [5, 5, 15]),
        (
            [1, 1, 1, 2],
            [
                *(Flow({0: 1, 1: 1, 2: 1}), Flow({0: 1}), Flow({1: 1})),
                *(Flow({1: 1, 2: 1}), Flow({2: 1, 3: 1})),
            ],
            [Fraction(1, 3), Fraction(2, 3), Fraction(1, 3), Fraction(1, 3), Fraction(1, 3)],
        ),
        ([12], [Flow({0: 1}, peak=2), Flow({0: 1}), Flow({0: 1})], [2, 5, 5]),
        ([12], [Flow({0: 1}), Flow({0: 1}, weight=2), Flow({0: 1})], [3, 6, 3]),
        ([12], [Flow({0: 1}, level=1, peak=4), Flow({0: 1}), Flow({0: 1})], [4, 4, 4]),
        ([12], [Flow({0: 1}, level=7), Flow({0: 1})], [12, 0]),
        ([12], [Flow({0: 1}, count=3), Flow({0: 1})], [3, 3]),
    ],
)
def test_rates_are_those_of_references(
    capacities: list[int], flows: list[Flow], expected: list[Fraction]
) -> None:
    assert rates_of(capacities, flows) == pytest.approx([float(each) for each in expected])


def test_a_flow_that_goes_leaves_its_rate_to_others() -> None:
    solver = Solver([12], [Flow({0: 1}), Flow({0: 1}), Flow({0: 1})])
    for number in range(3):
        solver.change(number)
    assert solver.rates() == {0: 4, 1: 4, 2: 4}

    solver.change(1)

    assert solver.rates() == {0: 6, 2: 6}


def test_flows_that_a_change_does_not_concern_are_not_solved_again() -> None:
    """Links 1 and 2 have room for all that their flows may have, so they join nothing."""
    solver = Solver([12, 12, 30], [Flow({0: 1}), Flow({0: 1, 2: 1}), Flow({1: 1, 2: 1})])
    for number in range(3):
        solver.change(number)
    solver.rates()

    solver.change(2)
    solver.change(2)
    solver.rates()

    assert solver.words[solver.at + f.MET_FLOWS] == 1


def test_a_change_goes_on_where_others_have_too_much() -> None:
    """When flow 1 has gone, flow 0 may have more of link 1 than flow 2 leaves there."""
    solver = Solver([4, 12], [Flow({0: 1, 1: 1}), Flow({0: 1}), Flow({1: 1})])
    for number in range(3):
        solver.change(number)
    assert solver.rates() == {0: 2, 1: 2, 2: 10}

    solver.change(1)

    assert solver.rates() == {0: 4, 2: 8}


def test_a_capacity_that_changes_is_heeded_both_ways() -> None:
    solver = Solver([12], [Flow({0: 1})])
    solver.change(0)
    assert solver.rates() == {0: 12}

    for capacity in (9.0, 12.0):
        f.set_capacity(solver.words, solver.at, 0, capacity)
        assert solver.rates() == {0: capacity}


@pytest.mark.parametrize(
    ("left", "rate", "limit"),
    [((12, 12), 12, f.NONE), ((9, 6), 6, 1), ((6, 9), 6, 0), ((9, 9), 9, 0), ((9, 12), 9, 0)],
)
def test_what_keeps_a_flow_from_more_is_known_if_it_is_alone(
    left: Sequence[int], rate: int, limit: int
) -> None:
    solver = Solver([12, 12, 12], [Flow({0: 1, 1: 1}), Flow({2: 1})])
    for link, capacity in enumerate(left):
        f.set_capacity(solver.words, solver.at, link, float(capacity))
    solver.change(0)
    solver.change(1)

    assert solver.rates() == {0: rate, 1: 12}
    assert [solver.words[solver.row(number) + f.LIMIT] for number in (0, 1)] == [limit, f.NONE]


LINKS = 4
links = st.dictionaries(st.integers(0, LINKS - 1), st.integers(1, 3), min_size=1)
flows_of = st.builds(
    Flow,
    links,
    weight=st.integers(1, 4),
    peak=st.one_of(st.just(FOREVER), st.integers(1, 20).map(float)),
    level=st.integers(0, 1),
    count=st.integers(1, 3),
)


def check(solver: Solver, rates: dict[int, float]) -> None:
    """Check rates by the definition of max-min fairness, with levels.

    Each flow has its peak; or it crosses a link that is full of flows of its level and above, and
    nobody of its level has more there by weight.
    """

    def used(link: int, level: int) -> float:
        own = (number for number in rates if solver.flows[number].level >= level)
        return sum(
            rates[number] * flow.way.get(link, 0) * flow.count
            for number in own
            for flow in [solver.flows[number]]
        )

    def is_bottleneck(link: int, number: int) -> bool:
        flow, capacity = solver.flows[number], solver.capacities[link]
        if used(link, flow.level) < capacity * (1 - 1e-6):
            return False
        beside = [
            other
            for other in rates
            if link in solver.flows[other].way and solver.flows[other].level == flow.level
        ]
        shares = [rates[other] / solver.flows[other].weight for other in beside]
        return rates[number] / flow.weight >= max(shares) * (1 - 1e-6)

    for link, capacity in enumerate(solver.capacities):
        assert used(link, 0) <= capacity * (1 + 1e-6)
    for number, rate in rates.items():
        flow = solver.flows[number]
        most = min([flow.peak, *(solver.capacities[link] / use for link, use in flow.way.items())])
        assert rate <= most * (1 + 1e-6)
        assert rate >= most * (1 - 1e-6) or any(is_bottleneck(link, number) for link in flow.way)


@given(
    st.lists(st.integers(1, 20), min_size=LINKS, max_size=LINKS),
    st.lists(flows_of, min_size=1, max_size=8),
    st.lists(st.lists(st.integers(0, 7), min_size=1, max_size=3), min_size=1, max_size=8),
)
def test_rates_are_fair_after_every_change(
    capacities: list[int], flows: list[Flow], changes: list[list[int]]
) -> None:
    solver = Solver(capacities, flows)
    for some in changes:
        for number in some:
            solver.change(number % len(flows))
        check(solver, solver.rates())


@dataclass(frozen=True)
class Transfer:
    """So many units on links, from a time on."""

    way: dict[int, int]
    size: int
    start: int = 0


def ends_of(capacities: Sequence[int], transfers: Sequence[Transfer]) -> list[float]:
    """Return when transfers end, by the solver's rates between starts and ends."""
    solver = Solver(capacities, [Flow(each.way) for each in transfers])
    left = [float(each.size) for each in transfers]
    ends = [FOREVER] * len(transfers)
    now = 0.0
    while FOREVER in ends:
        for number, each in enumerate(transfers):
            is_due = each.start <= now and ends[number] == FOREVER
            if is_due and number not in solver.present:
                solver.change(number)
        rates = solver.rates()
        starts = [each.start - now for each in transfers if each.start > now]
        step = min([*starts, *(left[number] / rate for number, rate in rates.items())])
        now += step
        for number, rate in rates.items():
            left[number] -= rate * step
            if left[number] < 1e-9:
                ends[number] = now
        for number in [*solver.present]:
            if ends[number] < FOREVER:
                solver.change(number)
    return ends


# The last: QDelta/Phantora, phantora/netsim/tests/toy1.rs, with times in ns and rates in bit/ns.
# a1 20, a2 10, a3 9 (below vs1, 35 up), a5 10, a6 5 (below vs2, 15 up).
@pytest.mark.parametrize(
    ("capacities", "transfers", "expected"),
    [
        ([1], [Transfer({0: 1}, 8), Transfer({0: 1}, 8, 4)], [12, 16]),
        (
            [10, 10],
            [Transfer({0: 1, 1: 1}, 30), Transfer({0: 1}, 10), Transfer({1: 1}, 50, 2)],
            [6, 2, 9],
        ),
        (
            [20, 10, 35, 15, 10, 5, 9],
            [
                Transfer({0: 1, 2: 1, 3: 1, 4: 1}, 8_000_000),
                Transfer({1: 1, 2: 1, 3: 1, 5: 1}, 8_000_000),
                Transfer({1: 1, 6: 1}, 8_000_000, 1_000_000),
            ],
            [800_000, 1_600_000, 2_155_556],
        ),
    ],
)
def test_transfers_end_as_in_references(
    capacities: list[int], transfers: list[Transfer], expected: list[int]
) -> None:
    assert ends_of(capacities, transfers) == pytest.approx(expected, rel=1e-6)


CASES = 200
SIZE = 1_000_000  # bytes; SimGrid's ends are exact to a nanosecond


def random_case(rng: Random) -> tuple[list[int], list[Transfer]]:
    links = rng.randint(1, 5)
    capacities = [SIZE * rng.randint(1, 20) for _ in range(links)]
    transfers = []
    for _ in range(rng.randint(1, 6)):
        way = rng.sample(range(links), rng.randint(1, links))
        start = rng.choice([0, 0, rng.randint(1, 3)])
        transfers.append(Transfer(dict.fromkeys(way, 1), SIZE * rng.randint(1, 50), start))
    return capacities, transfers


@pytest.mark.skipif(interpreter() is None, reason="needs simgrid: apt install python3-simgrid")
def test_transfers_end_as_in_simgrid() -> None:
    """All cases are one platform, as they have no link in common."""
    rng = Random(1)
    cases = [random_case(rng) for _ in range(CASES)]
    capacities: list[int] = []
    flows = []
    for own, transfers in cases:
        first = len(capacities)
        flows += [([first + link for link in t.way], t.size, t.start) for t in transfers]
        capacities += own

    done = subprocess.run(
        [interpreter() or "", str(Path(__file__).with_name("simgrid_flows.py"))],
        input=json.dumps([capacities, flows]),
        capture_output=True,
        text=True,
        check=True,
    )

    ours = [end for own, transfers in cases for end in ends_of(own, transfers)]
    assert ours == pytest.approx(json.loads(done.stdout), rel=1e-3)


@starts_uncompiled
def test_it_works_uncompiled() -> None:
    assert "1 x is what this test starts" in run_uncompiled(__file__)
