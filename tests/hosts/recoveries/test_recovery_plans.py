"""Plans, the order of their passes, and their graphs of work."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.errors import ScheduleError
from ringleaf.hosts.recoveries.common.interface import regular_plan
from ringleaf.hosts.recoveries.common.iteration import copy_graph, iteration_graph
from ringleaf.hosts.recoveries.common.passes import passes_of
from ringleaf.hosts.recoveries.common.plan import (
    LayerCopy,
    PipelineShape,
    Plan,
    Span,
    copies_for,
    deal,
    even_spans,
)
from ringleaf.hosts.workload.graph import NodeKind
from ringleaf.hosts.workload.llm.generate import generate
from ringleaf.hosts.workload.llm.pipeline import one_forward_one_backward
from ringleaf.hosts.workload.llm.sizes import Split, TransformerSizes
from ringleaf.hosts.workload.meetings import match

SIZES = TransformerSizes(layers=4, hidden=64, heads=4, kv_heads=4, ffn=256, sequence=64)


@given(pp=st.integers(1, 5), dp=st.integers(1, 3), micro=st.integers(1, 8))
def test_regular_pipelines_have_the_order_of_1f1b(pp: int, dp: int, micro: int) -> None:
    shape = PipelineShape(pp * 2, pp, dp, micro, 1)
    plan = regular_plan(shape, tuple(range(shape.workers)))
    plan.check(shape.layers)

    order = passes_of(plan, shape.workers, micro)

    usual = one_forward_one_backward(pp, micro)
    for worker, tasks in enumerate(order):
        replica, stage = worker % dp, worker // dp
        micros = [at for at, route in enumerate(plan.routes) if route[0] % dp == replica]
        want = [task._replace(micro=micros[task.micro]) for task in usual[stage]]
        assert tasks == want


def test_a_regular_plan_is_the_iteration_of_the_model() -> None:
    split = Split(tp=2, pp=2, dp=2, micro_batches=4)
    shape = PipelineShape(SIZES.layers, 2, 2, 4, 1)
    plan = regular_plan(shape, tuple(range(4)))

    ours = match(iteration_graph("a", SIZES, split, plan, 4))
    usual = match(generate("a", SIZES, split))

    for mine, theirs in zip(ours.graph.ranks, usual.graph.ranks, strict=True):
        assert [(n.kind, n.size_bytes, n.duration_ps, n.peer, n.after) for n in mine.nodes] == [
            (n.kind, n.size_bytes, n.duration_ps, n.peer, n.after) for n in theirs.nodes
        ]
    assert Counter((m.call, m.ranks, m.size_bytes) for m in ours.meetings) == Counter(
        (m.call, m.ranks, m.size_bytes) for m in usual.meetings
    )


def test_a_plan_that_leaves_layers_out_is_refused() -> None:
    plan = Plan({0: Span(0, 2), 1: Span(3, 4)}, ((0, 1),))
    with pytest.raises(ScheduleError, match="lead through all of 4, got 0-1, 3-3"):
        plan.check(4)


def test_copies_come_from_any_owner_left_and_are_spread() -> None:
    old = Plan({0: Span(0, 2), 1: Span(2, 4), 2: Span(0, 2), 3: Span(2, 4)}, ((0, 1), (2, 3)))
    new = Plan({1: Span(0, 4), 2: Span(0, 4)}, ((1,), (2,)))

    copies = copies_for(old, new, [1, 2, 3])

    assert copies == [LayerCopy(2, 1, (0, 1)), LayerCopy(1, 2, (2,)), LayerCopy(3, 2, (3,))]
    assert copies_for(old, new, [1, 3]) is None  # nobody has layers 0 and 1


@given(layers=st.integers(1, 60), count=st.integers(1, 20))
def test_even_spans_cover_all_layers(layers: int, count: int) -> None:
    spans = even_spans(layers, count)
    assert [layer for span in spans for layer in span.layers] == list(range(layers))
    sizes = [len(span.layers) for span in spans]
    assert max(sizes) - min(sizes) <= 1


@given(batch=st.integers(1, 12), costs=st.lists(st.integers(1, 5), min_size=1, max_size=3))
def test_dealing_ends_as_soon_as_any_other_would(batch: int, costs: list[int]) -> None:
    def every(left: int, pipelines: int) -> list[list[int]]:
        if pipelines == 1:
            return [[left]]
        return [[n, *more] for n in range(left + 1) for more in every(left - n, pipelines - 1)]

    counts = deal(batch, [float(each) for each in costs])

    def end(dealt: list[int]) -> int:
        return max(cost * count for cost, count in zip(costs, dealt, strict=True))

    assert sum(counts) == batch
    assert end(counts) == min(map(end, every(batch, len(costs))))


def test_copies_are_messages_between_ranks_that_are_alike() -> None:
    split = Split(tp=2, pp=2, dp=2, micro_batches=4)

    graph = copy_graph("c", split, [LayerCopy(2, 0, (0, 1))], 4, 1000)

    sends = [(r, n.peer, n.size_bytes) for r, n in graph.nodes() if n.kind is NodeKind.SEND]
    assert sends == [(4, 0, 1000), (5, 1, 1000)]  # 2 layers of 1000 bytes, shared by 2 ranks
    assert len(match(graph).meetings) == 2
