"""Figures of jobs: of a shape that fits a page, and with labels that can be read."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from drawn import collisions
from matplotlib.figure import Figure
from running import foot, page

from ringleaf.experiments.figures.style import matplotlib_style
from ringleaf.experiments.workloads.jobs import figures
from ringleaf.experiments.workloads.jobs.results import Combination, JobRow, JobsCase, JobsResults
from ringleaf.experiments.workloads.jobs.timeline import JobSpan
from ringleaf.hosts.schedulers.common.registry import SCHEDULERS


def make_case(combination: Combination) -> JobsCase:
    jobs, bins = combination.count, 40
    rows = [
        JobRow(
            jobs, combination.algo, combination.scheduler, combination.entries, job, "resnet50",
            3, 3,
            job * 10**9, 10**8, 10**8, 10**7, 10**6, 1000, 0, 0, 0, 0, 50.0, 20.0, 0, 0.0, 1.0, 10,
        )
        for job in range(1, jobs + 1)
    ]  # fmt: skip
    return JobsCase(
        combination, rows, bin_ps=10**8, link="s16→s12", queue="s16→s12", queue_bin_ps=10**8,
        link_series=np.full((jobs + 1, bins), 1000), link_rate_bps=10**10,
        queue_series=np.full((8, bins), 4096), memory_interval_ps=10**8, memory_switch="s16",
        memory_series=np.full((jobs + 1, bins), 8),
    )  # fmt: skip


def cases_of(
    count: int, algos: list[str], schedulers: list[str], entries: list[int]
) -> list[JobsCase]:
    return [
        make_case(Combination(count, algo, scheduler, entry))
        for algo in algos
        for scheduler in schedulers
        for entry in entries
    ]


ORDERS = ["fifo", "layers", "tensorexpress", "jpas"]
SHAPES = {
    "shared_fabric": cases_of(4, ["ring", "ps", "switchml", "atp"], ORDERS, [256]),
    "switch_memory": cases_of(4, ["switchml", "atp"], ["fifo"], [4, 16, 64, 256, 1024]),
    "one each": cases_of(2, ["ring", "ps", "switchml", "atp", "tree"], ["fifo"], [256]),
    "all schedulers": cases_of(4, ["ring"], list(SCHEDULERS), [256]),
    "alone": cases_of(1, ["ring"], ["fifo"], [256]),
}


@pytest.mark.parametrize(
    ("shape", "draw"),
    [
        ("shared_fabric", figures.draw_links),
        ("switch_memory", figures.draw_memory),
        ("one each", figures.draw_queues),
        ("all schedulers", figures.draw_links),
        ("alone", figures.draw_queues),
    ],
)
def test_figures_can_be_read(shape: str, draw: Callable[[list[JobsCase]], Figure]) -> None:
    cases = SHAPES[shape]

    with matplotlib_style():
        drawn = [
            figures.draw_bars(
                cases, "waiting for the front layers, per iteration", lambda r: r.jct_ps
            ),
            figures.draw_times(cases, "job completion time", lambda r: r.jct_ps * len(r.algo)),
            draw(cases),
        ]
        assert [collisions(figure) for figure in drawn] == [[]] * 3
        for figure in drawn:
            width, height = figure.get_size_inches()
            assert width <= 15
            assert height <= 1.5 * width
        plt.close("all")


def test_timelines_can_be_read() -> None:
    jobs = 4
    case = SHAPES["shared_fabric"][0]
    kinds = figures.SPAN_NAMES
    case.spans = [
        JobSpan(job, iteration, kind, (layer,), start_ps, start_ps + 10**9)
        for job in range(1, jobs + 1)
        for iteration in (1, 2)
        for layer in range(10 * job)
        for start_ps, kind in enumerate(kinds)
    ]

    with matplotlib_style():
        figure = figures.draw_timeline(case)
        assert collisions(figure) == []
        boxes = [len(each.get_paths()) for each in figure.axes[-1].collections]
        assert boxes.count(2 * 10 * jobs) == len(kinds)
        plt.close("all")


def test_axes_say_whose_time_it_is_and_in_which_unit() -> None:
    with matplotlib_style():
        figure = figures.draw_bars(SHAPES["alone"], "job completion time", lambda row: row.jct_ps)

    assert figure.axes[0].get_xlabel() == "simulated time (ms)"
    assert figure.axes[0].patches[0].get_width() == 1.0  # type: ignore[attr-defined]  # 10^9 ps


def make_live(case: JobsCase) -> JobsCase:
    """The case as live networks have it: without series, and with a prediction."""
    rows = [
        replace(row, virtual_jct_ps=10**9, memory_peak=None, memory_mean=None, late_ps=10**9)
        for row in case.rows
    ]
    return replace(
        case,
        rows=rows,
        spans=[JobSpan(1, 1, "forward", (0,), 0, 10**9)],
        link_series=None,
        queue_series=None,
        memory_series=None,
    )


def test_of_live_jobs_only_what_is_known_is_drawn_on_the_clock_s_time() -> None:
    cases = [make_live(case) for case in SHAPES["alone"]]
    results = results_of(cases, is_virtual=False)

    assert list(results.figures()) == ["jct", "wait", "timeline-1-ring-fifo-256"]
    with matplotlib_style():
        figure = figures.draw_bars(cases, "job completion time", lambda row: row.jct_ps)
        assert figure.axes[0].get_xlabel() == "wall-clock time (ms)"
        plt.close("all")
    assert page(results).count("<td>-</td>") == 2  # peak and mean of memory


def results_of(cases: Sequence[JobsCase], *, is_virtual: bool) -> JobsResults:
    results = JobsResults(about=["a training job"], is_virtual=is_virtual)
    for case in cases:
        results.add(case)
    return results


def test_the_table_of_live_jobs_has_the_time_in_virtual_time_beside() -> None:
    cases = [make_live(case) for case in SHAPES["alone"]]
    live, virtual = (results_of(cases, is_virtual=each) for each in (False, True))
    [row] = live.rows
    line = [each.text(row) for each in live.columns]

    assert line[7:9] == ["1.000", "1.000"]
    assert line[16:] == ["0", "-", "-", "0", "0"]
    assert len(virtual.columns) == len(line) - 1
    late = "hosts began 1.00 ms after the coordinator's decisions on average, 0.00 ms at most"
    assert any(late in each for each in foot(live))
