import torch
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.core.tensors import as_arrays
from ringleaf.experiments.checking.data import Sparsity, make_tensors


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
    Sparsity(density, cluster, overlap).thin(7, as_arrays(tensors))
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
    Sparsity().thin(1, as_arrays(tensors))
    assert torch.equal(torch.stack(tensors), torch.stack(make_tensors(1, 2, 100, "float32")))
