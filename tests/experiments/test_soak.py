"""Soaks: cases follow from their numbers, failures are told from ends, and made smaller."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.experiments.soak import command
from ringleaf.experiments.soak.cases import SoakCase, Trouble, draw, simpler
from ringleaf.experiments.spec.options import resolve
from ringleaf.networks.faults import LinkLoss

SMALL = SoakCase(
    0,
    {"topo": "leafspine,leaves=2,spines=1,hosts=2", "algo": "ring", "size": "256", "seed": "1"},
    Trouble(),
)


@given(st.integers(0, 1000), st.integers(0, 1000))
def test_every_case_is_a_spec_and_follows_from_its_number(seed: int, number: int) -> None:
    case = draw(seed, number)

    assert draw(seed, number) == case
    assert resolve(case.given).topo == case.given["topo"]
    assert case.command.startswith("ringleaf run --topo ")


@given(st.integers(0, 3), st.integers(0, 3), st.integers(0, 1 << 20))
def test_links_are_as_they_were_when_trouble_is_over(outages: int, bursts: int, seed: int) -> None:
    found = Trouble(outages, bursts, 1).draw([("s0", "s1"), ("s1", "h0")], ["s0"], Random(seed))

    losses = [each for each in found if isinstance(each, LinkLoss)]
    last = {each.link: each for each in sorted(losses, key=lambda each: each.after_ps)}
    assert all(each.loss is None for each in last.values())
    assert len(losses) == 4 * outages + 2 * bursts


def test_a_failing_case_is_made_smaller() -> None:
    """It fails with a tree, whatever else there is."""
    large = replace(
        SMALL,
        given=SMALL.given | {"algo": "ring,tree,ps", "size": "4,256", "mtu": "256", "cc": "dctcp"},
        trouble=Trouble(1, 1, 1),
    )

    smallest = command.shrink(large, lambda case: "tree" in case.given["algo"])

    assert isinstance(smallest, SoakCase)
    assert smallest.given == SMALL.given | {"algo": "tree", "size": "4"}
    assert not smallest.trouble
    assert simpler(replace(smallest, given=smallest.given | {"algo": "ring"})) == []


def test_what_is_wrong_is_told_with_the_command_that_repeats_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = [("ok", "ring 4 B", ""), ("wrong", "ring 8 B", "3 elements: by hand")]
    monkeypatch.setattr(command, "try_plain", lambda _: found)
    monkeypatch.setattr(command, "MOST_SHRINKS", 3)
    tally = command.Tally(seed=5)

    command._soak(tally, lambda: tally.cases >= 2, jobs=1)

    printed = capsys.readouterr().out
    assert "case 0: wrong: ring 8 B: 3 elements: by hand" in printed
    assert "again: ringleaf soak --seed 5 --case 0" in printed
    assert tally.bad == [0, 1]
    assert "2 cases, 4 runs" in tally.line()


def test_a_small_soak_finds_nothing() -> None:
    plain = command.try_plain(replace(SMALL, trouble=Trouble(1, 1, 1)))

    assert [what for what, _, _ in plain] == ["ok"]
