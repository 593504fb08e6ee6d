"""FLOPs that PyTorch does not count on CPUs; expectations by hand: two for each multiplication."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor
from torch.nn.functional import scaled_dot_product_attention
from torch.testing._internal.distributed.fake_pg import FakeStore

from ringleaf.experiments.workloads.train.flops import FlopMeter

BATCH, HEADS, WORDS, WIDTH, WIDE = 2, 4, 6, 16, 24

TOKENS = torch.ones(BATCH, WORDS, WIDTH)
QUERY = torch.ones(BATCH, HEADS, WORDS, WIDTH // HEADS, requires_grad=True)

PRODUCT = 2 * BATCH * WORDS * WORDS * WIDTH  # queries by keys, or scores by values, all heads
ATTENTION = 2 * PRODUCT
PROJECTIONS = 2 * BATCH * WORDS * 4 * WIDTH * WIDTH  # queries, keys, values and results
FORWARD = 2 * BATCH * WORDS * 2 * WIDTH * WIDE


def flops(script: Callable[[], Any]) -> int:
    """Return the FLOPs that a script is counted."""
    counts: list[int] = []
    with FlopMeter(counts.append):
        script()
    return sum(counts)


def test_attention_counts_forward_and_backward() -> None:
    def both() -> None:
        scaled_dot_product_attention(QUERY, QUERY, QUERY).sum().backward()

    # Back: scores again, then two products each for scores and values, and for queries and keys.
    assert flops(lambda: scaled_dot_product_attention(QUERY, QUERY, QUERY)) == ATTENTION
    assert flops(both) == ATTENTION + 5 * PRODUCT


@pytest.mark.parametrize("mode", [torch.enable_grad, torch.no_grad, torch.inference_mode])
def test_an_evaluation_counts_as_much_as_training(mode: Callable[[], Any]) -> None:
    layer = nn.TransformerEncoderLayer(WIDTH, HEADS, WIDE, batch_first=True, dropout=0.0)
    heads = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
    matrix, vector = torch.ones(3, 5), torch.ones(5)
    with mode():
        for is_training in (True, False):
            layer.train(is_training)
            heads.train(is_training)
            assert flops(lambda: layer(TOKENS)) == PROJECTIONS + ATTENTION + FORWARD
            assert flops(lambda: heads(TOKENS, TOKENS, TOKENS)) == PROJECTIONS + ATTENTION
        assert flops(lambda: nn.Linear(5, 7)(matrix)) == 2 * 3 * 5 * 7
        assert flops(lambda: matrix @ vector) == 2 * 3 * 5


def test_sequences_of_several_lengths_count_by_their_lengths() -> None:
    model = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(WIDTH, HEADS, WIDE, batch_first=True), 1
    ).eval()
    is_padding = torch.tensor([[False] * 6, [False] * 2 + [True] * 4])
    with torch.no_grad():
        count = flops(lambda: model(TOKENS, src_key_padding_mask=is_padding))
    assert count == 2 * (6 + 2) * (4 * WIDTH**2 + 2 * WIDTH * WIDE) + 4 * (36 + 4) * WIDTH


def test_an_lstm_counts_both_products_of_each_step() -> None:
    model, series = nn.LSTM(WIDTH, WIDE), torch.ones(5, BATCH, WIDTH)
    forward = 2 * 5 * BATCH * 4 * WIDE * (WIDTH + WIDE)
    assert flops(lambda: model(series)) == forward
    assert flops(lambda: model(series)[0].sum().backward()) == 3 * forward


def test_a_rank_counts_its_part_of_tensors_that_ranks_share() -> None:
    dist.init_process_group("fake", rank=0, world_size=4, store=FakeStore())
    try:
        mesh = init_device_mesh("cpu", (4,))
        weights = distribute_tensor(torch.ones(5, 8), mesh, [Shard(1)], src_data_rank=None)
        values = distribute_tensor(torch.ones(3, 5), mesh, src_data_rank=None)
        assert flops(lambda: values @ weights) == 2 * 3 * 5 * 8 // 4
        assert flops(lambda: values @ weights) == 2 * 3 * 5 * 8 // 4
    finally:
        dist.destroy_process_group()
