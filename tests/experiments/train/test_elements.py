"""Types and reductions, compared with PyTorch's own."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.errors import ConfigError
from ringleaf.experiments.workloads.train.elements import (
    Reduction,
    from_bfloat16,
    item_bytes,
    to_bfloat16,
)

OPERATIONS = {
    "sum": torch.add,
    "product": torch.mul,
    "min": torch.minimum,
    "max": torch.maximum,
    "band": torch.bitwise_and,
    "bor": torch.bitwise_or,
    "bxor": torch.bitwise_xor,
}


HALVES = st.integers(0, 0x7F7F).map(
    lambda word: float(np.array([word << 16 | 0x8000], np.uint32).view(np.float32)[0])
)
"""Values in the middle between two neighbours of bfloat16."""


@given(st.lists(st.floats(width=32) | HALVES, min_size=1))
def test_bfloat16_is_rounded_as_pytorch_does(values: list[float]) -> None:
    given_values = np.array(values, np.float32)
    expected = torch.from_numpy(given_values.copy()).to(torch.bfloat16)

    rounded = to_bfloat16(given_values)

    words = expected.view(torch.int16).numpy().view(np.uint16)
    number = ~np.isnan(given_values)
    assert (rounded[number] == words[number]).all()
    assert np.isnan(from_bfloat16(rounded)[~number]).all()


@pytest.mark.parametrize(
    "dtype", [torch.float16, torch.bfloat16, torch.float64, torch.int64, torch.uint8]
)
@pytest.mark.parametrize("op", OPERATIONS)
def test_elements_are_combined_as_pytorch_does(dtype: torch.dtype, op: str) -> None:
    name = str(dtype).removeprefix("torch.")
    if dtype.is_floating_point and op in ("band", "bor", "bxor"):
        with pytest.raises(ConfigError, match=f"{name} can't be reduced so, got '{op}'"):
            Reduction(name, op)
        return
    generator = torch.Generator().manual_seed(3)
    a, b = ((torch.randn(500, generator=generator) * 50).to(dtype) for _ in range(2))
    expected = OPERATIONS[op](a, b)
    reduction = Reduction(name, op)
    target = a.clone().view(torch.uint8).numpy().view(reduction.elements)
    source = b.clone().view(torch.uint8).numpy().view(reduction.elements)

    reduction.combine(target, source)

    assert bytes(target) == bytes(expected.view(torch.uint8).numpy())


def test_types_without_a_reduction_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"must be of a type that NumPy has.*'float8_e5m2'"):
        item_bytes("float8_e5m2")
    with pytest.raises(ConfigError, match="complex64 can't be reduced so, got 'max'"):
        Reduction("complex64", "max")
