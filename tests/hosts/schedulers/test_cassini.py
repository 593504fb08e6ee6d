"""CASSINI's circles, with the golden scores, and the walk over jobs and links."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from situations import OTHER, UP

from ringleaf.core.units import PS_PER_MS
from ringleaf.hosts.schedulers.cassini import SCHEDULER, shared_links, shifts
from ringleaf.hosts.schedulers.common.circle import ANGLES, best_rotations, demand, score, turns
from ringleaf.hosts.schedulers.common.hooks import Prospect

PERIOD_PS = 100 * PS_PER_MS
HALF = demand(PERIOD_PS, [(0, PERIOD_PS // 2)], 1.0, ANGLES)


def prospect(*links: tuple[str, str], start_ps: int = 0, period_ps: int = PERIOD_PS) -> Prospect:
    """Return a job that wants all of some links for the first half of its iterations."""
    return Prospect(start_ps, period_ps, ((0, period_ps // 2),), dict.fromkeys(links, 80.0))


def test_golden_scores_of_two_jobs() -> None:
    """Each wants the link for 50 of 100 ms: together half of the circle has too much, by 1."""
    assert score([HALF, HALF]) == pytest.approx(0.5)
    assert best_rotations([HALF, HALF], [1, 1]) == (1.0, [0, ANGLES // 2])


def test_golden_score_of_three_jobs() -> None:
    """They want 1.5 times what the link has, so no shifts are better than 0.5."""
    assert best_rotations([HALF] * 3, [1, 1, 1])[0] == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("periods", "counts"), [([100, 100], [1, 1]), ([100, 200], [2, 1]), ([100, 151], [3, 2])]
)
def test_circles_hold_whole_iterations(periods: list[int], counts: list[int]) -> None:
    assert turns(periods) == counts


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=6))
def test_circles_stay_short(periods: list[int]) -> None:
    assert np.lcm.reduce(turns(periods)) <= 64


def test_demand_beyond_the_iteration_begins_anew() -> None:
    found = demand(8, [(6, 10)], 0.5, 8)
    assert found.tolist() == [0.5, 0.5, 0, 0, 0, 0, 0.5, 0.5]


def test_two_jobs_on_a_link_send_in_turns() -> None:
    assert shifts({0: prospect(UP), 1: prospect(UP)}) == {0: 0, 1: PERIOD_PS // 2}


def test_shifts_add_up_along_a_chain_of_links() -> None:
    """Jobs 0 and 1 share a link, jobs 1 and 2 another: 2 is half a circle from 1, and so with 0."""
    jobs = {0: prospect(UP), 1: prospect(UP, OTHER), 2: prospect(OTHER)}
    assert shifts(jobs) == {0: 0, 1: PERIOD_PS // 2, 2: 0}


def test_links_that_close_a_loop_are_left_out() -> None:
    jobs = {0: prospect(UP, OTHER), 1: prospect(UP, OTHER)}
    assert shared_links(jobs) == {UP: [0, 1]}


def test_jobs_begin_when_their_iterations_are_due() -> None:
    """The second job is to be half an iteration behind, and may not start before 30 ms."""
    ms = PS_PER_MS
    jobs = {0: prospect(UP), 1: prospect(UP, start_ps=30 * ms)}
    assert SCHEDULER.starts(jobs) == {0: 0, 1: 50 * ms}
    jobs = {0: prospect(UP), 1: prospect(UP, start_ps=60 * ms)}
    assert SCHEDULER.starts(jobs) == {0: 0, 1: 150 * ms}


def test_jobs_that_share_nothing_are_not_shifted() -> None:
    ms = PS_PER_MS
    jobs = {0: prospect(UP), 1: prospect(OTHER, start_ps=30 * ms)}
    assert SCHEDULER.starts(jobs) == {0: 0, 1: 30 * ms}


def test_the_first_of_those_that_share_a_link_does_not_wait() -> None:
    ms = PS_PER_MS
    jobs = {0: prospect(UP, start_ps=130 * ms), 1: prospect(UP)}
    assert SCHEDULER.starts(jobs) == {0: 130 * ms, 1: 80 * ms}
