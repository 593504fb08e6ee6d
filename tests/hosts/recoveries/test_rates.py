"""Rates of failures: published counts, mean times by hand, and what is drawn from them."""

from __future__ import annotations

from collections import Counter
from itertools import islice, pairwise
from math import sqrt
from pathlib import Path
from statistics import fmean, pstdev

import pytest

from ringleaf.core.units import PS_PER_S
from ringleaf.errors import ConfigError
from ringleaf.hosts.recoveries.common.rates import find_rates, read_rates

HOUR_S = 3600

LLAMA = find_rates("llama3", "failures")


def test_llama_3s_counts() -> None:
    counts = {each.kind: each.count for each in LLAMA.kinds}

    assert LLAMA.total == 419
    assert counts["GPU"] / LLAMA.total == pytest.approx(0.353, abs=0.0005)  # not 30.1 %
    assert (counts["switch or cable"] + counts["NIC"]) / 419 == pytest.approx(0.100, abs=0.0005)
    assert LLAMA.mttf_s(16_384) == pytest.approx(3.09 * HOUR_S, rel=0.002)


@pytest.mark.parametrize(("gpus", "hours"), [(16_384, 1.80), (131_072, 0.23)])
def test_mean_time_to_a_failure_by_node_days(gpus: int, hours: float) -> None:
    rates = find_rates("6.5", "failures")
    assert rates.mttf_s(gpus) == pytest.approx(hours * HOUR_S, abs=0.005 * HOUR_S)
    assert rates.mttf_s(gpus, 10) == pytest.approx(rates.mttf_s(gpus) / 10)


def test_drawn_failures_are_a_poisson_process_of_these_kinds() -> None:
    count = 20_000
    drawn = list(islice(LLAMA.draw(64, seed=3, times=1000), count))

    gaps = [b.at_ps - a.at_ps for a, b in pairwise(drawn)]
    mean_ps = LLAMA.mttf_s(64, 1000) * PS_PER_S
    assert min(gaps) >= 0
    assert fmean(gaps) == pytest.approx(mean_ps, rel=5 / sqrt(count))
    assert pstdev(gaps) == pytest.approx(mean_ps, rel=0.05)  # exponential: as much as the mean
    kinds = Counter(each.kind.kind for each in drawn)
    for each in LLAMA.kinds:
        share = each.count / 419
        assert abs(kinds[each.kind] - count * share) <= 5 * sqrt(count * share) + 1
    assert {each.host for each in drawn} == set(range(64))


def test_the_same_seed_draws_the_same() -> None:
    one, same, other = (list(islice(LLAMA.draw(8, seed), 50)) for seed in (1, 1, 2))
    assert one == same != other


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("title: a\n", "must have title, source, hosts, days and kinds"),
        ("title: a\nsource: b\nhosts: 1\ndays: 2\nkinds: []\n", "counts must be above 0"),
        ("title: a\nsource: b\nhosts: 1\ndays: 2\nkinds: [{kind: x, often: 1}]\n", "often"),
    ],
)
def test_files_that_make_no_sense(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "rates.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message):
        read_rates(path)


def test_unknown_rates_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"failures: unknown rates, got 'lama3'; .*llama3"):
        find_rates("lama3", "failures")
    with pytest.raises(ConfigError, match="failures: must be above 0, got '0'"):
        find_rates("0", "failures")
