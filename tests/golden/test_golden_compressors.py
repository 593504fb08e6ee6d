"""Compressors: values worked out by hand, or distributions, from the papers that each names."""

from __future__ import annotations

from math import log, sqrt
from statistics import NormalDist

import numpy as np
import pytest

from ringleaf.collectives.compression.compressor import Feedback
from ringleaf.collectives.compression.member import Member
from ringleaf.collectives.compression.registry import parse_compressor
from ringleaf.collectives.compressors.atomo import draw, probabilities
from ringleaf.collectives.compressors.egc import entropy
from ringleaf.collectives.compressors.mstopk import choose
from ringleaf.collectives.compressors.rotation import hadamard
from ringleaf.core.tensors import Array


def make(text: str, rank: int = 0, ranks: int = 1) -> Member:
    made = Feedback(parse_compressor(text), rank, ranks).copy()
    assert isinstance(made, Member)
    return made


def floats(*values: float) -> Array:
    return np.array(values, np.float32)


def within(found: float, chance: float, draws: int) -> bool:
    """Whether a share of draws is within five standard deviations of its probability."""
    return abs(found - chance) < 5 * sqrt(chance * (1 - chance) / draws)


def test_topk() -> None:
    """The two largest magnitudes of four go as they are."""
    assert make("topk:2").carry(floats(1, -5, 3, 0.5), 0).tolist() == [0, -5, 3, 0]


def test_randomk() -> None:
    """Each of 40 places is among 10 with probability 1/4; ranks take the same ones."""
    values, drawn = np.arange(1, 41, dtype=np.float32), np.zeros(40)
    for seed in range(1000):
        sent = make("randomk:10").carry(values, seed)
        assert np.count_nonzero(sent) == 10
        assert np.isin(sent, [0, *values]).all()
        drawn += sent == values
    assert all(within(each / 1000, 0.25, 1000) for each in drawn)
    first, second = (make("randomk:10", rank, 2).carry(values, 7) for rank in range(2))
    assert first.tolist() == second.tolist()


def test_threshold() -> None:
    assert make("threshold:1.5").carry(floats(1.5, -2, 1, 0), 0).tolist() == [1.5, -2, 0, 0]


def test_egc() -> None:
    """Of 64 bins, two even ones have 1 bit of 6, and all even ones 6 of 6.

    The share is 64 of 640: the first time times 1; then times 1 over the mean of 1/6 and 1, 12/7;
    then times 1/6 over the mean of all three, 3/8, of which one half is the least.
    """
    two, all_even = np.tile(floats(1, 0.01), 320), np.repeat((np.arange(64) + 1) / 64, 10)
    even = all_even.astype(np.float32) - np.float32(1 / 128)
    assert entropy(two) == pytest.approx(1 / 6)
    assert entropy(even) == pytest.approx(1)
    made = make("egc:10%")
    sent = [np.count_nonzero(made.carry(values, 0)) for values in (two, even, two)]
    assert sent == [64, 110, 32]


def test_gaussiank() -> None:
    """A tenth of a normal distribution is beyond 1.645 deviations on either side.

    Of plus and minus one, half should be beyond 0.6745: all are, and 20 steps of 2 % leave
    1.0023, above all of them.
    """
    quantile = NormalDist().inv_cdf
    values = np.array([quantile((i + 0.5) / 1000) for i in range(1000)], np.float32)
    sent = make("gaussiank:10%").carry(values, 0)
    assert 98 <= np.count_nonzero(sent) <= 102
    assert float(np.abs(sent[sent != 0]).min()) == pytest.approx(1.645, rel=0.01)
    assert not make("gaussiank:50%").carry(np.tile(floats(1, -1), 500), 0).any()


def test_mstopk() -> None:
    """Of 1 to 8, the mean is 4.5. One halving tries 6.25, which 2 exceed; one is taken below."""
    values = np.arange(1, 9, dtype=np.float32)
    assert choose(values, 3, steps=1).tolist() == [6, 7, 0]
    assert make("mstopk:3").carry(values, 0).tolist() == [0, 0, 0, 0, 0, 6, 7, 8]


def test_natural() -> None:
    """2.5 is 2 with probability 3/4, else 4; powers of two stay, up to 2^18; ranks draw apart."""
    values = np.full(40_000, -2.5, np.float32)
    first, second = (make("natural", rank, 2).carry(values, 1) for rank in range(2))
    assert set(first.tolist()) == {-2.0, -4.0}
    assert within(float((first == -2).mean()), 0.75, 40_000)
    assert first.tolist() != second.tolist()
    powers = floats(1, -0.125, 2.0**18, 2.0**-108, 0)
    assert make("natural").carry(powers, 1).tolist() == powers.tolist()


