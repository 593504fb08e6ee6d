"""The study of congestion controls: its traffic, and its figures at a small scale."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.errors import ConfigError
from ringleaf.experiments.studies.congestion import main, measure
from ringleaf.experiments.studies.traffic import (
    PATTERNS,
    SIZES,
    all_to_all,
    incast,
    make_traffic,
    permutation,
)

RACK = "leafspine,leaves=1,spines=1,hosts=20,rate=100G,delay=1us"
SMALL = "leafspine,leaves=2,spines=1,hosts=4,rate=100G,delay=1us"


@given(hosts=st.integers(2, 40), seed=st.integers(0, 99))
def test_patterns_are_what_their_names_say(hosts: int, seed: int) -> None:
    rng = random.Random(seed)
    sources, targets = zip(*incast(hosts, rng), strict=True)
    assert len(set(sources)) == hosts - 1
    assert len(set(targets)) == 1
    assert not set(sources) & set(targets)
    sources, targets = zip(*permutation(hosts, rng), strict=True)
    assert sorted(sources) == sorted(targets) == list(range(hosts))
    assert all(source != target for source, target in permutation(hosts, rng))
    pairs = all_to_all(hosts, rng)
    assert set(pairs) == {(a, b) for a in range(hosts) for b in range(hosts) if a != b}
    assert len(set(pairs)) == len(pairs)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_flow_is_one_message_of_its_size(pattern: str) -> None:
    schedule, sizes = make_traffic(pattern, 8, seed=1)
    messages = list(schedule.columns.messages())
    assert len(messages) == len(sizes)
    assert schedule.chunks == sum(sizes)
    assert set(sizes) == set(SIZES)
    assert make_traffic(pattern, 8, seed=1)[1] == sizes


def test_fewest_bytes_first_is_faster_for_most_flows_of_an_incast() -> None:
    """pFabric's aim: small flows don't wait for large ones, and the last is no later."""
    plain = measure("fixed", "incast", topology=RACK, seeds=1)
    first = measure("pfabric", "incast", topology=RACK, seeds=1)
    assert len(plain.times_us) == 19
    assert first.percentiles[0] < 0.85 * plain.percentiles[0]
    assert first.percentiles[2] < 1.05 * plain.percentiles[2]
    assert plain.drops == first.drops == 0


def test_prints_a_table_per_pattern_and_draws(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    figure = tmp_path / "figure.png"
    words = ["--control", "fixed", "swift", "--pattern", "permutation", "ring", "--topo", SMALL]
    assert main([*words, "--seeds", "1", "--out", str(figure)]) == 0
    rows = [each.split() for each in capsys.readouterr().out.splitlines() if each[0] == " "]
    assert [row[0] for row in rows] == ["fixed", "swift"] * 2
    for row in rows:
        p50, p99, most, fairness = map(float, row[1:5])
        assert p50 <= p99 <= most
        assert 0 < fairness <= 1
    assert figure.stat().st_size > 10_000


def test_an_unknown_pattern_is_refused() -> None:
    with pytest.raises(ConfigError, match="congestion: unknown pattern, got 'star'"):
        main(["--pattern", "star"])
