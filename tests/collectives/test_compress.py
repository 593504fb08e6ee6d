"""Compressors: what is sent, and that error feedback loses nothing."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.collectives.compression.compressor import CompressedAllreduce, Feedback
from ringleaf.collectives.compression.registry import parse_compressor
from ringleaf.collectives.oracle import execute
from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.errors import ConfigError


def random_tensor(elements: int, seed: int) -> torch.Tensor:
    return torch.randn(elements, generator=torch.Generator().manual_seed(seed))


@given(st.integers(0, 300), st.sampled_from(("1%", "0.25", "100%", "3")), st.integers(0, 99))
def test_top_k_sends_the_largest(elements: int, share: str, seed: int) -> None:
    values = random_tensor(elements, seed)
    sent = parse_compressor(f"topk:{share}").select(values, 0)
    kept = sent != 0
    wanted = {"1%": -(-elements // 100), "0.25": -(-elements // 4), "100%": elements, "3": 3}
    assert int(kept.sum()) == min(max(wanted[share], 1), elements)
    assert torch.equal(sent[kept], values[kept])
    if kept.any() and not kept.all():
        assert values[kept].abs().min() >= values[~kept].abs().max()


@given(st.integers(1, 300), st.integers(0, 99))
def test_random_k_sends_the_same_positions_on_all_ranks(elements: int, seed: int) -> None:
    compressor = parse_compressor("randomk:10%")
    sent = [compressor.select(random_tensor(elements, rank) + 10, seed) for rank in range(3)]
    assert {int((each != 0).sum()) for each in sent} == {-(-elements // 10)}
    assert torch.equal(sent[0] != 0, sent[2] != 0)


def test_random_k_changes_from_step_to_step() -> None:
    compressor = parse_compressor("randomk:10")
    first, second = (compressor.select(torch.ones(1000), seed) for seed in (1, 2))
    assert not torch.equal(first, second)


@pytest.mark.parametrize("name", ["topk", "randomk"])
def test_integers_are_compressed_too(name: str) -> None:
    values = torch.tensor([-(2**31), 5, -7, 9], dtype=torch.int32)
    sent = parse_compressor(f"{name}:2").select(values, 0)
    assert sent.dtype == torch.int32
    assert int((sent != 0).sum()) == 2
    assert name != "topk" or sent.tolist() == [-(2**31), 0, 0, 9]


@given(st.sampled_from(["topk", "randomk", "mstopk"]), st.integers(1, 60), st.integers(1, 9))
def test_feedback_loses_nothing(name: str, elements: int, steps: int) -> None:
    """What was sent and what is left over is what came in; in whole numbers, exactly."""
    memory = Feedback(parse_compressor(f"{name}:10%"))
    came, went = torch.zeros(elements), torch.zeros(elements)
    for step in range(steps):
        values = (random_tensor(elements, step) * 100).round()
        came += values
        went += memory.before(values, step, "layer")
        memory.before(values * 2, step, "another layer")
    assert torch.equal(went + memory.left["layer"], came)


def ring(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    return execute(ALGORITHMS["ring"].build(len(tensors)), tensors)


def test_wrapped_allreduce_sends_everything_in_the_end() -> None:
    gradient = [torch.tensor([[8.0, 4.0], [2.0, 1.0]]), torch.zeros(2, 2)]
    wrapped = CompressedAllreduce(parse_compressor("topk:1"), ring, 2)
    first = wrapped(gradient)
    assert [result.tolist() for result in first] == [[[8.0, 0.0], [0.0, 0.0]]] * 2
    nothing = [torch.zeros(2, 2) for _ in range(2)]
    total = first[0] + sum(wrapped(nothing)[1] for _ in range(3))
    assert torch.equal(total, gradient[0])


def test_without_feedback_the_rest_is_lost() -> None:
    wrapped = CompressedAllreduce(parse_compressor("topk:1"), ring, 1, feedback=False)
    wrapped([torch.tensor([3.0, 2.0])])
    assert wrapped([torch.zeros(2)])[0].tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (
            "top",
            "compress: unknown compressor, got 'top'; did you mean 'topk'. valid: ",
        ),
        ("topk", "compress: topk: not understood, got ''"),
        ("topk:0", "compress: topk: must be above 0, got '0'"),
        ("randomk:120%", "compress: randomk: must be in .0, 1., got '120%'"),
    ],
)
def test_other_words_are_refused(text: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        parse_compressor(text)
