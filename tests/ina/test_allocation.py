"""Allocators of switches' memory, the places of holdings, and their moves."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.core.arena import Arena
from ringleaf.core.units import PS_PER_MS, PS_PER_S
from ringleaf.ina.allocation import ALLOCATORS, Claim, lay_out
from ringleaf.ina.allocators.equal import ALLOCATOR as EQUAL
from ringleaf.ina.allocators.inalloc import ALLOCATOR as INALLOC
from ringleaf.ina.allocators.inalloc import _needed
from ringleaf.ina.holdings import NOTHING, Holding, Updates
from ringleaf.networks.endpoints.keeper import Keeper


def claim(job: int, mib: int, *, most: int = 100, due_ps: int | None = None) -> Claim:
    """A job of so many times 125,000 bytes, at 1 Gbit/s per entry, that computes for 2 ms."""
    return Claim(job, 1, most, 125_000 * mib, 2 * PS_PER_MS, 0, 10**9, 10**10, due_ps)


claims = st.builds(
    claim,
    st.just(0),
    st.integers(0, 50),
    most=st.integers(1, 12),
    due_ps=st.none() | st.integers(0, 30).map(lambda ms: ms * PS_PER_MS),
)


def test_a_job_computes_and_sends_in_turns() -> None:
    """4 x 125,000 bytes are 4 ms at 1 Gbit/s; the line's rate is that of ten entries."""
    times = [claim(1, 4).time_ps(entries) / PS_PER_MS for entries in (1, 2, 4, 10, 20)]
    assert times == [6, 4, 3, 2.4, 2.4]


def test_backward_passes_hide_sending() -> None:
    """1.5 ms of the 2 are backward passes: sending for 4, 2 or 1 ms takes 2.5, 0.5 or 0 more."""
    job = replace(claim(1, 4), hidden_ps=1_500_000_000)
    assert [job.time_ps(entries) / PS_PER_MS for entries in (1, 2, 4)] == [4.5, 2.5, 2]


@pytest.mark.parametrize("name", list(ALLOCATORS))
@given(wanted=st.lists(claims, max_size=6), entries=st.integers(0, 40))
def test_parts_are_within_bounds(name: str, wanted: list[Claim], entries: int) -> None:
    parts = ALLOCATORS[name].allot(wanted, entries)

    assert sum(parts) <= entries
    for each, part in zip(wanted, parts, strict=True):
        assert part == 0 or each.least <= part <= each.most
    if any(part < each.least for each, part in zip(wanted, parts, strict=True)):
        assert sum(parts) == entries or len(wanted) > entries


def test_equal_parts_leave_what_one_cannot_use_to_others() -> None:
    assert EQUAL.allot([claim(1, 1), claim(2, 1, most=2), claim(3, 1)], 20) == [9, 2, 9]


def test_inalloc_gives_what_equal_parts_would_waste_to_who_sends() -> None:
    """The first job sends nothing, so no entry makes it faster; the second's time falls to 9."""
    jobs = [claim(1, 0), claim(2, 20)]

    assert INALLOC.allot(jobs, 10) == [1, 9]
    assert EQUAL.allot(jobs, 10) == [5, 5]


@given(
    sizes=st.lists(st.integers(0, 30), min_size=1, max_size=3),
    entries=st.integers(3, 10),
)
def test_no_other_parts_make_the_sum_of_slowdowns_less(sizes: list[int], entries: int) -> None:
    """All parts are tried."""
    jobs = [claim(number, size, most=8) for number, size in enumerate(sizes)]

    def total(parts: tuple[int, ...]) -> float:
        return sum(
            job.time_ps(part) / job.time_ps(8) for job, part in zip(jobs, parts, strict=True)
        )

    choices = product(range(1, 9), repeat=len(jobs))
    best = min(total(parts) for parts in choices if sum(parts) <= entries)
    assert total(tuple(INALLOC.allot(jobs, entries))) == pytest.approx(best)


