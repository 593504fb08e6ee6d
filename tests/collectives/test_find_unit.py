"""The unit of which all values are multiples, against the greatest common divisor of fractions."""

from __future__ import annotations

from fractions import Fraction
from math import gcd, inf, nan

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ringleaf.collectives.compression.rounding import find_unit

MULTIPLES = st.lists(st.one_of(st.just(0), st.integers(-255, 255)), min_size=1, max_size=60)


def units_of(values: list[float]) -> tuple[float, list[int]]:
    levels = np.empty(len(values), np.int32)
    unit = find_unit(np.array(values, np.float32), levels)
    return float(unit), levels.tolist()


@given(MULTIPLES, st.integers(1, 255), st.integers(-100, 80))
@example([4, 6], 1, 0)
@example([3 << 5, 5], 7, 3)
def test_unit_is_the_largest_of_which_all_are_multiples(
    multiples: list[int], odd: int, power: int
) -> None:
    values = [each * odd * 2.0**power for each in multiples]
    unit, levels = units_of(values)
    whole = gcd(*multiples) * odd
    assert Fraction(unit) == (whole * Fraction(2) ** power if any(multiples) else 1)
    assert [each * Fraction(unit) for each in levels] == [Fraction(each) for each in values]


@pytest.mark.parametrize("last", [0.5, 0.25, 0.0, 3.0])
@pytest.mark.parametrize("elements", [70, 1024, 1025, 3000])
def test_elements_behind_the_sample_have_a_say(elements: int, last: float) -> None:
    unit, levels = units_of([0.0] * 3 + [2.0] * elements + [last])
    assert unit == (min(last, 2.0 - last) if 0 < last < 1 else 1.0 if last else 2.0)
    assert levels[-1] == last / unit


@pytest.mark.parametrize(
    "values",
    [
        [-0.0],
        [1.0, -0.0],
        [1.0, nan],
        [inf, 1.0],
        [1.0, 2.0**-23],  # a multiple above 2^22
        [2.0**30, 2.0**-30],  # too far apart
        [1.0 + 2.0**-20],  # more than 16 bits
        [2.0**-130],  # whose reciprocal is no float32
    ],
)
def test_there_may_be_none(values: list[float]) -> None:
    assert units_of(values)[0] == 0
