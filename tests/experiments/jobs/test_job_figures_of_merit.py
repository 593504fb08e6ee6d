"""Figures that say how jobs fared, by hand."""

import pytest

from ringleaf.experiments.workloads.jobs.results import jain


@pytest.mark.parametrize(
    ("speeds", "index"),
    [
        ([1.0, 1.0, 1.0, 1.0], 1.0),
        ([1.0, 0.0, 0.0, 0.0], 0.25),  # one of n has all: 1 / n
        ([3.0, 1.0], 0.8),  # 16 / (2 * 10)
        ([0.0, 0.0], 1.0),
    ],
)
def test_jains_index(speeds: list[float], index: float) -> None:
    """Jain, Chiu and Hawe, DEC-TR-301, 1984: (sum of x)^2 / (n * sum of x^2)."""
    assert jain(speeds) == pytest.approx(index)
