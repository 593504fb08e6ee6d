"""All compressors: round trips, error feedback, bias, sizes and golden values."""

from __future__ import annotations

from math import ceil, log2

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ringleaf.collectives.codec import CODECS, Codec
from ringleaf.collectives.compression.compressor import Feedback, codec_of
from ringleaf.collectives.compression.member import Member, short
from ringleaf.collectives.compression.registry import COMPRESSORS, parse_compressor
from ringleaf.collectives.compression.scaled import ScaledCompressor
from ringleaf.collectives.compressors.atomo import draw, probabilities
from ringleaf.collectives.compressors.rotation import hadamard
from ringleaf.core.tensors import Array
from ringleaf.errors import ConfigError, ProtocolError

SHARES = ("topk", "randomk", "gaussiank", "mstopk", "dgc", "sidco", "egc")
TEXTS = {name: f"{name}:10%" if name in SHARES else name for name in COMPRESSORS} | {
    "threshold": "threshold:1.5",
    "onebit-adam": "onebit-adam:2",
}
UNBIASED = ("qsgd", "terngrad", "natural", "atomo", "rotation")
"""The papers claim no bias of these."""


def make(text: str, rank: int = 0, ranks: int = 1) -> Member:
    made = Feedback(parse_compressor(text), rank, ranks).copy()
    assert isinstance(made, Member)
    return made


def normal(elements: int, seed: int) -> Array:
    return np.random.default_rng(seed).standard_normal(elements).astype(np.float32)


def encoded(codec: Codec, values: Array) -> bytes:
    return bytes(codec.encode(torch.from_numpy(values)).numpy())


def returned(codec: Codec, values: Array) -> Array:
    data = codec.encode(torch.from_numpy(values))
    found: Array = codec.decode(data, values.size, torch.float32).numpy()
    return found


def same(first: Array, second: Array) -> bool:
    return first.tobytes() == second.tobytes()


def test_there_are_many() -> None:
    assert len(COMPRESSORS.shipped()) >= 19


@given(st.sampled_from(sorted(TEXTS)), st.integers(0, 700), st.integers(0, 99), st.integers(0, 700))
def test_what_is_carried_is_written_and_read_without_loss(
    name: str, elements: int, seed: int, cut: int
) -> None:
    """Codecs keep whole messages, parts of them, and a sum of two ranks'."""
    values, codec = normal(elements, seed), codec_of(parse_compressor(TEXTS[name]))
    carried = [make(TEXTS[name], rank, 2).carry(values, seed) for rank in range(2)]
    if codec is None:
        return
    for part in (carried[0], carried[0][:cut], carried[1][cut:], carried[0] + carried[1]):
        assert same(returned(codec, part), part)
        assert len(encoded(codec, part)) <= codec.most_bytes(part.size, 4)


