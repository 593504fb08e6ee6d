"""Traffic of models in parallel, by formulas of papers and by what the graphs hold."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hand_graphs import play
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.errors import ConfigError
from ringleaf.hosts.workload.graph import CalledCollective, Graph, NodeKind
from ringleaf.hosts.workload.llm import traffic
from ringleaf.hosts.workload.llm.generate import generate, generate_for
from ringleaf.hosts.workload.llm.layout import RankLayout
from ringleaf.hosts.workload.llm.pipeline import SCHEDULES
from ringleaf.hosts.workload.llm.presets import PRESETS
from ringleaf.hosts.workload.llm.sizes import Split, TransformerSizes, check
from ringleaf.hosts.workload.meetings import match

GPT3 = TransformerSizes(
    layers=96, hidden=12288, heads=96, kv_heads=96, ffn=4 * 12288, sequence=2048
)
SMALL = TransformerSizes(layers=8, hidden=64, heads=8, kv_heads=4, ffn=256, sequence=32)

SENT = {
    CalledCollective.ALLREDUCE: lambda size, n: 2 * size * (n - 1) / n,
    CalledCollective.REDUCE_SCATTER: lambda size, n: size * (n - 1) / n,
    CalledCollective.ALL_GATHER: lambda size, n: size * (n - 1),
    CalledCollective.ALL_TO_ALL: lambda size, n: size * (n - 1) / n,
}
"""Bytes that a rank sends by algorithms that send least, from the bytes that it brings in."""


def sent(graph: Graph, rank: int = 0) -> Counter[str]:
    """Bytes that a rank sends, by kind of traffic."""
    found: Counter[str] = Counter()
    for node in graph.ranks[rank].nodes:
        if node.kind is NodeKind.SEND:
            found[node.label] += node.size_bytes
        elif node.call is not None:
            ranks = len(graph.groups[node.group].ranks)
            found[node.label] += round(SENT[node.call](node.size_bytes, ranks))
    return found


def test_gpt3_sends_352_3_mb_per_layer_and_micro_batch() -> None:
    """Hidden 12288, sequences of 2048, TP 8, half precision: 8 b s h w (t - 1) / t.

    With sequence parallelism 10: Megatron-LM's backward pass of a layer whose weights are cut by
    columns gathers its inputs again, and there are two in a layer.
    """
    split = Split(tp=8, layers_per_stage=1)
    parts = replace(split, sequence_parallel=True)

    assert sent(generate("gpt3", GPT3, split)) == {"tp": 352_321_536}
    assert sent(generate("gpt3", GPT3, parts)) == {"tp": 352_321_536 * 10 // 8}
    assert traffic.tensor_bytes(GPT3, split) == 352_321_536
    assert traffic.tensor_bytes(GPT3, parts) == 352_321_536 * 10 // 8


def test_inputs_that_are_gathered_again_come_while_a_layer_computes() -> None:
    """Weights' gradients wait for them, and so does the sum of inputs' gradients here."""
    graph = generate("x", SMALL, Split(tp=2, layers_per_stage=1, sequence_parallel=True))

    backward = [(node.call, node.after) for node in graph.ranks[0].nodes[6:]]
    gather, scatter = CalledCollective.ALL_GATHER, CalledCollective.REDUCE_SCATTER
    assert backward == [
        (gather, (5,)),
        (gather, (6,)),
        (None, (6,)),
        (scatter, (8, 7)),
        (gather, (9,)),
        (gather, (10,)),
        (None, (10,)),
        (scatter, (12, 11)),
    ]


def test_gpt3_sends_50_3_mb_per_boundary_or_6_3_mb_and_an_all_gather() -> None:
    split = Split(tp=8, pp=2, layers_per_stage=1)

    assert sent(generate("gpt3", GPT3, split))["pp"] == 50_331_648
    shared = generate("gpt3", GPT3, replace(split, scatter_gather=True))
    assert sent(shared)["pp"] == 6_291_456
    last = shared.ranks[8].nodes
    assert [(n.call, n.size_bytes) for n in last if n.call is CalledCollective.ALL_GATHER] == [
        (CalledCollective.ALL_GATHER, 6_291_456)
    ]


@pytest.mark.parametrize("scatter_gather", [False, True])
def test_a_boundary_s_activation_stays_in_parts_with_sequence_parallelism(
    scatter_gather: bool,
) -> None:
    """Megatron-LM's get_tensor_shapes divides the sequence by TP; layers gather it themselves."""
    split = Split(
        tp=8, pp=2, layers_per_stage=1, sequence_parallel=True, scatter_gather=scatter_gather
    )

    graph = generate("gpt3", GPT3, split)

    assert sent(graph)["pp"] == 2048 * 12288 * 2 // 8
    calls = Counter(node.call for node in graph.ranks[8].nodes)
    assert calls[CalledCollective.ALL_GATHER] == 2 + 4
    assert calls[CalledCollective.REDUCE_SCATTER] == 4


