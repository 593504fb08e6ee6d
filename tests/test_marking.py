"""RED's numbers: how many are drawn for a probability, by hand."""

from __future__ import annotations

import pytest

from ringleaf.core.marking import Marking, from_depth


@pytest.mark.parametrize(
    ("marking", "depth", "probability"),
    [
        (Marking(5, 200, 0.01), 200, 0.01),
        (Marking(5, 200, 0.01), 44, 0.002),
        (Marking(10, 30, 0.5), 20, 0.25),
        (Marking(40, 400, 0.4), 130, 0.1),
        (Marking(0, 8), 2, 0.25),
    ],
)
def test_marks_grow_in_a_straight_line_to_the_most(
    marking: Marking, depth: int, probability: float
) -> None:
    """RED marks with Pmax (depth - Kmin) / (Kmax - Kmin); so many numbers must be below."""
    drawn = marking.last_draw + 1
    assert (depth - marking.least) / drawn == pytest.approx(probability)


def test_one_depth_leaves_nothing_to_chance() -> None:
    assert from_depth(65).last_draw == 0
