"""The study of adaptive routes: its traffic, and that UGAL is neither minimal nor Valiant's."""

from __future__ import annotations

from random import Random

import pytest

from studies.adaptive import NETWORKS, TRAFFIC, Groups, flows_of, times_us, to_any

ROUTERS, _ = NETWORKS


@pytest.mark.parametrize("groups", NETWORKS)
def test_adversarial_flows_go_to_the_next_group_and_even_ones_anywhere(groups: Groups) -> None:
    rows = [line.split(",") for line in flows_of(groups, "adversarial", 0.1, 400, 1)][1:]
    moves = {
        int(target) // groups.hosts - int(source) // groups.hosts for source, target, *_ in rows
    }
    assert moves == {1, 1 - groups.count}
    hosts = groups.count * groups.hosts
    assert {to_any(groups, 3, Random(seed)) for seed in range(999)} == {*range(hosts)} - {3}


def test_flows_bring_the_load() -> None:
    """Of 28 hosts with 100 Gbit/s: 28 x 0.5 x 12.5 bytes in a nanosecond."""
    *_, last = flows_of(ROUTERS, "even", 0.5, 4000, 1)
    end_ps = int(last.rpartition(",")[2].removesuffix("ps"))
    assert pytest.approx(end_ps / 1000, rel=0.05) == 4000 * 16384 / (28 * 0.5 * 12.5)


def test_ugal_is_as_fast_as_the_better_one_of_both_ways() -> None:
    """At a load of 0.4, four hosts would send 1.6 times what the link to the next group carries."""
    medians = {
        (traffic, routes): times_us(ROUTERS, traffic, 0.4, routes, count=400, seed=1)[0]
        for traffic in TRAFFIC
        for routes in ("dealt", "valiant", "ugal")
    }
    assert medians["even", "ugal"] == pytest.approx(medians["even", "dealt"], rel=0.05)
    assert medians["even", "ugal"] < 0.8 * medians["even", "valiant"]
    assert medians["adversarial", "ugal"] < 0.7 * medians["adversarial", "dealt"]
    assert medians["adversarial", "ugal"] < medians["adversarial", "valiant"]
