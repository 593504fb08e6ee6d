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
    st.none() | st.integers((1 << 30) + 1, 1 << 31),
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


def test_rules_that_fit_other_calls_may_overlap() -> None:
    text = "allreduce>=64K:switchml, allreduce>=4K:tree, allreduce<8K@2:chain, allreduce@2:ring"

    assert len(parse_rules(text).rules) == 4


def test_an_allreduce_serves_a_reduce_scatter() -> None:
    rules = parse_rules("reducescatter:switchml")

    assert rules.choose(Collective.REDUCE_SCATTER, 1, 2) == "switchml"
    assert rules.choose(ALLREDUCE, 1, 2) == "ring"


@given(st.lists(RULES, min_size=1, max_size=5))
def test_text_and_rules_say_the_same(rules: list[Rule]) -> None:
    kept = [rule for i, rule in enumerate(rules) if not any(r.covers(rule) for r in rules[:i])]
    made = RuleList(tuple(kept))

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
        ("ring, tree", "must fit some calls, got 'tree' behind 'allreduce:ring', which fits them"),
        ("allreduce>=4K:tree, allreduce>=64K:ring", "got .*>=64K:ring' behind 'allreduce>=4096:"),
        ("allreduce<1K:tree, allreduce<1K@8:ring", "got 'allreduce<1K@8:ring' behind"),
        ("allreduce>=8K<4K:ring", "must fit some calls, got 'allreduce>=8K<4K:ring'; the size"),
        ("allreduce>=4K<4K:ring", "must fit some calls"),
        ("allreduce@0:ring", "ranks must be 1 or more, got '0'"),
    ],
)
def test_wrong_rules_are_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_rules(text)