@pytest.mark.parametrize(("due_ps", "entries"), [(22, 4), (21, None), (44, 2), (43, 3), (88, 1)])
def test_a_job_needs_the_fewest_entries_with_which_it_is_in_time(
    due_ps: int, entries: int | None
) -> None:
    """It takes 80 ps with one entry and 20 ps with four, and a tenth more is reckoned with."""
    claim = Claim(1, 1, 4, left_bytes=10, left_ps=0, hidden_ps=0, entry_bps=10**12, link_bps=10**13)
    assert claim.time_ps(4) == 20
    assert _needed(claim, due_ps) == entries


def test_deadlines_go_first_and_hopeless_ones_do_not() -> None:
    """Job 1 needs 2 entries, for 4 ms of 4.4; job 2 is late whatever it gets, job 3 wants all."""
    jobs = [
        claim(1, 4, due_ps=4_400_000_000),
        claim(2, 4, due_ps=2 * PS_PER_MS),
        claim(3, 1000),
    ]
    assert INALLOC.allot(jobs, 4) == [2, 1, 1]
    assert INALLOC.allot([claim(1, 4), claim(3, 1000)], 4) == [1, 3]


holdings = st.lists(st.integers(0, 6), min_size=1, max_size=6)


def disjoint(held: list[Holding], entries: int) -> bool:
    return sum(each.entries for each in held) == len(
        {entry for each in held for entry in range(each.first, each.stop) if entry < entries}
    )


@given(before=holdings, seed=st.integers(0, 1000), data=st.data())
def test_holdings_do_not_overlap_and_stay_where_they_can(
    before: list[int], seed: int, data: st.DataObject
) -> None:
    now, first = {}, 0
    for job, size in enumerate(before):
        now[job] = Holding(first, size)
        first += size + Random(f"{seed} {job}").randint(0, 2)
    wanted = {job: data.draw(st.integers(0, 6)) for job in now}
    entries = max(first, sum(wanted.values()))

    found = lay_out(now, wanted, entries)

    assert {job: each.entries for job, each in found.items()} == wanted
    assert disjoint(list(found.values()), entries)
    assert lay_out(now, {job: each.entries for job, each in now.items()}, entries) == {
        job: each if each.entries else NOTHING for job, each in now.items()
    }


class Noted:
    """A mover that only notes its holding."""

    def __init__(self, holding: Holding, available: int) -> None:
        self.holding, self.available = holding, available
        self.least, self.most, self.entry_bps = 1, available, PS_PER_S

    def move(self, arena: Arena, holding: Holding) -> Updates:
        raise AssertionError("the keeper moves nobody itself")


@given(
    plans=st.lists(st.lists(st.integers(0, 5), min_size=4, max_size=4), min_size=1, max_size=5),
    seed=st.integers(0, 1000),
)
def test_moves_come_to_an_end_and_never_meet(plans: list[list[int]], seed: int) -> None:
    """Jobs are idle or not by chance; a new plan may come before the last one is carried out."""
    random = Random(seed)
    movers = {job: Noted(Holding(4 * job, 4), 16) for job in range(4)}

    class Sizes:
        name = title = "sizes"
        sizes: list[int]

        def allot(self, claims: list[Claim], entries: int) -> list[int]:
            left = entries
            parts = []
            for each in claims:
                parts.append(min(self.sizes[each.job], left))
                left -= parts[-1]
            return parts

    sizes = Sizes()
    keeper = Keeper(movers, sizes)  # type: ignore[arg-type]
    for plan in plans:
        sizes.sizes = plan
        keeper.plan([claim(job, 1) for job in range(4)])
        for _ in range(random.randint(0, 12)):
            move = keeper.next_move(lambda job: random.random() < 0.5 and job in keeper.held())
            if move:
                movers[move[0]].holding = move[1]
                assert disjoint([each.holding for each in movers.values()], 16)
    for _ in range(20):  # whoever is held gets idle
        move = keeper.next_move(lambda job: True)
        if move:
            movers[move[0]].holding = move[1]
    wanted = sizes.allot([claim(job, 1) for job in range(4)], 16)
    assert [each.holding.entries for each in movers.values()] == wanted
    assert keeper.held() == {job for job, part in enumerate(wanted) if not part}
