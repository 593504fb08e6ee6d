"""The verdict on a published figure: direction, magnitude or none, by one definition."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.experiments.published import claims
from ringleaf.experiments.published.claims import Claimed
from ringleaf.experiments.published.rows import shapes
from studies.schedulers import CLAIMS

NONE, DIRECTION, MAGNITUDE = Claimed
DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.parametrize(
    ("ours", "published", "verdict"),
    [
        (1.01, 1.02, NONE),  # a hundredth is no gain, even where as little was published
        (1.018, 2, NONE),
        (1.065, 1.6, DIRECTION),
        (1.46, 1.6, MAGNITUDE),  # three quarters of the gain
        (1.44, 1.6, DIRECTION),
        (1.79, 1.6, MAGNITUDE),
        (1.81, 1.6, DIRECTION),  # more than the published gain by more than a third
        (1.61, 20, DIRECTION),  # 38 % shorter, and not 95 %
        (1.2, (1.18, 2.18), MAGNITUDE),
        (1.1, (1.18, 2.18), DIRECTION),
        (1.5, None, DIRECTION),
        (0.5, None, NONE),
        (0.5, 0.6, NONE),
    ],
)
def test_a_ratio_is_of_magnitude_if_its_gain_is(
    ours: float, published: claims.Published, verdict: Claimed
) -> None:
    assert claims.ratio(ours, published) is verdict


@given(st.floats(0.1, 50), st.floats(1.1, 50))
def test_nothing_that_is_slower_than_published_by_half_is_of_magnitude(
    ours: float, published: float
) -> None:
    verdict = claims.ratio(ours, published)
    assert (verdict is NONE) == (ours - 1 < claims.LEAST_GAIN)
    if ours - 1 < (published - 1) / 2:
        assert verdict is not MAGNITUDE


def test_a_value_is_the_published_one_or_it_is_not() -> None:
    assert claims.equal(2.43, 2.4375) is claims.bound(5.9, 6) is MAGNITUDE
    assert claims.equal(2.25, 2.4375) is claims.bound(6.26, 6) is NONE
    assert (claims.holds(True), claims.holds(False)) == (DIRECTION, NONE)


def test_of_figures_that_were_published_together_the_least_counts() -> None:
    both: list[dict[str, Any]] = [
        {"times": 3.5, "published": [2, 4.5]},
        {"times": 1.12, "published": 1.34},
    ]
    assert claims.read(both[:1]) is MAGNITUDE
    assert claims.read(both) is DIRECTION
    assert claims.read([*both, {"ours": 7, "at_most": 6}]) is NONE
    with pytest.raises(KeyError):
        claims.read([{"about": 1}])


def test_shapes_say_the_figures_that_they_are_judged_by() -> None:
    """The least check that a line's text and its verdict are of one measurement."""
    for shape in shapes():
        assert claims.read(shape.figures) in Claimed
        for figure in shape.figures:
            if "at_most" in figure or "times" in figure:
                ours = figure.get("ours", figure.get("times"))
                told = [float(each) for each in re.findall(r"\d+(?:\.\d+)?", shape.ours)]
                ratios = {a / b for a in told for b in told if b} | set(told)
                ratios |= {1 + each / 100 for each in told} | {1 - each / 100 for each in told}
                ratios |= {1 / (1 - each / 100) for each in told if each < 100}
                assert any(abs(each - ours) <= 0.02 * ours for each in ratios), (shape, ours)


LINE = re.compile(r"^- (.+): (none|direction|magnitude)(?:, because .+)?: ours ([\d.]+),", re.M)


def test_the_page_of_schedulers_has_each_claim_with_the_verdict_of_its_figure() -> None:
    found = {
        title: (verdict, float(ours))
        for title, verdict, ours in LINE.findall((DOCS / "schedulers.md").read_text())
    }
    for claim in CLAIMS:
        turns = " in turns" if claim.in_turns else ""
        title = f"{claim.faster} over {claim.slower}{turns}, {claim.spec} {claim.placement}"
        verdict, ours = found.pop(title)
        assert verdict == str(claims.ratio(ours, claim.published))
    assert not found


def test_no_page_says_that_a_shape_appears() -> None:
    """The word had no threshold; verdicts have."""
    for page in DOCS.rglob("*.md"):
        assert not re.search(r"\b(does not appear|[Ii]t appears|: appears)\b", page.read_text())
