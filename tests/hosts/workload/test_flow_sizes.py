"""Distributions of flows' sizes: means by hand, draws within statistical bounds, and files."""

from __future__ import annotations

import random
from bisect import bisect_right
from math import sqrt
from pathlib import Path
from statistics import fmean, pstdev

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ringleaf.errors import ConfigError
from ringleaf.hosts.workload.flow_sizes import (
    DISTRIBUTIONS,
    HADOOP,
    WEBSEARCH,
    Distribution,
    read_distribution,
)
from ringleaf.hosts.workload.flows import Traffic, make_flows

DRAWS = 20_000


def test_means_are_those_by_hand() -> None:
    """The sum of each segment's share times its middle.

    WebSearch: 0.15 x 5,000 + 0.05 x 15,000 + 0.1 x 25,000 + 0.1 x 40,000 + 0.13 x 65,000 +
    0.07 x 140,000 + 0.1 x 600,000 + 0.1 x 1.5 M + 0.1 x 3.5 M + 0.07 x 7.5 M + 0.03 x 20 M.
    """
    kilobytes = 0.75 + 0.75 + 2.5 + 4 + 8.45 + 9.8 + 60 + 150 + 350 + 525 + 600
    assert WEBSEARCH.mean_bytes == pytest.approx(1000 * kilobytes) == pytest.approx(1_711_250)
    small = 0.5 + 1.5 + 7.5 + 32.5 + 18.75 + 45 + 55 + 65 + 85 + 105 + 135 + 370
    large = 4000 + 3250 + 3000 + 10_500 + 16_250 + 22_500 + 60_000
    assert HADOOP.mean_bytes == pytest.approx(small + large) == pytest.approx(120_420.75)


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_draws_have_the_mean_and_the_shares_of_the_distribution(name: str) -> None:
    """Five standard errors: one seed in two million is farther off."""
    distribution, rng = DISTRIBUTIONS[name], random.Random(7)
    sizes = [distribution.draw(rng) for _ in range(DRAWS)]

    assert abs(fmean(sizes) - distribution.mean_bytes) < 5 * pstdev(sizes) / sqrt(DRAWS)
    ordered = sorted(sizes)
    for size, percent in distribution.points:
        share = percent / 100
        error = 5 * sqrt(share * (1 - share) / DRAWS)
        assert abs(bisect_right(ordered, size) / DRAWS - share) <= error + 1 / DRAWS
    assert ordered[0] >= 1
    assert ordered[-1] <= distribution.points[-1][0]


def test_sizes_between_two_points_are_equally_likely() -> None:
    """Half of the flows have up to 100 bytes, so a quarter has up to 50, and so on."""
    half = Distribution(((0, 0), (100, 50), (900, 100)))
    chosen = random.Random(1)
    draws = sorted(half.draw(chosen) for _ in range(DRAWS))
    assert abs(draws[DRAWS // 4] - 50) <= 3
    assert abs(draws[3 * DRAWS // 4] - 500) <= 24


@pytest.mark.parametrize("pattern", ["websearch", "hadoop", "random"])
def test_the_load_is_as_asked_for(pattern: str) -> None:
    """Bytes over time are 30 % of 16 links of 100 Gbit/s, within five standard errors."""
    drawn, ranks, count = DISTRIBUTIONS.get(pattern, HADOOP), 16, 20_000
    interval_ps = round(drawn.mean_bytes * 8 * 10**12 / (0.3 * 100e9 * ranks))
    flows = make_flows(Traffic(pattern, ranks, (), count, interval_ps, 3, drawn))

    sizes = [flow.size_bytes for flow in flows]
    assert len({flow.source for flow in flows}) == ranks
    assert all(flow.source != flow.target for flow in flows)
    sent_bps = sum(sizes) * 8 * 10**12 / flows[-1].start_ps
    spread = sqrt((pstdev(sizes) / fmean(sizes)) ** 2 + 1) / sqrt(count)
    assert abs(sent_bps / (100e9 * ranks) / 0.3 - 1) < 5 * spread


def test_flows_of_a_seed_are_the_same() -> None:
    def made(seed: int) -> list[object]:
        return list(make_flows(Traffic("websearch", 8, (), 50, 10**6, seed, WEBSEARCH)))

    assert made(1) == made(1) != made(2)


@pytest.mark.parametrize(
    "text",
    [
        "0 0\n100 50\n900 100\n",  # as HPCC's generator takes it
        "# size, share\n0, 0\n100, 0.5\n900, 1\n",
        "0 0.0\r\n1e2 5e-1\r\n900. 1.0  # all\r\n",
    ],
)
def test_files_have_percentages_or_fractions(tmp_path: Path, text: str) -> None:
    path = tmp_path / "cdf.txt"
    path.write_text(text)
    assert read_distribution(path).points == ((0, 0), (100, 50), (900, 100))


def test_a_file_may_begin_above_nothing(tmp_path: Path) -> None:
    """A tenth of the flows has the first size; the mean is 0.1 x 64 + 0.9 x (64 + 1,064) / 2."""
    path = tmp_path / "cdf.txt"
    path.write_text("64 10\n1064 100\n")
    found = read_distribution(path)
    assert found.mean_bytes == pytest.approx(514)
    assert min(found.draw(random.Random(seed)) for seed in range(99)) == 64


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "cdf.txt: must end with a size and 100 %"),
        ("0 0\n100 50\n", r"line 2: must end with a size and 100 % \(or 1\), got \[\(100.0, 50"),
        ("0 0\n100 50\n50 100\n", "line 3: sizes and percentages must not decrease, got '50 100'"),
        ("0 0\n100 50\n200 40\n300 100\n", "line 3: sizes and percentages must not decrease"),
        ("1460 1 0.15\n", "line 1: must be a size and a percentage, got '1460 1 0.15'; ns-2's"),
        ("0 0\nbig 100\n", "line 2: not understood, got 'big'"),
        ("0 0\n-5 100\n", "line 2: not understood, got '-5'"),
        ("0 0\n0 100\n", "line 2: must end with a size"),
        ("0 0\n1e99 100\n", "line 2: must end with a size"),
    ],
)
def test_wrong_files_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "cdf.txt"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message):
        read_distribution(path)


steps = st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 20)), min_size=1, max_size=8)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(steps, st.integers(0, 99))
def test_draws_lie_within_any_distribution(
    tmp_path: Path, given_steps: list[tuple[int, int]], seed: int
) -> None:
    size = percent = 0
    lines = []
    for wider, higher in given_steps:
        size, percent = size + wider, min(percent + higher, 100)
        lines.append(f"{size} {percent}")
    lines.append(f"{size + 1} 100")
    path = tmp_path / "cdf.txt"
    path.write_text("\n".join(lines))

    found, rng = read_distribution(path), random.Random(seed)
    assert found.points[0][0] <= found.mean_bytes <= size + 1
    least = max(found.points[0][0], 1)
    assert all(least <= found.draw(rng) <= max(size + 1, 1) for _ in range(50))
