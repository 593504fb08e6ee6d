"""Algorithms chosen by the cost model, and what is expected of them."""

from __future__ import annotations

import pytest
from running import foot

from ringleaf.collectives.choice import candidates
from ringleaf.collectives.collective import Collective
from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.collectives.schedule import Op, Schedule, Transfer
from ringleaf.core.units import PS_PER_US
from ringleaf.experiments.bounds.bounds import Bounds
from ringleaf.experiments.workloads.collective.experiment import CollectiveExperiment
from ringleaf.experiments.workloads.collective.kind import resolve
from ringleaf.topologies import registry
from studies import best, regret

LINE_PS = 4178 * 80  # a packet of 4096 bytes at 100 Gbit/s, as in test_bounds
STAR = "leafspine,leaves=1,spines=1,hosts=4"


def bounds(topo: str) -> Bounds:
    return Bounds(registry.build(topo, rate_bps=100_000_000_000, delay_ps=PS_PER_US))


def test_messages_that_share_a_link_in_a_step_follow_one_another() -> None:
    """Two steps of two messages of one packet each, out of one host, then into one.

    A bound counts two at most on each link. By steps the second two come after the first two: two
    times two packets, and the delays of two ways of two links.
    """
    rows = [Transfer(0, 0, peer, peer, Op.COPY) for peer in (1, 2)]
    rows += [Transfer(1, peer, 3, peer, Op.COPY) for peer in (1, 2)]
    schedule = Schedule(Collective.BROADCAST, "there and on", 4, 4, rows)

    assert bounds(STAR).expected_ps(schedule, 4 * 4096) == 2 * 2 * LINE_PS + 2 * 2 * PS_PER_US


def test_independent_messages_do_not_wait_for_their_steps() -> None:
    """Three steps, each with another busy receiver, but nobody waits: three packets by any port."""
    schedule = ALGORITHMS["alltoall"].build(4)
    least_ps = 3 * LINE_PS + 2 * PS_PER_US
    found_ps = bounds(STAR).expected_ps(schedule, 4 * 4096)
    assert least_ps <= found_ps <= least_ps + LINE_PS  # which the switch stores


@pytest.mark.parametrize("collective", list(Collective))
def test_each_collective_has_one_that_chooses(collective: Collective) -> None:
    name = regret.chooser(collective)
    others = [each.name for each in candidates(collective)]
    assert others
    assert name not in others
    made = ALGORITHMS[name].build(5, size_bytes=1 << 12)
    assert made.collective is collective
    assert made.algorithm in others


def test_without_a_model_closed_forms_decide() -> None:
    """On ideal ports few steps are best for small tensors; each of them sends the least bytes."""
    made = ALGORITHMS["auto"].build(8, size_bytes=64)
    least_ps = min(each.cost(8, size_bytes=64).time_ps for each in candidates(Collective.ALLREDUCE))
    assert ALGORITHMS[made.algorithm].cost(8, size_bytes=64).time_ps == least_ps


def test_large_groups_are_not_all_built() -> None:
    asked = []

    def model(schedule: Schedule) -> int:
        asked.append(schedule.algorithm)
        return 1

    ALGORITHMS["allgather-auto"].build(65, size_bytes=1 << 12, time_ps=model)
    ALGORITHMS["auto"].build(65, size_bytes=1 << 12, time_ps=model)
    assert len(asked) <= 8


def test_a_table_says_what_was_chosen_and_expected() -> None:
    """On a torus all links of the ranks are used: 2 (n - 1) / n of S over four take 149 us."""
    spec = resolve({"topo": "torus2d,x=3,y=3", "algo": "auto", "size": "4M", "data": "none"})
    experiment = CollectiveExperiment(spec)
    [found] = [each.row for each in experiment.run()]
    assert found.time_ps < 1.15 * 149.13 * PS_PER_US
    assert found.expected_ps is not None
    assert found.expected_ps == pytest.approx(found.time_ps, rel=0.1)
    experiment.results.rows.append(found)
    assert any(
        f"auto at 4 MiB: {found.choice}, expected to take" in line
        for line in foot(experiment.results)
    )


def test_the_best_algorithm_of_a_small_star() -> None:
    [row, *_] = best.measure(STAR, Collective.BROADCAST, "1MiB")
    found = best.Best(STAR, Collective.BROADCAST, row)
    assert row.floor_percent > 50
    assert f"| {STAR} | broadcast | {row.algo} | " in found.line


def test_regret_is_against_the_best_one() -> None:
    found = list(regret.measure(STAR, Collective.ALL_GATHER, ["4KiB", "64KiB"]))
    assert [each.chosen.size_bytes for each in found] == [4096, 65536]
    for each in found:
        assert each.best.time_ps <= each.chosen.time_ps
        assert each.share == each.chosen.time_ps / each.best.time_ps - 1
    assert "of 2" in next(regret.summary(found))
