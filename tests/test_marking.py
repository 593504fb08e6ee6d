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


@pytest.mark.parametrize(
    ("marking", "rate_bps", "packet_bytes", "expected"),
    [
        (Marking(98, 391, 0.8), 10**11, 4096, Marking(98, 391, 0.8)),
        # HPCC's sample configuration at 25 Gbit/s: 100 kB, 400 kB and 0.2, packets of 1 kB.
        (Marking(98, 391, 0.8), 25 * 10**9, 1024, Marking(98, 391, 0.2)),
        # DCQCN's paper at 40 Gbit/s: 5 kB, 200 kB and 1 %.
        (Marking(3, 122, 0.04), 40 * 10**9, 1024, Marking(5, 195, 0.01)),
        (Marking(8, 29, 1.0), 4 * 10**11, 2048, Marking(64, 232, 1.0)),
        (Marking(3, 122, 0.0004), 10**6, 256, Marking(0, 1, 0.0001)),
    ],
)
def test_marks_are_in_proportion_to_bytes_and_the_lines_rate(
    marking: Marking, rate_bps: int, packet_bytes: int, expected: Marking
) -> None:
    scaled = marking.in_proportion(rate_bps, packet_bytes)
    assert (scaled.least, scaled.full) == (expected.least, expected.full)
    assert scaled.most == pytest.approx(expected.most)


def test_one_depth_leaves_nothing_to_chance() -> None:
    assert from_depth(65).last_draw == 0
