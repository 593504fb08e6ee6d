"""Float32 through int32 sums: never an overflow, never further off than the bound says."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy

from ringleaf.errors import ConfigError
from ringleaf.ina.switchml import scaling

LANES = 64


def reduce_block(parts: np.ndarray) -> np.ndarray:
    """What workers and switches make of one block; row = worker."""
    workers, count = parts.shape
    exponent = max(scaling.max_exponent(part) for part in parts)
    shift = scaling.shift_of(exponent, scaling.headroom_bits(workers))
    lanes = np.zeros((workers, 4 * count), np.uint8)
    for part, row in zip(parts, lanes, strict=True):
        scaling.quantise(part, row, shift)
    integers = lanes.view(">i4").astype(np.int64)
    total = integers.sum(axis=0)
    assert np.abs(total).max() <= 2**31 - 1, "the sum would wrap around"
    result = np.zeros(count, np.float32)
    scaling.dequantise(total.astype(">i4").view(np.uint8), result, shift)
    return result


finite = st.floats(width=32, allow_nan=False, allow_infinity=False)
blocks = st.integers(1, 9).flatmap(
    lambda workers: st_numpy.arrays(np.float32, (workers, 8), elements=finite)
)


@given(blocks)
def test_error_is_within_its_bound(parts: np.ndarray) -> None:
    exact = parts.astype(np.float64).sum(axis=0)
    with np.errstate(over="ignore"):  # a sum may be too large for float32
        result = reduce_block(parts)

    fits = np.isfinite(result)
    bounds = scaling.error_bounds(parts, LANES)
    assert (np.abs(result - exact)[fits] <= bounds[fits]).all()
    assert (np.abs(exact[~fits]) + bounds[~fits] > np.finfo(np.float32).max).all()


@pytest.mark.parametrize("workers", [1, 2, 3, 7, 64, 128, 255, 256, 257, 1000, 65536])
def test_largest_magnitudes_fill_the_integers_and_never_wrap(workers: int) -> None:
    bits = scaling.headroom_bits(workers)
    largest = float(np.nextafter(np.float32(1), np.float32(0)))

    assert workers * round(largest * 2**bits) < 2**31
    assert workers * round(largest * 2 ** (bits + 1)) >= 2**31


@pytest.mark.parametrize(("workers", "bits"), [(1, 31), (2, 30), (3, 29), (64, 25), (256, 22)])
def test_headroom_of_known_sizes(workers: int, bits: int) -> None:
    assert scaling.headroom_bits(workers) == bits


def test_a_block_of_one_worker_comes_back_as_it_was() -> None:
    parts = np.array([[1.0, -1.5, 0.25, -0.0, 3.0e-3, 2.0]], np.float32)

    assert reduce_block(parts).tolist() == pytest.approx(parts[0].tolist(), abs=2.0**-30)
    assert reduce_block(parts)[:4].tolist() == [1.0, -1.5, 0.25, 0.0]


def test_zeros_and_subnormals_need_no_scale_of_their_own() -> None:
    tiny = np.float32(2.0**-149)
    parts = np.array([[tiny, 0, 3 * tiny], [tiny, 0, -5 * tiny]], np.float32)

    assert scaling.max_exponent(parts[0]) == 0
    assert reduce_block(parts).tolist() == [2 * tiny, 0, -2 * tiny]


@pytest.mark.parametrize(
    ("value", "exponent"),
    [(0.0, 0), (1.0, 127), (-1.9, 127), (3e38, 254), (np.inf, 255), (-np.inf, 255), (np.nan, 255)],
)
def test_exponent_is_that_of_the_largest_magnitude(value: float, exponent: int) -> None:
    assert scaling.max_exponent(np.array([0.0, value, -1e-40], np.float32)) == exponent


@given(st_numpy.arrays(np.int32, st.integers(0, 20)))
def test_integers_come_back_as_they_were(values: np.ndarray) -> None:
    lanes = np.zeros(4 * values.size, np.uint8)
    result = np.zeros_like(values)

    scaling.pack(values, lanes)
    scaling.unpack(lanes, result)

    assert lanes.view(">i4").tolist() == values.tolist()
    assert result.tolist() == values.tolist()


@pytest.mark.parametrize("workers", [0, -1, 2**31])
def test_impossible_numbers_of_workers_are_refused(workers: int) -> None:
    with pytest.raises(ConfigError, match=f"workers must be 1 to 1073741823, got {workers}"):
        scaling.headroom_bits(workers)


def test_bound_is_of_each_block() -> None:
    parts = np.array([[1.0, 100.0, 1.0], [0.5, -3.0, 1.9]], np.float32)

    wide, same, narrow = scaling.error_bounds(parts, 2)

    assert narrow == 2 * 2 * (2.0**-31 + 2.0**-24)  # 2 workers below 2, scaled by 2^30 / 2
    assert wide == same == 64 * narrow
    assert scaling.error_bounds(parts[:, :0], 2).size == 0


@given(st.lists(st.floats(width=32, allow_nan=False), max_size=40))
def test_signs_are_bits_and_come_back_as_ones(given_values: list[float]) -> None:
    """A set bit is at least 0; bits count from the lowest, and those behind the last are 0."""
    values = np.array(given_values, np.float32)
    lanes = np.full(8, 0x55, np.uint8)
    size = scaling.write_signs(values, lanes)
    assert size == -(-values.size // 8)
    wanted = sum(1 << i for i, value in enumerate(given_values) if value >= 0)
    assert int.from_bytes(lanes[:size].tobytes(), "little") == wanted
    assert lanes[size:].tolist() == [0x55] * (8 - size)
    scaling.read_signs(lanes, values)
    assert values.tolist() == [1.0 if value >= 0 else -1.0 for value in given_values]


def test_a_fixed_exponent_scales_by_its_bits_of_fraction() -> None:
    for workers in (1, 6, 64):
        bits = scaling.headroom_bits(workers)
        assert scaling.shift_of(scaling.fixed_exponent(20, bits), bits) == 20
    values = np.zeros(3, np.float32)
    scaling.fill_nan(values)
    assert np.isnan(values).all()
