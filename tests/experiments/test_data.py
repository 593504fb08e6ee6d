from collections.abc import Sequence

import torch
from hypothesis import given
from hypothesis import strategies as st

from collectives.registry import ALGORITHMS
from experiments.data import Sparsity, count_different, count_outside, make_tensors


def test_same_seed_same_tensors_and_ranks_differ() -> None:
    first, second = make_tensors(1, 2, 100, "float32")
    again, _ = make_tensors(1, 2, 100, "float32")
    other, _ = make_tensors(2, 2, 100, "float32")

    assert torch.equal(first, again)
    assert not torch.equal(first, second)
    assert not torch.equal(first, other)


def test_integers_are_of_either_sign() -> None:
    (values,) = make_tensors(1, 1, 1000, "int32")

    assert values.dtype == torch.int32
    assert int(values.min()) < 0 < int(values.max())


def test_a_changed_bit_is_counted_once_per_rank() -> None:
    schedule = ALGORITHMS["ring"].build(3)
    inputs = [torch.tensor([0.0, 1.0, 2.0, 3.0]) for _ in range(3)]
    results = [tensor * 3 for tensor in inputs]
    assert count_different(schedule, inputs, results) == 0

    results[1][0] = -0.0  # equal to 0, but not bit for bit
    results[2][3] = float("nan")

    assert count_different(schedule, inputs, results) == 2


def test_nan_in_nan_out_is_right() -> None:
    schedule = ALGORITHMS["ring"].build(2)
    inputs = [torch.tensor([float("nan"), 1.0]), torch.tensor([1.0, 1.0])]

    assert count_different(schedule, inputs, [torch.tensor([float("nan"), 2.0])] * 2) == 0


def test_errors_within_the_bound_are_right_and_beyond_wrong() -> None:
    inputs = [torch.ones(200_000), torch.ones(200_000)]
    results = [torch.full((200_000,), 2.0) for _ in range(2)]
    results[0][199_999] = 2.5
    results[1][70_000] = 2.6
    results[1][70_001] = float("nan")

    def bound(parts: Sequence[torch.Tensor]) -> torch.Tensor:
        return torch.full(parts[0].shape, 0.5, dtype=torch.float64)

    assert count_outside(inputs, results, bound, block=256) == 2


def test_bound_is_asked_for_whole_blocks() -> None:
    asked: list[int] = []

    def bound(parts: Sequence[torch.Tensor]) -> torch.Tensor:
        asked.append(parts[0].numel())
        return torch.zeros(parts[0].shape, dtype=torch.float64)

    inputs = [torch.ones(100_000, dtype=torch.int32)]
    assert count_outside(inputs, inputs, bound, block=100) == 0
    assert sum(asked) == 100_000
    assert all(count % 100 == 0 for count in asked)


@given(
    density=st.sampled_from((0.0, 0.01, 0.25, 0.9)),
    cluster=st.sampled_from((1, 32, 100)),
    overlap=st.sampled_from((0.0, 0.5, 1.0)),
    count=st.sampled_from((0, 1, 2000)),
)
def test_tensors_are_as_sparse_as_asked_for(
    density: float, cluster: int, overlap: float, count: int
) -> None:
    tensors = [torch.ones(count) for _ in range(3)]
    Sparsity(density, cluster, overlap).thin(7, tensors)
    runs = -(-count // cluster)
    kept = round(density * runs)
    padded = [torch.nn.functional.pad(t, (0, runs * cluster - count)) for t in tensors]
    places = [each.view(runs, cluster).any(dim=1) for each in padded]
    for tensor, present in zip(padded, places, strict=True):
        assert int(present.sum()) == (kept if runs else 0)
        whole = present.repeat_interleave(cluster)[:count]
        assert torch.equal(tensor[:count] != 0, whole)
    everywhere = places[0] & places[1] & places[2]
    assert int(everywhere.sum()) >= round(overlap * kept)


def test_dense_tensors_stay_as_they_are() -> None:
    tensors = make_tensors(1, 2, 100, "float32")
    Sparsity().thin(1, tensors)
    assert torch.equal(torch.stack(tensors), torch.stack(make_tensors(1, 2, 100, "float32")))
