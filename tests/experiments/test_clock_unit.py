"""Figures have times in the longest unit that they have five of."""

from __future__ import annotations

import pytest

from ringleaf.core.units import parse_time
from ringleaf.experiments.figures.clock_unit import unit_of


@pytest.mark.parametrize(
    ("time", "name"),
    [("3ns", "µs"), ("4ms", "µs"), ("6ms", "ms"), ("4s", "ms"), ("6s", "s"), ("100000s", "s")],
)
def test_times_have_four_digits_at_most_before_the_point(time: str, name: str) -> None:
    unit = unit_of(parse_time(time, "time"))

    assert unit.name == name
    assert unit.ps == parse_time(f"1{name.replace('µ', 'u')}", "time")
