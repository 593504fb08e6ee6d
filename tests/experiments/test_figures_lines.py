"""Lines over one numeric axis, with their names beside their ends."""

from __future__ import annotations

from itertools import pairwise

import matplotlib.pyplot as plt
import pytest
from drawn import collisions
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.experiments.figures.lines import ROOM, Points, Series, draw_lines, spread, suits
from ringleaf.experiments.figures.style import matplotlib_style


@pytest.mark.parametrize(
    ("values", "series", "wanted"),
    [
        ([16, 32, 64], 2, True),
        ([16, 32], 2, False),
        ([16, 32, 64], 1, False),
        ([16, None, 64], 2, False),
        (["a", "b", "c"], 2, False),
        ([1, 2, 3], 17, False),
    ],
)
def test_lines_are_for_three_numbers_and_several_names(
    values: list[object], series: int, wanted: bool
) -> None:
    assert suits(values, series) == wanted


@given(st.lists(st.floats(0, 1), max_size=16))
def test_names_keep_apart_and_inside(places: list[float]) -> None:
    found = spread(sorted(places))
    assert all(b - a >= ROOM - 1e-9 for a, b in pairwise(found))
    assert all(-1e-9 <= place <= 1 for place in found)
    apart = [place / 100 for place in range(0, 100, 10)]
    assert spread(apart) == apart


def test_equal_lines_share_a_name_and_all_names_can_be_read() -> None:
    points: Points = {1.0: 3.0, 2.0: 2.0, 16.0: 1.0}
    series: Series = {(name,): points for name in ("switchml", "panama")}
    others: Series = {(f"other{number}",): {1.0: 3.0, 16.0: 1 + number / 50} for number in range(7)}
    with matplotlib_style():
        figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
        draw_lines(axes, {**series, **others})
        texts = {text.get_text() for text in axes.texts}
        assert texts == {"switchml, panama", *(f"other{number}" for number in range(7))}
        assert collisions(figure) == []
        plt.close("all")