def test_a_sequence_s_blocks_go_round_the_ranks_that_share_it() -> None:
    """2 b (s/c) h_kv w, c - 1 times; backward, with gradients, twice as much."""
    graph = generate("x", SMALL, Split(cp=4, layers_per_stage=1))

    block = 2 * (32 // 4) * 32 * 2
    assert sent(graph)["cp"] == 3 * block + 3 * 2 * block


def test_tokens_go_to_experts_and_back_four_times_per_layer() -> None:
    """b s topk h w (e - 1) / e: dispatch and combine, forward and backward."""
    sizes = replace(SMALL, experts=8, topk=2)
    graph = generate("x", sizes, Split(dp=4, ep=4, layers_per_stage=1))

    assert sent(graph)["ep"] == 4 * (32 * 2 * 64 * 2) * 3 // 4


def test_ranks_that_share_experts_send_these_a_part_of_the_tokens_each() -> None:
    """Megatron-LM's dispatcher: all-to-all, all-gather; reduce-scatter, all-to-all; and backward.

    Of b s h w = 4,096 bytes, TP's ranks gather and scatter 5 times for attention and 4 times topk
    for experts, of which they send a half.
    """
    sizes = replace(SMALL, experts=8, topk=2)
    split = Split(tp=2, dp=4, ep=4, layers_per_stage=1, sequence_parallel=True)
    graph = generate("x", sizes, split)

    assert sent(graph)["ep"] == 4 * 2 * 4096 // 2 * 3 // 4
    assert sent(graph)["tp"] == (5 + 4 * 2) * 4096 // 2
    assert traffic.tensor_bytes(sizes, split) == sent(graph)["tp"]
    all_to_all, gather = CalledCollective.ALL_TO_ALL, CalledCollective.ALL_GATHER
    assert [node.call for node in graph.ranks[0].nodes[:8]] == [
        *(gather, None, CalledCollective.REDUCE_SCATTER),
        *(all_to_all, gather, None, CalledCollective.REDUCE_SCATTER, all_to_all),
    ]


def test_a_rank_has_a_whole_head_of_keys_and_values() -> None:
    """Two heads of eight among four ranks, with 8 numbers each: each has one of them."""
    few = replace(SMALL, kv_heads=2)
    tokens = 32 // 2
    assert traffic.ring_bytes(few, Split(tp=4, cp=2)) == 2 * tokens * 8 * 2
    assert traffic.ring_bytes(few, Split(tp=2, cp=2)) == 2 * tokens * 8 * 2
    assert traffic.ring_bytes(few, Split(cp=2)) == 2 * tokens * 16 * 2


def test_experts_compute_for_some_tokens_while_others_are_on_their_way() -> None:
    """A layer's forward pass with tokens in two parts; the next layer waits for both.

    Attention is node 0. Both parts leave after it; each comes back after its own computation.
    """
    sizes = replace(SMALL, experts=4)
    split = Split(dp=4, ep=4, layers_per_stage=2, expert_parts=2)
    whole, parts = (
        generate("x", sizes, each).ranks[0].nodes
        for each in (replace(split, expert_parts=1), split)
    )

    assert [(node.call, node.after) for node in parts[:8]] == [
        (None, ()),
        (CalledCollective.ALL_TO_ALL, (0,)),
        (CalledCollective.ALL_TO_ALL, (0,)),
        (None, (1,)),
        (CalledCollective.ALL_TO_ALL, (3,)),
        (None, (2,)),
        (CalledCollective.ALL_TO_ALL, (5,)),
        (None, (4, 6)),
    ]
    for field in ("size_bytes", "duration_ps"):
        sums = [sum(getattr(node, field) for node in nodes) for nodes in (whole, parts)]
        assert sums[0] == sums[1]


@pytest.mark.parametrize(("zero", "times"), [(0, 2.0), (1, 2.0), (2, 2.0), (3, 3.0)])
def test_gradients_are_sent_twice_and_with_zero_3_three_times(zero: int, times: float) -> None:
    """2 (d - 1) / d params / (t p) w, and 1.5 as much with ZeRO-3."""
    split = Split(tp=2, pp=2, dp=4, micro_batches=3, zero=zero)

    own = SMALL.parameters // (2 * 2) * 2
    assert sent(generate("x", SMALL, split))["dp"] == times * own * 3 / 4


@pytest.mark.parametrize(("zero", "times"), [(0, 2), (1, 2), (2, 3 + 1), (3, 3 * 3)])
def test_without_a_pipeline_gradients_that_are_divided_are_sent_for_each_micro_batch(
    zero: int, times: int
) -> None:
    """DeepSpeed: "ZeRO stage >= 2 communicates during non gradient accumulation boundaries".

    Of three micro-batches each reduces its gradients, and with stage 3 gathers parameters twice.
    """
    graph = generate("x", SMALL, Split(dp=4, micro_batches=3, zero=zero))

    assert sent(graph)["dp"] == times * SMALL.parameters * 2 * 3 / 4


def test_experts_gradients_are_those_of_fewer_replicas() -> None:
    sizes = replace(SMALL, experts=4)
    graph = generate("x", sizes, Split(dp=4, ep=2, layers_per_stage=1))

    groups = {g.name.rstrip("0123456789"): len(g.ranks) for g in graph.groups}
    assert groups == {"ep": 2, "edp": 2, "dp": 4}
    assert sent(graph)["edp"] == 2 * (2 * sizes.ffn_parameters * 2) // 2


def test_chimera_reduces_gradients_between_its_two_pipelines() -> None:
    graph = generate("x", SMALL, Split(pp=4, micro_batches=4, schedule="chimera"))

    assert [g.ranks for g in graph.groups] == [(0, 3), (1, 2), (1, 2), (0, 3)]
    assert sent(graph)["dp"] == 2 * 2 * SMALL.parameters // 4 * 2 // 2


def test_parameters_are_those_of_the_models_names() -> None:
    billions = {name: each.sizes.parameters / 1e9 for name, each in PRESETS.items()}

    assert billions == pytest.approx({"gpt13b": 13, "llama70b": 70, "moe8x7b": 47}, rel=0.04)
    ranks = {name: each.split.ranks for name, each in PRESETS.items()}
    assert ranks == {"gpt13b": 128, "llama70b": 512, "moe8x7b": 64}


def test_a_layer_takes_24_b_s_h_squared_and_more_for_long_sequences() -> None:
    """Megatron's count: 24 b s h^2 (1 + s / (6 h)) operations per layer, forward."""
    split = Split(flops=1e12)
    h, s = GPT3.hidden, GPT3.sequence

    wanted_ps = 24 * s * h * h * (1 + s / (6 * h))
    found_ps = traffic.attention_ps(GPT3, split) + traffic.ffn_ps(GPT3, split)
    assert found_ps == pytest.approx(wanted_ps, rel=1e-9)


@pytest.mark.parametrize(("schedule", "chunks", "share"), [("gpipe", 1, 0.375), ("1f1b", 1, 0.375),
                                                           ("interleaved", 2, 0.1875)])  # fmt: skip
def test_bubbles_of_whole_models_are_those_of_the_papers(
    schedule: str, chunks: int, share: float
) -> None:
    split = Split(pp=4, micro_batches=8, schedule=schedule, chunks=chunks)
    graph = generate("x", SMALL, split)

    replay = play(match(graph))

    busy = sum(node.duration_ps for node in graph.ranks[0].nodes)
    assert max(t.end_ps for ranks in replay.times for t in ranks) == busy * (1 + share)


splits = st.builds(
    Split,
    tp=st.sampled_from((1, 2)),
    pp=st.just(2),
    dp=st.sampled_from((1, 2, 4)),
    ep=st.sampled_from((1, 2)),
    expert_parts=st.sampled_from((1, 2, 3)),
    cp=st.sampled_from((1, 2)),
    micro_batches=st.sampled_from((2, 4)),
    schedule=st.sampled_from(("gpipe", "1f1b", "interleaved", "chimera")),
    chunks=st.sampled_from((1, 2)),
    zero=st.integers(0, 3),
    sequence_parallel=st.booleans(),
    scatter_gather=st.booleans(),
)


def can_be_divided(sizes: TransformerSizes, split: Split) -> bool:
    try:
        check(sizes, split, "")
    except ConfigError:
        return False
    return True


@given(splits, st.sampled_from((0, 4)))
def test_all_that_is_allowed_meets_and_ends(split: Split, experts: int) -> None:
    sizes = replace(SMALL, experts=experts)
    if not can_be_divided(sizes, split):
        return
    graph = generate("x", sizes, split)

    play(match(graph), lambda meeting: 10)


@given(splits, st.sampled_from((0, 4)))
def test_each_rank_has_the_nodes_that_it_would_have_alone(split: Split, experts: int) -> None:
    sizes = replace(SMALL, experts=experts)
    if not can_be_divided(sizes, split):
        return
    graph = generate("x", sizes, split)
    order = SCHEDULES[split.schedule](split.pp, split.micro_batches, split.chunks)
    for at, work in zip(RankLayout(sizes, split).places, graph.ranks, strict=True):
        alone = RankLayout(sizes, split)
        alone.places = [at]
        assert generate_for("x", sizes, split, alone, order).ranks == (work,)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"pp": 3}, "layers: must be a multiple of pp times chunks, 3, got 8"),
        ({"tp": 16}, "heads: must be a multiple of tp, 16, got 8"),
        ({"cp": 5}, "sequence: must be a multiple of cp times tp, 5, got 32"),
        ({"dp": 4, "ep": 3}, "dp: must be a multiple of ep, 3, got 4"),
        ({"dp": 2, "ep": 2}, "ep: needs a model with experts, got 2 and none"),
        ({"expert_parts": 2}, "expert_parts: needs a model with experts, got 2 and none"),
        ({"dp": 5000}, "must have 1 to 4096 ranks, got 5000"),
        ({"pp": 4, "layers_per_stage": 3}, "layers_per_stage: a stage has 2 layers, got 3"),
        ({"pp": 2, "schedule": "chimera", "micro_batches": 2, "zero": 3}, "zero: stage 3 goes"),
    ],
)
def test_what_can_t_be_divided_is_refused(change: dict[str, int], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        generate("x", SMALL, replace(Split(), **change))  # type: ignore[arg-type]


def test_heads_of_keys_and_values_are_dealt_evenly() -> None:
    """As in Megatron-LM, ranks have as many of them, or as many ranks have each."""
    sizes = replace(SMALL, heads=24, hidden=96, kv_heads=6)
    check(sizes, Split(tp=2), "")
    with pytest.raises(ConfigError, match="kv_heads: must be a multiple of tp, 4, or a divisor"):
        check(sizes, Split(tp=4), "")
