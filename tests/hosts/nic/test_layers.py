"""Layers of integers: results by hand, and their division among stages."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.errors import ConfigError
from ringleaf.hosts.nic.pipeline.layers import DenseLayer, divide, infer, make_layers


def test_a_layer_by_hand() -> None:
    """Sums 1*10 + 2*20 = 50, -3*10 + 0 = -30, 7*10 + 7*20 = 210; shifted by 1: 25, -15, 105."""
    layer = DenseLayer(np.array([[1, 2], [-3, 0], [7, 7]], np.int8), 1)
    samples = np.array([[10, 20], [127, 127]], np.int8)
    assert layer(samples).tolist() == [[25, 0, 105], [127, 0, 127]]  # 190 and 889 are cut to 127
    last = DenseLayer(np.array([[1, 1, -1]], np.int8), 0)
    assert infer([layer, last], samples).tolist() == [[0], [0]]


def test_results_of_random_layers_differ_from_sample_to_sample() -> None:
    layers = make_layers([256, 512, 512, 512, 64], seed=1)
    samples = np.random.default_rng(1).integers(0, 128, (16, 256)).astype(np.int8)
    found = infer(layers, samples)
    assert len({row.tobytes() for row in found}) == 16
    assert 0.2 < np.count_nonzero(found) / found.size < 0.8


@given(st.integers(1, 40), st.integers(1, 40))
def test_stages_have_all_layers_in_their_order(layers: int, stages: int) -> None:
    made = make_layers([2] * (layers + 1), seed=1)
    if layers < stages:
        with pytest.raises(ConfigError, match=rf"of {stages} layers at least, .*got {layers}"):
            divide(made, stages)
        return
    divided = divide(made, stages)
    assert [each for stage in divided for each in stage] == made
    sizes = [len(stage) for stage in divided]
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("widths", [[4], [4, 0], [1 << 15, 4]])
def test_widths_out_of_range_are_refused(widths: list[int]) -> None:
    with pytest.raises(ConfigError, match="widths: must be"):
        make_layers(widths, seed=1)
