"""Linear programs, against all corners of what is allowed."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.hosts.schedulers.common.simplex import maximise


def best_corner(gains: list[float], rows: list[list[float]], limits: list[float]) -> float:
    """Return the largest gain among the corners: where as many conditions meet as unknowns."""
    count = len(gains)
    table = np.vstack([np.array(rows), -np.eye(count)])
    right = np.array([*limits, *[0.0] * count])
    best = 0.0
    for chosen in combinations(range(len(table)), count):
        part = table[list(chosen)]
        if abs(np.linalg.det(part)) > 1e-9:
            corner = np.linalg.solve(part, right[list(chosen)])
            if (table @ corner <= right + 1e-7).all():
                best = max(best, float(np.array(gains) @ corner))
    return best


numbers = st.integers(0, 5).map(float)


@given(st.integers(1, 3).flatmap(lambda n: st.tuples(
    st.lists(numbers, min_size=n, max_size=n),
    st.lists(st.lists(numbers, min_size=n, max_size=n), max_size=3),
    st.lists(numbers, min_size=3 + n, max_size=3 + n),
)))  # fmt: skip
def test_no_corner_is_better(case: tuple[list[float], list[list[float]], list[float]]) -> None:
    gains, rows, limits = case
    rows = [*rows, *np.eye(len(gains)).tolist()]
    limits = limits[: len(rows)]

    found = maximise(gains, rows, limits)

    assert min(found) >= 0
    assert all(np.dot(row, found) <= limit + 1e-9 for row, limit in zip(rows, limits, strict=True))
    assert np.dot(gains, found) == pytest.approx(best_corner(gains, rows, limits), abs=1e-6)