@given(st.sampled_from(sorted(CODECS)), st.binary(max_size=400), st.integers(0, 99))
def test_codecs_write_anything_and_survive_anything(name: str, data: bytes, count: int) -> None:
    """Any bits come back, and of bytes that are no message, a codec says so."""
    values = np.frombuffer(data[: len(data) // 4 * 4], np.float32).copy()
    codec = CODECS[name]
    assert same(returned(codec, values), values)
    message = torch.from_numpy(np.frombuffer(data, np.uint8).copy())
    try:
        found = codec.decode(message, count, torch.float32)
    except ProtocolError:
        return
    assert found.numel() == count


@pytest.mark.parametrize("name", sorted(TEXTS))
@given(st.integers(1, 200), st.integers(1, 5))
@settings(max_examples=20)
def test_feedback_identity(name: str, elements: int, steps: int) -> None:
    """The message and the new rest together are the input and the old rest, bit for bit."""
    memory = Feedback(parse_compressor(TEXTS[name]))
    if memory.copy().has_memory:  # type: ignore[attr-defined]
        return
    for step in range(steps):
        values = torch.from_numpy(normal(elements, step))
        wanted = values + memory.left[None] if step else values
        sent = memory.before(values, step)
        assert torch.equal(memory.left[None], wanted - sent)


@given(st.integers(1, 300), st.integers(1, 6))
@settings(max_examples=20)
def test_dgc_keeps_momentum_and_rest_where_nothing_was_sent(elements: int, steps: int) -> None:
    made = make("dgc:10%,momentum=0.5")
    left = velocity = np.zeros(elements, np.float32)
    for step in range(steps):
        values = normal(elements, step)
        velocity = np.float32(0.5) * velocity + values
        wanted = left + velocity
        sent = made.carry(values, step)
        went = sent != 0
        assert same(sent[went], wanted[went])
        left, velocity = np.where(went, 0, wanted), np.where(went, 0, velocity)
        assert np.array_equal(made.left, left)  # type: ignore[attr-defined]
        assert np.array_equal(made.velocity, velocity)  # type: ignore[attr-defined]


def test_dgc_warms_up() -> None:
    """Four steps from the root of the share: 0.01^(1/4), ^(2/4), ... of 100 000 elements."""
    made = make("dgc:1%,momentum=0,warmup=3")
    for step, share in enumerate((0.3162, 0.1, 0.0316, 0.01, 0.01)):
        sent = np.count_nonzero(made.carry(normal(100_000, step), step))
        assert 0.75 * share < sent / 100_000 < 1.35 * share


@pytest.mark.parametrize("name", UNBIASED)
def test_unbiased(name: str) -> None:
    """Over 4,000 draws the mean is within 5 standard errors of the tensor."""
    text = "terngrad:,clip=0" if name == "terngrad" else TEXTS[name]
    made, values, draws = make(text), normal(40, 3), 4000
    assert made.is_unbiased
    samples = np.empty((draws, 40))
    for seed in range(draws):
        if name == "rotation":
            made = make(text)
        samples[seed] = made.own(made.carry(values, seed), 40)
    error = samples.std(axis=0) / np.sqrt(draws) + 1 / draws
    assert (np.abs(samples.mean(axis=0) - values) < 5 * error).all()


def test_only_those_claim_it() -> None:
    assert tuple(n for n in COMPRESSORS.shipped() if make(TEXTS[n]).is_unbiased) == tuple(
        sorted(UNBIASED)
    )


def test_ranks_draw_different_numbers() -> None:
    values = normal(1000, 1)
    for name in ("qsgd:4", "terngrad", "natural"):
        assert not same(make(name, 0, 2).carry(values, 5), make(name, 1, 2).carry(values, 5))
        assert same(make(name, 1, 2).carry(values, 5), make(name, 1, 2).carry(values, 5))


# Sizes on the wire.


@pytest.mark.parametrize("elements", [64, 1000, 4097])
@pytest.mark.parametrize(
    ("text", "most", "extra"),
    [
        ("onebit", 1 / 8, 8),
        ("signsgd", 1 / 8, 0),
        ("efsign", 1 / 8, 4),
        ("natural", 1, 0),
    ],
)
def test_bytes_are_those_of_the_papers(text: str, elements: int, most: float, extra: int) -> None:
    made = make(text)
    assert made.codec is not None
    size = len(encoded(made.codec, made.carry(normal(elements, 1), 1)))
    assert size == ceil(most * elements) + extra


@pytest.mark.parametrize("elements", [1000, 65_536])
def test_bytes_of_codes_are_at_most_the_papers(elements: int) -> None:
    """QSGD d + 4 with 127 levels, TernGrad 2 bits per element and 4 bytes, 3LC d/5 and 4."""
    for text, most in (
        ("terngrad", ceil(elements / 4) + 4),
        ("qsgd:127", elements + 4),
        ("threelc", ceil(elements / 5) + 4),
    ):
        made = make(text)
        assert made.codec is not None
        assert len(encoded(made.codec, made.carry(normal(elements, 1), 1))) <= most


def test_elias_codes_of_normal_values() -> None:
    """With the root of d levels, the unit of normal values is 1. Zero, 1 bit, has probability
    0.369; 1 and 2 take 4 bits, 3 to 6 take 7, with 0.02: 2.95 bits per element together.
    """
    made = make("qsgd:256")
    assert made.codec is not None
    size = len(encoded(made.codec, made.carry(normal(65_536, 1), 1)))
    assert 2.9 < 8 * size / 65_536 < 3.0


def test_sums_of_terngrad_stay_small_if_ranks_agree() -> None:
    """Sums of n ranks are whole numbers from -n to n: ceil(log2(2 n + 1)) bits."""
    values = [normal(4000, rank) for rank in range(5)]
    made = [make("terngrad", rank, 5) for rank in range(5)]
    assert all(isinstance(each, ScaledCompressor) and each.shares for each in made)
    scale = max(each.scale(v) for each, v in zip(made, values, strict=True))  # type: ignore[attr-defined]
    total = np.zeros(4000, np.float32)
    for each, part in zip(made, values, strict=True):
        each.agree(scale)  # type: ignore[attr-defined]
        total += each.carry(part, 1)
    levels = total / short(scale)
    assert np.array_equal(levels, np.rint(levels))
    largest = np.abs(levels).max()
    assert largest <= 5
    bits = ceil(log2(2 * largest + 1))
    assert len(encoded(CODECS["levels"], total)) <= 4 + ceil(4000 * bits / 8)


def test_signs_of_ranks_add_up_to_whole_numbers_of_few_bits() -> None:
    total = sum(make("signsgd", rank, 4).carry(normal(800, rank), 1) for rank in range(4))
    assert len(encoded(CODECS["signs"], np.asarray(total))) <= 4 + 300  # -4, -2, 0, 2, 4: 3 bits


def test_powersgd_carries_40960_bytes_in_two_steps() -> None:
    """A 512 x 4608 convolution of rank 2: 4 r (n + m) bytes, 230 times less than the tensor."""
    made = make("powersgd:2,shape=512x4608")
    values = normal(512 * 4608, 1)
    sizes = []
    for step in range(2):
        carried = made.carry(values, step)
        sizes.append(carried.nbytes)
        made.result(carried, values.size)
    assert sum(sizes) == 40_960
    assert values.nbytes // sum(sizes) == 230


@pytest.mark.parametrize("width", range(2, 13))
def test_levels_are_packed_in_the_least_width(width: int) -> None:
    """Even levels up to the largest of a width: Elias' codes would take more."""
    most = (1 << (width - 1)) - 1
    levels = np.resize(np.array([most, -most, most, 1 - most or 1]), 999)
    values = levels.astype(np.float32) * np.float32(0.375)
    data = encoded(CODECS["levels"], values)
    assert data[0] == width
    assert len(data) == 4 + ceil(999 * width / 8)
    assert same(returned(CODECS["levels"], values), values)


# Golden values, by hand.


def test_natural_compression_of_two_and_a_half() -> None:
    """2 with probability 0.75, 4 with probability 0.25."""
    found = make("natural").carry(np.full(40_000, 2.5, np.float32), 1)
    assert set(found.tolist()) == {2.0, 4.0}
    assert abs(float((found == 2).mean()) - 0.75) < 0.01


def test_3lc_writes_five_zeros_as_121_and_runs_in_one_byte() -> None:
    values = np.array([0, 0, 0, 0, 0, 2, 0, -2, 0, 0], np.float32)
    data = encoded(CODECS["base3"], values)
    assert data == np.float32(2).tobytes() + bytes([121, 2 * 81 + 27 + 0 + 3 + 1])
    zeros = np.zeros(5 * 16, np.float32)
    zeros[0] = 1
    assert encoded(CODECS["base3"], zeros)[4:] == bytes([202, 255, 121])


def test_3lc_rounds_to_three_values() -> None:
    values = np.array([1, 0.6, -0.4, -0.9], np.float32)
    assert make("threelc").carry(values, 0).tolist() == [1, 1, 0, -1]
    sparse = make("threelc:1.75").carry(values, 0).tolist()
    assert sparse == [1.75, 0, 0, -1.75]  # M = 1.75, half of it 0.875


def test_signs_and_means() -> None:
    values = np.array([3, -1, 0, -3], np.float32)
    assert make("onebit").carry(values, 0).tolist() == [1.5, -2, 1.5, -2]
    assert make("efsign").carry(values, 0).tolist() == [1.75, -1.75, 1.75, -1.75]
    assert make("signsgd").carry(values, 0).tolist() == [1, -1, 1, -1]


def test_majority_wins_and_ties_are_positive() -> None:
    total = np.array([3, -1, 0], np.float32)
    assert make("signsgd", 0, 5).result(total, 3).tolist() == [5, -5, 5]


def test_qsgd_levels_of_a_norm_of_five() -> None:
    """3 and 4 have norm 5: with 5 levels, both are levels exactly."""
    for seed in range(20):
        assert make("qsgd:5").carry(np.array([3, -4], np.float32), seed).tolist() == [3, -4]


def test_elias_codes() -> None:
    """Distance 3 is 110, plus is 0, magnitude 2 is 100; distance 18 is 10 100 10010 0."""
    values = np.zeros(20, np.float32)
    values[2] = 2
    data = encoded(CODECS["levels"], np.append(values, np.zeros(0, np.float32)))
    assert data[0] == 0xFE
    bits = np.unpackbits(np.frombuffer(data[4:], np.uint8), bitorder="little")
    # The unit is the greatest common one, 2, so the magnitude is 1, code 0.
    wanted = "110" + "0" + "0" + "10" + "100" + "10010" + "0"
    assert "".join(map(str, bits))[: len(wanted)] == wanted


def test_exponential_threshold_of_sidco() -> None:
    """Exponential magnitudes: of 200 000, the share above the threshold is the wanted one."""
    chance = np.random.default_rng(1)
    values = chance.exponential(2.0, 200_000).astype(np.float32)
    for fit in ("exponential", "pareto"):
        kept = np.count_nonzero(make(f"sidco:1%,fit={fit}").carry(values, 1))
        assert 0.9 < kept / 2000 < 1.1


@pytest.mark.parametrize("count", [1, 90, 3000])
def test_the_largest_of_many_are_found(count: int) -> None:
    """Also those that no sample has seen, and where many are alike."""
    for values in (normal(50_000, 7), np.resize(np.arange(100, dtype=np.float32), 50_000)):
        values[::61] *= 0.01
        sent = np.abs(make(f"topk:{count}").carry(values, 0))
        assert np.array_equal(np.sort(sent)[-count:], np.sort(np.abs(values))[-count:])
        assert np.count_nonzero(sent) == count


def test_mstopk_sends_exactly_k() -> None:
    for elements, count in ((1, 1), (100, 7), (5000, 50)):
        values = normal(elements, elements)
        sent = make(f"mstopk:{count}").carry(values, 0)
        assert np.count_nonzero(sent) == count
        exact = np.sort(np.abs(values))[-count:].sum()
        assert np.abs(sent).sum() > 0.95 * exact


def test_gaussiank_sends_about_k_of_normal_values() -> None:
    sent = np.count_nonzero(make("gaussiank:1%").carry(normal(100_000, 1), 0))
    assert 750 <= sent <= 1250


def test_egc_sends_more_of_even_magnitudes() -> None:
    made = make("egc:10%")
    spiky = np.append(np.full(999, 1e-3), 1).astype(np.float32)
    few = np.count_nonzero(made.carry(spiky, 0))
    many = np.count_nonzero(made.carry(np.linspace(0.1, 1, 1000, dtype=np.float32), 0))
    assert few == 100
    assert many == 200  # 1.996 of the mean: entropies of 0.0019 and 0.976


def test_hadamard_is_its_own_inverse_and_keeps_lengths() -> None:
    for bits in (0, 1, 5, 6, 7, 13):
        values = normal(1 << bits, bits)
        turned = hadamard(values)
        assert np.allclose(hadamard(turned), values, atol=1e-5)
        assert np.isclose(np.square(turned).sum(), np.square(values).sum(), rtol=1e-4)
    assert hadamard(np.array([1, 2, 3, 4], np.float32)).tolist() == [5, -1, -2, 0]


@pytest.mark.parametrize("power", [*range(9), 15, 16, 17])
def test_hadamard_of_one_element_is_signs(power: int) -> None:
    """Row k has -1 where i and k have an odd number of ones in common (Sylvester)."""
    elements = 1 << power
    k = 0xAAAAA % elements
    one = np.zeros(elements, np.float32)
    one[k] = np.sqrt(np.float32(elements))
    signs = [-1 if (i & k).bit_count() % 2 else 1 for i in range(elements)]
    assert np.allclose(hadamard(one), signs)


def test_powersgd_finds_a_matrix_of_its_rank() -> None:
    chance = np.random.default_rng(2)
    matrix = chance.standard_normal((20, 2)) @ chance.standard_normal((2, 20))
    values = matrix.astype(np.float32).reshape(-1)
    made = [make("powersgd:2", rank, 2) for rank in range(2)]
    for step in range(3):
        total = sum(each.carry(values, step) for each in made)
        found = [each.result(np.asarray(total), 400) for each in made]
    assert same(found[0], found[1])
    assert np.allclose(found[0], 2 * values, atol=1e-3)


def test_atomo_probabilities_by_hand() -> None:
    """Sizes 8, 1, 1 with a budget of 2: the first is sure, the others share one."""
    assert probabilities(np.array([8.0, 1.0, 1.0]), 2).tolist() == [1, 0.5, 0.5]
    assert [draw(np.array([1, 0.5, 0.5]), start).tolist() for start in (0.2, 0.7)] == [
        [0, 1],
        [0, 2],
    ]


def test_atomo_of_two_ranks_is_the_sum_of_both() -> None:
    values = [normal(30, rank) for rank in range(2)]
    made = [make("atomo:6", rank, 2) for rank in range(2)]
    carried = [each.carry(part, 1) for each, part in zip(made, values, strict=True)]
    found = made[0].result(carried[0] + carried[1], 30)
    assert np.allclose(found, values[0] + values[1], atol=1e-5)  # all six triples are sent


def test_onebit_adam_steps_as_adam_in_its_warm_up() -> None:
    """By PyTorch's own Adam, in steps of 1; then signs of equal size are sent."""
    weights = torch.zeros(6, requires_grad=True)
    adam = torch.optim.Adam([weights], lr=1.0)
    made, position = make("onebit-adam:3"), torch.zeros(6)
    for step in range(3):
        gradient = normal(6, step)
        weights.grad = torch.from_numpy(gradient.copy())
        adam.step()
        position -= torch.from_numpy(made.result(made.carry(gradient, step), 6))
        assert torch.allclose(position, weights.detach(), atol=1e-4)
    sent = made.carry(normal(6, 9), 3)
    assert len(set(np.abs(sent).tolist())) == 1


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("signsgd:1", "compress: signsgd: has no settings, got '1'; leave it out"),
        ("qsgd:0", "compress: qsgd: must be a whole number from 1 to 2047, got '0'"),
        ("threshold:x", "compress: threshold: must be a number from 1e-30 to 1e.30, got 'x'"),
        ("threelc:2", "compress: threelc: must be below 2, got '2'"),
        ("dgc:1%,speed=2", "compress: dgc: unknown setting, got 'speed'"),
        ("sidco:1%,fit=normal", "compress: sidco: unknown fit, got 'normal'"),
    ],
)
def test_wrong_settings_are_refused(text: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        parse_compressor(text)


def test_integers_are_refused_by_those_that_need_floats() -> None:
    values = torch.tensor([1, 2], dtype=torch.int32)
    with pytest.raises(ConfigError, match="compress: qsgd needs elements of type float32, got int"):
        parse_compressor("qsgd").select(values, 0)


def test_a_matrix_must_hold_the_tensor() -> None:
    with pytest.raises(ConfigError, match="a matrix of 10 elements must hold them, got 3x3"):
        make("powersgd:1,shape=3x3").carry(normal(10, 1), 0)
