"""The study of TensorExpress: its spec, a small case by hand, factors and verdicts."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import pytest

from ringleaf.core.units import PS_PER_MS
from ringleaf.errors import ConfigError
from ringleaf.experiments.figures.style import matplotlib_style
from ringleaf.experiments.runs.spec_file import read_cases
from ringleaf.experiments.workloads.jobs.kind import resolve_jobs
from ringleaf.experiments.workloads.jobs.results import Combination, JobsCase
from ringleaf.experiments.workloads.jobs.timeline import FORWARD, QUEUED, WIRE, JobSpan
from studies.tensorexpress import (
    BASES,
    MEASURES,
    OURS,
    SPEC,
    Condition,
    MeasuredCondition,
    draw,
    judge,
    latencies_ms,
    measure,
    ratios,
    table,
)

HERE = Condition(2, "small", 4, 20_000_000_000)
FASTER = Condition(2, "small", 4, 40_000_000_000)


def measured(at: Condition, scheduler: str, *times_ms: float) -> MeasuredCondition:
    return MeasuredCondition(at, scheduler, dict(zip(MEASURES, times_ms, strict=True)), 0)


FOUND = [
    measured(HERE, "fifo", 4.0, 2.5, 2.0, 2.0),
    measured(HERE, "bytescheduler", 3.0, 1.0, 1.0, 1.0),
    measured(HERE, OURS, 2.0, 1.0, 0.5, 0.1),
    measured(FASTER, "fifo", 2.0, 0.01, 0.5, 0.1),
    measured(FASTER, OURS, 2.0, 0.001, 0.5, 0.1),
]


def test_the_spec_has_what_its_abstract_says_and_one_condition_at_a_time() -> None:
    cases = [resolve_jobs(case) for case in read_cases(SPEC)]
    for case in cases:
        assert set(case.schedulers) >= {*BASES, "p3", OURS}
        assert (case.algos, case.program) == (("ps",), "tensorexpress")  # servers, and P4 switches
        assert case.placement == "spread"  # so that jobs meet in the network
    assert len({case.rate_bps for case in cases}) >= 5
    assert {job.model.name for case in cases for job in case.jobs} >= {"resnet50", "vgg16"}
    assert {count for case in cases for count in case.counts} == {1, 2, 4}
    assert {case.queue_bytes for case in cases} > {None}


SMALL = """\
topo: leafspine,leaves=2,spines=1,hosts=3
rate: 20G
delay: 100ns
cc: dctcp
program: tensorexpress
jobs:
  - {model: MODEL, ranks: 2, iterations: 4}
  - {model: MODEL, ranks: 2, iterations: 4}
algo: ps
scheduler: [fifo, tensorexpress]
servers: 1
"""
LAYERS, ELEMENTS, FORWARD_US, BACKWARD_US = 6, 25_000, 120, 60


def test_a_small_case_has_the_claimed_order(tmp_path: Path) -> None:
    """A layer's gradient, 100 kB from two ranks at 20 Gbit/s, keeps its server's line 80 us busy.

    All six take 480 us. With `fifo` the front one, which is ready five backward steps of 60 us
    after the first, is last: its forward pass is blocked for 180 us at least. With priorities, the
    front one goes first, and forward passes of 120 us hide the others.
    """
    layer = f"{{elements: {ELEMENTS}, forward: {FORWARD_US}us, backward: {BACKWARD_US}us}}"
    (tmp_path / "small.yaml").write_text(f"name: small\nlayers: [{', '.join([layer] * LAYERS)}]\n")
    spec = tmp_path / "spec.yaml"
    spec.write_text(SMALL.replace("MODEL", str(tmp_path / "small.yaml")))

    fifo, ours = measure(spec)

    line_ms = LAYERS * 2 * 4 * ELEMENTS * 8 / 20e9 * 1e3
    assert fifo.times_ms["blocked"] > line_ms - (LAYERS - 1) * BACKWARD_US / 1e3
    compute_ms = LAYERS * (FORWARD_US + BACKWARD_US) / 1e3
    assert compute_ms <= ours.times_ms["iteration"] < fifo.times_ms["iteration"]
    for name in ("blocked", "front"):
        assert 2.44 * ours.times_ms[name] < fifo.times_ms[name], name
    assert ours.times_ms["latency"] > fifo.times_ms["latency"]  # all layers have the same size
    assert not fifo.wrong + ours.wrong
    assert len(list(table([fifo, ours]))) == 4 + 2


def test_latency_is_from_ready_to_the_last_part_s_sum() -> None:
    def span(kind: str, layers: tuple[int, ...], start_ms: int, end_ms: int) -> JobSpan:
        return JobSpan(1, 1, kind, layers, start_ms * PS_PER_MS, end_ms * PS_PER_MS)

    spans = [
        span(FORWARD, (1,), 0, 90),
        span(QUEUED, (1,), 1, 3),  # layer 1 has two parts, the second shared with layer 2
        span(WIRE, (1,), 3, 5),
        span(WIRE, (1, 2), 5, 8),
    ]
    case = JobsCase(Combination(1, "ps", "fifo"), [], spans=spans)
    every_ms, front_ms = latencies_ms(case)
    assert every_ms == pytest.approx((7 + 3) / 2)
    assert front_ms == pytest.approx(7)


def test_factors_are_over_tensorexpress_and_none_where_little_is_blocked() -> None:
    over = ratios(FOUND)
    assert over[HERE]["fifo"] == {"iteration": 2, "blocked": 2.5, "latency": 4, "front": 20}
    assert over[FASTER]["fifo"]["blocked"] is None
    with pytest.raises(
        ConfigError, match="study: scheduler must have 'tensorexpress', got 'fifo' without it"
    ):
        ratios(FOUND[:2])


def test_verdicts_count_the_conditions_that_reach_the_published_factor() -> None:
    told = "under all conditions, of which"
    lines = [line[2:].replace("2 x small, 4 ranks, 20G", "first") for line in judge(FOUND)]
    assert lines == [
        f"latency, fifo over tensorexpress: direction: ours 4.00 (first), and 1.00 to 4.00 {told} "
        "1 of 2 reach it; published up to 2.5 (abstract)",
        "latency, bytescheduler over tensorexpress: direction: ours 2.00 (first), and 2.00 "
        f"to 2.00 {told} 0 of 1 reach it; published up to 2.5 (abstract)",
        f"blocked, fifo over tensorexpress: magnitude: ours 2.50 (first), and 2.50 to 2.50 {told} "
        "1 of 1 reach it; published up to 2.44 (abstract)",
        "blocked, bytescheduler over tensorexpress: none: ours 1.00 (first), and 1.00 "
        f"to 1.00 {told} 0 of 1 reach it; published up to 2.44 (abstract)",
    ]


def test_the_figure_has_a_panel_for_each_base_and_one_for_other_conditions() -> None:
    one = Condition(1, "small", 4, HERE.rate_bps, "mtu=256")
    more = [measured(one, scheduler, 2.0, 1.0, 1.0, 1.0) for scheduler in (*BASES, OURS)]
    found = [*FOUND[:3], *more]
    with matplotlib_style():
        figure = draw(found)
        assert len(figure.axes) == 3
        shown = [label.get_text() for label in figure.axes[2].get_yticklabels()]
        plt.close("all")
    assert shown == ["2 x small, 4 ranks, 20G", "1 job, mtu=256"]
