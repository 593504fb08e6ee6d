"""Kendall's tau by hand, and a ranking of a slow link that both networks agree on."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from studies.mitigations import NOTHING, Ranking, Scenario, kendalls_tau, mitigations


@pytest.mark.parametrize(
    ("one", "other", "tau"),
    [
        ((1, 2, 3), (4, 5, 6), 1),
        ((1, 2, 3), (6, 5, 4), -1),
        ((1, 2, 3, 4), (1, 2, 4, 3), 2 / 3),  # five pairs of six agree: (5 - 1) / 6
        ((12, 2, 1, 12, 2), (1, 4, 7, 1, 0), -0.4714045207910316),  # SciPy's example of tau-b
        ((1, 1), (1, 2), 1),  # nothing could be wrong
    ],
)
def test_tau(one: tuple[int, ...], other: tuple[int, ...], tau: float) -> None:
    assert kendalls_tau(one, other) == pytest.approx(tau)


@given(st.lists(st.integers(0, 5), min_size=2, max_size=6), st.randoms(use_true_random=False))
def test_tau_is_the_same_both_ways_and_turns_with_an_order(one: list[int], rng: object) -> None:
    other = sorted(one, key=lambda _: rng.random())  # type: ignore[attr-defined]
    tau = kendalls_tau(one, other)

    assert -1 <= tau <= 1
    assert kendalls_tau(other, one) == tau
    if len(set(one)) > 1:
        assert kendalls_tau([-each for each in one], other) == pytest.approx(-tau)


def test_what_a_choice_costs_is_told_by_packets() -> None:
    ranking = Ranking("random", "s0-s8 rate 5G", ("a", "b", "c"), (30, 10, 20), (40, 22, 20))

    assert ranking.names[ranking.chosen] == "b"
    assert ranking.regret == pytest.approx(0.1)
    assert ranking.worst == pytest.approx(1)


def test_what_is_taken_out_is_no_longer_slow_and_the_rest_is() -> None:
    two = Scenario("s0-s8 rate 1G at 0, s2-s10 rate 1G at 0", ("s0-s8",), {"s0-s8": "s2-s10 rate"})

    assert mitigations(two) == {
        NOTHING: {"faults": two.faults},
        "ecmp": {"faults": two.faults, "routes": "ecmp"},
        "without s0-s8": {"faults": "s0-s8 down at 0, s2-s10 rate", "reroute": "0"},
        "without s0-s8, ecmp": {
            "faults": "s0-s8 down at 0, s2-s10 rate",
            "reroute": "0",
            "routes": "ecmp",
        },
    }
