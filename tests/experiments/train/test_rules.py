"""The grammar by which algorithms are chosen for the calls of a training script."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.collectives.collective import Collective
from ringleaf.errors import ConfigError
from ringleaf.experiments.workloads.train.rules import Rule, RuleList, parse_rules

ALLREDUCE = Collective.ALLREDUCE

RULES = st.builds(
    Rule,
    st.just(ALLREDUCE),
    st.sampled_from(["ring", "tree", "switchml"]),
    st.integers(1, 1 << 30),
    st.none() | st.integers(0, 1 << 30),
    st.none() | st.integers(1, 64),
)


def test_the_first_rule_that_fits_decides() -> None:
    rules = parse_rules("allreduce>=64K:switchml, allreduce@2:halvingdoubling, tree")

    assert rules.choose(ALLREDUCE, 1 << 16, 2) == "switchml"
    assert rules.choose(ALLREDUCE, (1 << 16) - 1, 2) == "halvingdoubling"
    assert rules.choose(ALLREDUCE, (1 << 16) - 1, 4) == "tree"
    assert rules.choose(Collective.ALL_GATHER, 1 << 20, 4) == "allgather"


def test_an_upper_bound_is_left_out() -> None:
    rules = parse_rules("allreduce<1K@8:atp")

    assert rules.choose(ALLREDUCE, 1023, 8) == "atp"
    assert rules.choose(ALLREDUCE, 1024, 8) == "ring"
    assert rules.choose(ALLREDUCE, 1023, 4) == "ring"


def test_an_allreduce_serves_a_reduce_scatter() -> None:
    rules = parse_rules("reducescatter:switchml")

    assert rules.choose(Collective.REDUCE_SCATTER, 1, 2) == "switchml"
    assert rules.choose(ALLREDUCE, 1, 2) == "ring"


@given(st.lists(RULES, min_size=1, max_size=5))
def test_text_and_rules_say_the_same(rules: list[Rule]) -> None:
    made = RuleList(tuple(rules))

    assert parse_rules(made.plain()) == made


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "algo: a rule must not be empty, got ''"),
        ("ring,", "algo: a rule must not be empty, got 'ring,'"),
        ("rin", "unknown algorithm, got 'rin'.*did you mean 'ring'"),
        ("allreduse:ring", "unknown collective, got 'allreduse'.*did you mean 'allreduce'"),
        ("allreduce>=64X:ring", "not understood, got '64X'"),
        ("allreduce@many:ring", "ranks must be a whole number, got 'many'"),
        ("allreduce>3:ring", "not understood, got 'allreduce>3:ring'"),
        ("allgather:switchml", "must be an algorithm for all_gather, got 'switchml'"),
        ("allgather", "must be an algorithm for allreduce, got 'allgather'"),
        ("ring, tree", "no rule for allreduce is reached behind 'allreduce:ring', got 'tree'"),
    ],
)
def test_wrong_rules_are_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_rules(text)