def test_onebit() -> None:
    """The mean of 3 and 0 is 1.5, that of -1 and -3 is -2."""
    assert make("onebit").carry(floats(3, -1, 0, -3), 0).tolist() == [1.5, -2, 1.5, -2]


def test_efsign() -> None:
    """The mean magnitude of 3, 1, 0 and 3 is 1.75; zero is positive."""
    sent = make("efsign").carry(floats(3, -1, 0, -3), 0)
    assert sent.tolist() == [1.75, -1.75, 1.75, -1.75]


def test_signsgd() -> None:
    """Five ranks' votes: the majority's sign times five, and ties are positive."""
    assert make("signsgd").carry(floats(3, -1, 0, -3), 0).tolist() == [1, -1, 1, -1]
    assert make("signsgd", 0, 5).result(floats(3, -1, 0), 3).tolist() == [5, -5, 5]


def test_onebit_adam() -> None:
    """One step of Adam is the signs. Then momentum 0.9 x 0.1 g + 0.1 g' goes as its mean size.

    0.9 (0.1, -0.2) + 0.1 (1, 2) = (0.19, 0.02), so 0.105 each; over roots of 1 and 2, and over
    1 - 0.9^2. What is left, 0.085 and -0.085, comes on top of the next: 0.0945 either way.
    """
    made = make("onebit-adam:1")
    first = made.result(made.carry(floats(1, -2), 0), 2)
    assert first.tolist() == pytest.approx([1, -1], rel=1e-4)
    sent = made.carry(floats(1, 2), 1)
    assert sent.tolist() == pytest.approx([0.105, 0.105], rel=1e-5)
    second = made.result(sent, 2)
    assert second.tolist() == pytest.approx([0.105 / 0.19, 0.105 / 0.19 / 2], rel=1e-4)
    assert made.carry(floats(0, 0), 2).tolist() == pytest.approx([0.0945, 0.0945], rel=1e-4)


def test_powersgd() -> None:
    """A matrix of rank 1 is exact after both factors; the first step is a projection of it."""
    values = np.outer([1, 2, 2], [3, 4]).astype(np.float32)
    made = make("powersgd:1,shape=3x2")
    first = made.carry(values.reshape(-1), 0)
    assert first.size == 2
    found = made.result(first, 6).reshape(3, 2)
    assert np.linalg.norm(found) <= 15 * 1.0001  # the matrix has norm 3 x 5
    assert found[:, 0] * 4 == pytest.approx(found[:, 1] * 3, rel=1e-4)  # its own row space
    projection = np.sum(found * values) / np.linalg.norm(found) ** 2
    assert projection == pytest.approx(1, rel=1e-4)
    second = made.carry(values.reshape(-1), 1)
    assert second.tolist() == pytest.approx((second[0] * floats(1, 2, 2)).tolist(), rel=1e-4)
    assert made.result(second, 6) == pytest.approx(values.reshape(-1), rel=1e-4)


def test_qsgd() -> None:
    """3 and -4 have norm 5: both are of 5 levels. With one level, 3 is 5 with probability 0.6."""
    values = floats(3, -4)
    assert all(make("qsgd:5").carry(values, seed).tolist() == [3, -4] for seed in range(20))
    drawn = np.array([make("qsgd:1").carry(values, seed) for seed in range(2000)])
    assert np.unique(np.abs(drawn)).tolist() == [0, 5]
    assert within(float((drawn[:, 0] == 5).mean()), 0.6, 2000)
    assert within(float((drawn[:, 1] == -5).mean()), 0.8, 2000)


def test_rotation() -> None:
    """Rotating (2, 0, 0, 0) leaves four magnitudes of 1, which one level holds exactly.

    Five elements are padded to eight.
    """
    assert hadamard(floats(1, 2, 3, 4)).tolist() == [5, -1, -2, 0]
    made = make("rotation:1")
    carried = made.carry(floats(2, 0, 0, 0), 3)
    assert np.abs(carried).tolist() == [1, 1, 1, 1]
    assert made.own(carried, 4).tolist() == [2, 0, 0, 0]
    signs = {make("rotation:1").carry(floats(2, 0, 0, 0), seed)[0] for seed in range(20)}
    assert signs == {1, -1}
    five = make("rotation:1").carry(floats(1, 0, 0, 0, 0), 3)
    assert five.size == 8


