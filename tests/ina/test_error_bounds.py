"""The systems' documented bounds against ones derived by hand: neither too small nor too large."""

import numpy as np
import pytest
from hand_bounds import atp, switchml
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy

from ringleaf.ina.atp.scaling import dequantise, quantise
from ringleaf.ina.atp.system import SYSTEM as ATP
from ringleaf.ina.omnireduce.system import SYSTEM as OMNIREDUCE
from ringleaf.ina.switchml.system import SYSTEM as SWITCHML
from ringleaf.ina.systems import System

finite = st.floats(width=32, allow_nan=False, allow_infinity=False)
parts = st.integers(1, 9).flatmap(
    lambda workers: st_numpy.arrays(np.float32, (workers, 10), elements=finite)
)


def bound_of(system: System, *workers: list[float], lanes: int = 64) -> list[float]:
    found: list[float] = system.error_bound(np.array(workers, np.float32), lanes).tolist()
    return found


@given(parts)
def test_atp_s_bound_is_as_derived_from_its_paper(values: np.ndarray) -> None:
    found = ATP.error_bound(values, 64)
    assert found == pytest.approx(atp(values), rel=1e-6, abs=0)


@given(parts)
def test_switchml_s_bound_is_as_derived_from_its_paper(values: np.ndarray) -> None:
    found = SWITCHML.error_bound(values, 4)
    assert found == pytest.approx(switchml(values, 4), rel=1e-6, abs=0)


def test_bounds_of_four_workers_with_ones() -> None:
    """Each has 1. ATP: 4 halves of 2^-20, and 2^-24 of 4. OmniReduce: 3 roundings of 4.

    SwitchML: 1 is below 2, 4 integers below 2^29 fit, so a unit is 2^-28; and 2^-24 of 8.
    """
    ones = [[1.0]] * 4
    assert bound_of(ATP, *ones) == pytest.approx([2.0**-19 + 2.0**-22])
    assert bound_of(SWITCHML, *ones) == pytest.approx([4 * 2.0**-29 + 2.0**-21])
    assert bound_of(OMNIREDUCE, *ones) == pytest.approx([3 * 2.0**-24 * 4])


def test_bound_of_numbers_that_only_the_server_can_add() -> None:
    """4096 is too large for fixed point: what counts is rounding 8192 to float32."""
    assert bound_of(ATP, [4096.0], [4096.0]) == pytest.approx([2.0**-20 + 2.0**-11])


@pytest.mark.parametrize("workers", [1, 2, 7, 64])
def test_atp_can_be_off_by_nearly_its_bound(workers: int) -> None:
    """All workers have a little less than half a unit, which becomes 0: nothing comes back."""
    values = np.array([0.999 * 2.0**-21], np.float32)
    lanes, result = np.zeros(1, np.int32), np.zeros(1, np.float32)
    assert quantise(values, lanes)
    dequantise(lanes.astype(np.int64) * workers, result)

    error = abs(float(values[0]) * workers - float(result[0]))

    (bound,) = bound_of(ATP, *[values.tolist()] * workers)
    assert 0.99 * bound < error <= bound
    assert result[0] == 0


class Claiming(type(OMNIREDUCE)):  # type: ignore[misc]
    """OmniReduce with a bound of somebody's own."""

    def __init__(self, *bound: float) -> None:
        self.bound = bound

    def error_bound(self, parts: np.ndarray, lanes: int) -> np.ndarray:
        return np.array(self.bound)


def test_a_bound_beyond_all_values_lets_sums_be_rounded_only() -> None:
    """The largest sum of magnitudes is 3; two workers' sums are rounded by 2 x 2^-24 of theirs."""
    values = np.array([[1, -1, 0.5], [2, 0.25, 0]], np.float32)
    unit = 2 * 2.0**-24
    for beyond in (3.1, 1e30, np.inf, np.nan, -1.0):
        found = Claiming(3.0, beyond, 0.1).allowed_error(values, 64)
        assert found.tolist() == [3.0, 1.25 * unit, 0.1], beyond


@given(parts)
def test_the_systems_bounds_are_taken_as_they_are_where_they_bound_anything(
    values: np.ndarray,
) -> None:
    most = np.abs(values).sum(axis=0, dtype=np.float64).max()
    for system in (ATP, OMNIREDUCE, SWITCHML):
        bound = system.error_bound(values, 64)
        kept = (bound <= most) | ~np.isfinite(most)
        assert np.array_equal(system.allowed_error(values, 64)[kept], bound[kept], equal_nan=True)
