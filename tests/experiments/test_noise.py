"""Random inputs: each value by itself, from published mixers, and distributed as documented."""

from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.core.chance import scrambled, spread64
from ringleaf.experiments.checking import noise
from ringleaf.experiments.checking.noise import fill, make_keys

SEGMENT = 1 << 32
FLOATS, INTEGERS = np.dtype(np.float32), np.dtype(np.int32)


def values(
    seed: int, ranks: int, start: int, count: int, item: np.dtype[Any], *, elements: int = 0
) -> npt.NDArray[Any]:
    out = np.zeros((ranks, count), item)
    fill(make_keys(seed, ranks, elements or start + count), start, out)
    return out


@pytest.mark.parametrize(
    ("element", "first", "second", "bits"),
    [
        # MurmurHash3's finalizer, which other implementations have as well.
        (0, 0, 0, 0), (1, 0, 0, 0x514E28B7), (2, 0, 0, 0x30F4C306), (3, 0, 0, 0x85F0B427),
        # The first key is xored into the number.
        (1, 3, 0, 0x30F4C306),
        # By hand: 0 times the first constant is 0, plus the second key 1, times 0xC2B2AE35, and
        # the upper half 0xC2B2 xored into the lower one 0xAE35.
        (0, 0, 1, 0xC2B26C87),
    ],
)  # fmt: skip
def test_bits_are_those_of_the_published_mixer(
    element: int, first: int, second: int, bits: int
) -> None:
    arrays = (np.array([each], np.uint32) for each in (element, first, second))
    assert scrambled(*arrays).tolist() == [bits]


def test_keys_are_those_of_splitmix64() -> None:
    """Its first outputs for states 0 and 1234567, as other implementations have them."""
    assert spread64(0) == 0xE220A8397B1DCDAF
    assert spread64(1234567) == 6457827717110365317


def test_values_of_given_bits() -> None:
    """By hand: for 2^31 - 1, u = 1, and the value is A + B + C over 1 + D + E."""
    ends = noise.normal(np.array([0x7FFFFFFF, 0x80000000, 0], np.uint32))
    top = (1.28716 - 2.11226 + 0.82754) / (1 - 1.81436 + 0.81498)
    assert ends[:2] == pytest.approx([top, -top], rel=1e-3)
    assert ends[2] == pytest.approx(1.28716 * 2.0**-31)
    bits = np.array([0, 0x7FFFFFFF, 0x80000000, 0x80000800, 0xFFFFFFFF], np.uint32)
    assert noise.integer(bits).tolist() == [-(2**20), -1, 1, 2, 2**20]


@given(
    seed=st.integers(0, 2**63),
    ranks=st.integers(1, 4),
    start=st.integers(0, 1000) | st.integers(SEGMENT - 40, SEGMENT + 40),
    count=st.integers(0, 80),
    part=st.tuples(st.integers(0, 80), st.integers(0, 80)),
    item=st.sampled_from((FLOATS, INTEGERS)),
)
def test_a_value_depends_on_its_place_only(
    seed: int, ranks: int, start: int, count: int, part: tuple[int, int], item: np.dtype[Any]
) -> None:
    whole = values(seed, ranks, start, count, item)
    first, last = sorted(min(each, count) for each in part)

    again = values(seed, ranks + 1, start + first, last - first, item, elements=start + 2000)

    assert (again[:ranks] == whole[:, first:last]).all()


def test_elements_2_to_the_32_apart_differ() -> None:
    low, high = (values(1, 2, start, 100, FLOATS) for start in (0, SEGMENT))
    assert (low != high).all()


@pytest.mark.parametrize("item", [FLOATS, INTEGERS])
def test_compiled_and_plain_values_are_equal(item: np.dtype[Any]) -> None:
    keys, start = make_keys(3, 2, SEGMENT + 500), SEGMENT - 500
    plain = np.zeros((2, 1000), item)
    noise._make_plainly(keys, start, 1000, plain.reshape(-1))
    assert (values(3, 2, start, 1000, item).view(np.int32) == plain.view(np.int32)).all()


def test_floats_are_nearly_normal() -> None:
    """A million of them: each figure is allowed four standard errors besides the documented."""
    found = values(7, 4, 0, 250_000, FLOATS).astype(np.float64)

    assert abs(found.mean()) < 4e-3
    assert found.var() == pytest.approx(0.9999, abs=4 * 2**0.5 / 1e3)
    assert (found**4).mean() / found.var() ** 2 == pytest.approx(2.998, abs=0.02)
    assert np.abs(found).max() <= 3.94
    for share in np.arange(0.05, 0.96, 0.05):
        assert np.quantile(found, share) == pytest.approx(NormalDist().inv_cdf(share), abs=0.02)
    for share in (0.005, 0.995):
        assert np.quantile(found, share) == pytest.approx(NormalDist().inv_cdf(share), abs=0.06)


def test_floats_have_full_mantissas() -> None:
    """Each of the lowest 18 bits is set in half of the values, up to four standard errors."""
    bits = values(1, 1, 0, 100_000, FLOATS).view(np.uint32)
    shares = [(bits >> bit & 1).mean() for bit in range(18)]
    assert shares == pytest.approx([0.5] * 18, abs=4 * 0.5 / 100_000**0.5)


def test_integers_are_uniform_and_never_zero() -> None:
    found = values(7, 4, 0, 250_000, INTEGERS)

    counts, _ = np.histogram(found, 16, (-(2**20), 2**20))
    assert counts == pytest.approx(np.full(16, 62_500), abs=4 * 62_500**0.5)
    assert np.abs(found).max() <= 2**20
    assert (found != 0).all()
    assert {0, 1} == set((found & 1).ravel().tolist())


@pytest.mark.parametrize("item", [FLOATS, INTEGERS])
def test_ranks_seeds_and_neighbours_are_independent(item: np.dtype[Any]) -> None:
    """Correlations of 100,000 values are within 5 / sqrt(100,000) of zero."""
    rows = [*values(1, 3, 0, 100_001, item), *values(2, 2, 0, 100_001, item)]
    rows.append(values(1, 1, 1 << 20, 100_001, item)[0])
    series = [row[:-1].astype(np.float64) for row in rows] + [rows[0][1:].astype(np.float64)]
    series += [series[0] ** 2, series[1] ** 2]
    found = np.corrcoef(series) - np.eye(len(series))
    assert np.abs(found).max() < 5 / 100_000**0.5
