"""Schedulers that order jobs: Aalo, Varys, Sincronia, Beamer, Parrot, MLTCP."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from situations import LINE_BPS, OTHER, UP, decide, item, job

from ringleaf.hosts.schedulers import aalo, parrot, sincronia, varys
from ringleaf.hosts.schedulers.common.interface import Standing

BOTH = [item(0, 1, job=0), item(0, 2, job=1)]


def priorities(name: str, jobs: dict[int, Standing]) -> dict[int, int]:
    return {each.item.job: each.priority for each in decide(name, BOTH, jobs)}


@pytest.mark.parametrize(
    ("sent_kib", "queue"), [(0, 0), (63, 0), (64, 1), (255, 1), (256, 2), (1024, 3), (1 << 20, 7)]
)
def test_aalos_queues_grow_by_four(sent_kib: int, queue: int) -> None:
    size = 1 << 31

    assert aalo.queue(job(size_bytes=size, left_bytes=size - (sent_kib << 10))) == queue


def test_aalo_lets_coflows_pass_that_have_sent_less() -> None:
    size = 1 << 20
    jobs = {
        0: job(size_bytes=size, left_bytes=size - (300 << 10)),
        1: job(size_bytes=size, left_bytes=size - (10 << 10)),
    }

    assert priorities("aalo", jobs) == {0: 5, 1: 7}


def test_beamer_ranks_stages_by_what_their_bottleneck_has_left() -> None:
    """100 bytes of 80 ps are 8,000 ps; 300 bytes of 20 ps are 6,000 ps."""
    jobs = {0: job(left_bytes=100), 1: job(left_bytes=300, link_ps={UP: 20.0})}

    assert priorities("beamer", jobs) == {1: 7, 0: 6}


def test_varys_serves_first_whose_bottleneck_is_done_first() -> None:
    """4,000 bytes of 80 ps are 320,000 ps; 1,000 bytes of 90 ps on the other link are 90,000 ps."""
    jobs = {0: job(left_bytes=4000), 1: job(left_bytes=1000, link_ps={UP: 40.0, OTHER: 90.0})}

    assert priorities("varys", jobs) == {1: 7, 0: 6}


def test_varys_paces_flows_to_their_coflows_own_bottleneck() -> None:
    """A link that carries twice what a line does is busy when hosts send at half their rate."""
    jobs = {0: job(link_ps={UP: 160.0})}

    assert [each.rate_bps for each in decide("varys", BOTH[:1], jobs)] == [LINE_BPS // 2]
    assert varys.bottleneck_ps(jobs[0]) == 4000 * 160


speeds = st.lists(
    st.dictionaries(st.sampled_from((UP, OTHER, ("a", "b"))), st.floats(1, 400), min_size=1),
    min_size=1,
    max_size=5,
).map(lambda found: {i: job(link_ps=each) for i, each in enumerate(found)})


@given(speeds)
def test_parrots_program_overloads_no_link(jobs: dict[int, Standing]) -> None:
    found = parrot.speeds(jobs)
    assert all(0 < each <= 1 + 1e-9 for each in found.values())
    for link in (UP, OTHER, ("a", "b")):
        load = sum(found[i] * each.link_ps.get(link, 0) / 80 for i, each in jobs.items())
        assert load <= 1 + 1e-6


def test_sincronia_puts_last_who_hinders_most_on_the_busiest_link() -> None:
    """The bottleneck is UP, with 9. Job 1 has 5 of it for a weight of 1, and goes last.

    The others' weights become 1 - 3/5 and 1 - 1/5. OTHER has 2 + 3, UP 3 + 1: on OTHER, job 0 has
    0.4 / 2 = 0.2 per unit, and job 2 0.8 / 3. So job 0 goes before job 1, and job 2 first.
    """
    demands = {0: {UP: 3.0, OTHER: 2.0}, 1: {UP: 5.0}, 2: {UP: 1.0, OTHER: 3.0}}

    assert sincronia.order(demands, {0: 1.0, 1: 1.0, 2: 1.0}) == [2, 0, 1]


def test_sincronia_serves_heavy_coflows_first() -> None:
    demands = {0: {UP: 3.0}, 1: {UP: 5.0}}

    assert sincronia.order(demands, {0: 1.0, 1: 1.0}) == [0, 1]
    assert sincronia.order(demands, {0: 1.0, 1: 2.0}) == [1, 0]


@given(
    st.dictionaries(
        st.integers(0, 5),
        st.dictionaries(st.sampled_from((UP, OTHER)), st.floats(0, 10)),
        min_size=1,
    )
)
def test_sincronia_orders_every_coflow_once(
    demands: dict[int, dict[tuple[str, str], float]],
) -> None:
    assert sorted(sincronia.order(demands, dict.fromkeys(demands, 1.0))) == sorted(demands)


def test_parrot_favours_the_least_service_per_coflow_and_starves_nobody() -> None:
    """100 bytes a coflow against 400, after as many; both want the whole link.

    Equal speeds are 1/2, of which each keeps a quarter: 1/8; all the rest is the second job's.
    A coflow is an iteration's gradient, into however many collectives that is cut.
    """
    jobs = {
        0: job(served_bytes=800, iterations_done=2, collectives=80),
        1: job(served_bytes=200, iterations_done=2, collectives=2),
    }

    assert parrot.weight(jobs[0]) == 0.5 / 400  # half of the confidence after 2 coflows
    assert parrot.speeds(jobs) == pytest.approx({0: 1 / 8, 1: 7 / 8})
    assert priorities("parrot", jobs) == {1: 7, 0: 6}
    assert {each.rate_bps for each in decide("parrot", BOTH, jobs)} == {0}  # nothing is left idle


def test_parrot_orders_jobs_that_its_program_leaves_equal_by_their_weight() -> None:
    jobs = {i: job(served_bytes=bytes_, iterations_done=1) for i, bytes_ in enumerate((9, 5, 1, 4))}

    assert parrot.order(jobs) == [2, 3, 1, 0]


@given(st.lists(st.integers(1, 10**9), min_size=1, max_size=5, unique=True))
def test_on_one_link_varys_sincronia_and_beamer_are_one_rule(left: list[int]) -> None:
    """The least bytes left go first, so a comparison of the three on one link shows nothing."""
    jobs = {i: job(left_bytes=each) for i, each in enumerate(left)}
    waiting = [item(0, job=i) for i in jobs]
    levels = [
        {each.item.job: each.priority for each in decide(name, waiting, jobs)}
        for name in ("varys", "sincronia", "beamer")
    ]

    assert levels[0] == levels[1] == levels[2]
    assert max(levels[0], key=lambda i: levels[0][i]) == left.index(min(left))


def test_in_a_chain_sincronia_holds_back_the_job_that_hinders_two() -> None:
    """Varys serves the shortest first, though each of its neighbours has a link of its own."""
    jobs = {
        0: job(left_bytes=101, link_ps={UP: 80.0}),
        1: job(left_bytes=100, link_ps={UP: 80.0, OTHER: 80.0}),
        2: job(left_bytes=102, link_ps={OTHER: 80.0}),
    }
    waiting = [item(0, job=i) for i in jobs]
    first = {
        name: max(decide(name, waiting, jobs), key=lambda each: each.priority).item.job
        for name in ("varys", "beamer", "sincronia")
    }

    assert first == {"varys": 1, "beamer": 1, "sincronia": 0}


def test_mltcps_windows_grow_faster_the_further_an_iteration_is() -> None:
    """F = 1.75 x share + 0.25: 0.25 at first, 1.125 half-way, and 2 at the end."""
    gains = [
        decide("mltcp", BOTH[:1], {0: job(left_bytes=left)})[0].gain for left in (4000, 2000, 0)
    ]

    assert gains == [0.25, 1.125, 2.0]
