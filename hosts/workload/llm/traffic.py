"""Bytes and operations of a model in parallel, by the formulas that Megatron-style training has.

Letters: b sequences of a micro-batch, s tokens, h hidden, w bytes of an item; t, c, e and d ranks
of tensor, context, expert and data parallelism. Each figure is of one rank.

Source:
    Narayanan et al., "Efficient large-scale language model training on GPU clusters using
    Megatron-LM", SC 2021, section 3; standard algebra for the rest.
"""

from __future__ import annotations

from ringleaf.core.units import PS_PER_S
from ringleaf.hosts.workload.llm.sizes import Split, TransformerSizes


def activation_bytes(sizes: TransformerSizes, split: Split) -> int:
    """Return the size of a micro-batch's activation on one rank: b (s/c) h w."""
    tokens = split.micro_batch * sizes.sequence // split.cp
    return tokens * sizes.hidden * sizes.item_bytes


def tensor_bytes(sizes: TransformerSizes, split: Split) -> int:
    """Return the bytes that a rank sends per layer and micro-batch: 8 b (s/c) h w (t-1)/t.

    With sequence parallelism there are 10, as inputs are gathered again for weights' gradients; or
    5 of attention, and 4 times as many as experts of each token where these have parts.
    """
    times = 8
    if split.sequence_parallel:
        times = 5 + (4 * sizes.topk if sizes.experts else 5)
    return times * activation_bytes(sizes, split) * (split.tp - 1) // split.tp


def boundary_bytes(sizes: TransformerSizes, split: Split) -> int:
    """Return the bytes that a rank sends to the next stage: the activation, or its part of it.

    With sequence parallelism a rank has no more than its part between layers.

    Source:
        Megatron-LM, core/pipeline_parallel/schedules.py, get_tensor_shapes.
    """
    whole = activation_bytes(sizes, split)
    return whole // split.tp if split.scatter_gather or split.sequence_parallel else whole


def ring_bytes(sizes: TransformerSizes, split: Split) -> int:
    """Return a rank's block of keys and values in ring attention: 2 b (s/c) h_kv w / t.

    It has a whole head at least, which several ranks have if there are fewer heads than ranks.

    Source:
        Megatron-LM, core/transformer/attention.py, num_query_groups_per_partition.
    """
    tokens = split.micro_batch * sizes.sequence // split.cp
    width = max(sizes.kv_hidden // split.tp, sizes.hidden // sizes.heads)
    return 2 * tokens * width * sizes.item_bytes


def expert_bytes(sizes: TransformerSizes, split: Split) -> int:
    """Return the tokens' bytes that a rank brings to an all-to-all of experts: b (s/c) topk h w.

    With sequence parallelism it has a t-th of the tokens.
    """
    parts = split.tp if split.sequence_parallel else 1
    return sizes.topk * activation_bytes(sizes, split) // parts


def dense_gradient_bytes(sizes: TransformerSizes, split: Split) -> int:
    """Return a layer's gradient, but for experts, on one rank."""
    count = sizes.attention_parameters + (0 if sizes.experts else sizes.ffn_parameters)
    return count * sizes.item_bytes // split.tp


def expert_gradient_bytes(sizes: TransformerSizes, split: Split) -> int:
    """Return the gradient of a layer's experts on one rank; 0 if there are none."""
    return sizes.experts // split.ep * sizes.ffn_parameters * sizes.item_bytes // split.tp


def attention_ps(sizes: TransformerSizes, split: Split) -> int:
    """Return the time of a layer's attention, forward.

    Its products take 2 operations per parameter and token, and 4 b s (s/c) h for the scores.
    """
    tokens = split.micro_batch * sizes.sequence // split.cp
    operations = 2 * tokens * sizes.attention_parameters
    operations += 4 * tokens * sizes.sequence * sizes.hidden
    return _time_ps(operations, split)


def ffn_ps(sizes: TransformerSizes, split: Split) -> int:
    """Return the time of a layer's feed-forward network, forward, tokens being spread evenly."""
    tokens = split.micro_batch * sizes.sequence // split.cp
    times = sizes.topk if sizes.experts else 1
    return _time_ps(2 * tokens * times * sizes.ffn_parameters, split)


def _time_ps(operations: int, split: Split) -> int:
    return round(operations / split.tp / split.flops * PS_PER_S)