def test_sidco() -> None:
    """Even magnitudes from 0 to 1, of which a tenth is wanted, by stages that start at a quarter.

    Exponential: 0.5 ln 4 = 0.6931. The excesses' mean is 0.1534, times -ln 0.4: 0.8337, so 0.1663
    are sent. Pareto by moments of even excesses: shape 1, scale 0.3069; 0.8773, so 0.1227.
    After five steps of 1.66 times the share there is a third stage: each is the root of 0.4.
    """
    values = (np.arange(10_000) + 0.5).astype(np.float32) / 10_000
    made = make("sidco:10%")
    sent = [np.count_nonzero(made.carry(values, step)) / 10_000 for step in range(6)]
    first = 0.5 * log(4)
    second = first + (1 - first) / 2 * -log(0.4)
    assert sent[:5] == pytest.approx([1 - second] * 5, abs=3e-4)
    middle = first + (1 - first) / 2 * -log(0.4) / 2
    assert sent[5] == pytest.approx(1 - middle - (1 - middle) / 2 * -log(0.4) / 2, abs=3e-4)
    pareto = np.count_nonzero(make("sidco:10%,fit=pareto").carry(values, 0)) / 10_000
    assert pareto == pytest.approx((1 - first) * 0.4, abs=3e-4)
    few = make("sidco:50%").carry(values, 0)  # above a quarter there is one stage
    assert np.count_nonzero(few) / 10_000 == pytest.approx(1 - 0.5 * log(2), abs=3e-4)


def test_terngrad() -> None:
    """24 zeros and a 10: mean 0.4, deviation 1.9596, so 10 is clipped to 2.5 of that, 4.899.

    Without clipping, -0.25 is -1 with probability 1/4 if the largest magnitude is 1.
    """
    values = np.append(np.zeros(24, np.float32), floats(10))
    sent = make("terngrad").carry(values, 1)
    assert sent[24] == pytest.approx(4.899, rel=1e-3)
    assert not sent[:24].any()
    quarter = np.append(np.full(9999, -0.25, np.float32), floats(1))
    drawn = make("terngrad:,clip=0").carry(quarter, 1)
    assert set(drawn.tolist()) == {-1.0, 0.0, 1.0}
    assert within(float((drawn == -1).mean()), 0.25, 10_000)


def test_threelc() -> None:
    """M is s times the largest magnitude; what is more than half of it becomes M."""
    values = floats(1, 0.6, -0.4, -0.9)
    assert make("threelc").carry(values, 0).tolist() == [1, 1, 0, -1]
    assert make("threelc:1.75").carry(values, 0).tolist() == [1.75, 0, 0, -1.75]


def test_dgc() -> None:
    """Momentum 0.9 of what was not sent, and both of them, come on top; what was sent has none.

    u = 0.9 (0, 1, 0, 2) + (0, 1, 0, 1) = (0, 1.9, 0, 2.8), and v = (0, 1, 0, 2) + u.
    """
    made = make("dgc:2")
    assert made.carry(floats(4, 1, -3, 2), 0).tolist() == [4, 0, -3, 0]
    second = made.carry(floats(0, 1, 0, 1), 1).tolist()
    assert second == pytest.approx([0, 2.9, 0, 4.8])
    warm = make("dgc:1%,warmup=1")
    values = np.random.default_rng(1).standard_normal(10_000).astype(np.float32)
    assert 800 <= np.count_nonzero(warm.carry(values, 0)) <= 1300  # the root of a hundredth


def test_atomo() -> None:
    """Sizes 8, 1, 1 with a budget of 2: the first is sure, the others share one.

    Of singular values 3 and 1 and a budget of 1, the first is drawn with 3/4: both become 4.
    """
    assert probabilities(np.array([8.0, 1.0, 1.0]), 2).tolist() == [1, 0.5, 0.5]
    assert draw(np.array([1, 0.5, 0.5]), 0.2).tolist() == [0, 1]
    assert draw(np.array([1, 0.5, 0.5]), 0.7).tolist() == [0, 2]
    values, made = floats(3, 0, 0, 1), make("atomo:1")
    drawn = np.array([made.own(made.carry(values, seed), 4) for seed in range(1000)])
    first = np.isclose(drawn, [4, 0, 0, 0], atol=1e-4).all(axis=1)
    second = np.isclose(drawn, [0, 0, 0, 4], atol=1e-4).all(axis=1)
    assert (first ^ second).all()
    assert within(float(first.mean()), 0.75, 1000)
