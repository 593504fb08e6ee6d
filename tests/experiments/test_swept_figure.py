"""The figure of a sweep: ways to run can be told apart, and values stand where they belong."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest
from drawn import collisions
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ringleaf.experiments.figures import sorting, swept
from ringleaf.experiments.figures.style import matplotlib_style

Line = dict[str, object]
ORDERS = ("fifo", "p3", "bytescheduler", "tensorexpress")


def job(number: int, order: str, jct_ms: float, **other: object) -> Line:
    line = {"jobs": "2", "algo": "ps", "scheduler": order, "entries": "", "job": str(number)}
    about = {"model": "resnet50", "ranks": "4", "virtual_jct_ps": ""}
    return {"rate": "20G", **line, **about, "jct_ps": str(int(jct_ms * 1e9)), **other}


def pair(order: str, jct_ms: float, **other: object) -> list[Line]:
    """Return the rows of two jobs beside each other, of which the first is the slower one."""
    return [job(1, order, jct_ms, **other), job(2, order, jct_ms / 2, **other)]


def drawn(lines: Sequence[Line], names: Sequence[str]) -> Figure:
    with matplotlib_style():
        figure = swept.make(lines, names)
        assert collisions(figure) == []
        plt.close(figure)
    return figure


def points(line: Line2D) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in np.asarray(line.get_xydata())]


def legend(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_each_scheduler_has_a_line_of_its_own_colour_over_ascending_rates() -> None:
    rates = {"20G": 3.0, "10G": 5.0, "100G": 1.0}
    lines = [
        line
        for (rate, ms), (place, order) in product(rates.items(), enumerate(ORDERS))
        for line in pair(order, ms + place / 10, rate=rate)
    ]

    figure = drawn(lines, ["rate"])

    (axes,) = figure.axes
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["10G", "20G", "100G"]
    assert legend(figure) == list(ORDERS)
    assert len({line.get_color() for line in axes.lines}) == len(ORDERS)
    assert points(axes.lines[0]) == [(0, 5.0), (1, 3.0), (2, 1.0)]  # of the slower job, in ms
    assert axes.get_ylabel() == "simulated time\nof the slowest job (ms)"


@pytest.mark.parametrize(
    ("virtual", "clock"),
    [("5", "wall-clock"), ("", "simulated or wall-clock")],
)
def test_an_axis_names_the_clocks_of_all_runs(virtual: str, clock: str) -> None:
    """Live jobs have a prediction in virtual time."""
    one = pair("fifo", 2.0, net="one", virtual_jct_ps=virtual)
    live = pair("fifo", 3.0, net="mininet", virtual_jct_ps="5")
    (axes,) = drawn([*one, *live], ["net"]).axes
    assert axes.get_ylabel() == f"{clock} time\nof the slowest job (ms)"

    about = {"count": "1", "dtype": "int32", "redop": "sum", "algo": "ring", "size_bytes": "4"}
    clocks = ["wall-clock" if virtual else "simulated", "wall-clock"]
    lines = [about | {"net": str(at), "clock": clock} for at, clock in enumerate(clocks)]
    text = swept._Sheet([line | {"time_ps": "5000000"} for line in lines]).text
    assert text == f"{clock} time (µs)"


@pytest.mark.parametrize("count", [3, 4, 6])
def test_long_names_of_values_do_not_cover_one_another(count: int) -> None:
    faults = [f"s0-s{number} down at 2us for 5us, h1-s0 loss 1%" for number in range(count)]
    cases = product(("1us", "9us"), faults)
    lines = [
        line
        for reroute, fault in cases
        for line in pair("fifo", 1.0, reroute=reroute, faults=fault)
    ]

    figure = drawn(lines, ["faults", "reroute"])

    shown = [tick.get_text().replace("\n", " ") for tick in figure.axes[0].get_xticklabels()]
    assert shown == faults


def test_panels_share_the_values_of_their_axis() -> None:
    """With values of its own, a panel's first value would stand under another panel's label."""
    cases = [("a", "10G"), ("a", "40G"), ("b", "40G"), ("b", "20G")]
    lines = [line for topo, rate in cases for line in pair("fifo", 1.0, topo=topo, rate=rate)]

    figure = drawn(lines, ["topo", "rate"])

    first, second = figure.axes
    places = [[x for x, _ in points(axes.lines[0])] for axes in (first, second)]
    assert places == [[0, 2], [1, 2]]
    assert [tick.get_text() for tick in second.get_xticklabels()] == ["10G", "20G", "40G"]


def test_runs_that_vary_one_option_after_the_other_have_a_row_each() -> None:
    usual = {"topo": "leafspine,leaves=2,spines=1,hosts=5", "rate": "20G", "queue": "", "mtu": 4096}
    unlike: list[Line] = [
        {}, {"rate": "10G"}, {"queue": "32K"}, {"mtu": 256}, {"model": "vgg16", "rate": "100G"},
        {"topo": "leafspine,leaves=2,spines=1,hosts=10", "model": "gpt2"},
    ]  # fmt: skip
    lines = [
        line
        for place, other in enumerate(unlike)
        for order in ORDERS
        for line in pair(order, place + 1.0, **{**usual, **other})
    ]

    figure = drawn(lines, ["topo", "rate", "queue", "mtu", "jobs"])

    (axes,) = figure.axes
    assert [tick.get_text() for tick in axes.get_yticklabels()] == [
        "as usual", "rate 10G", "queue 32K", "mtu 256", "rate 100G, jobs 2 x vgg16 on 4",
        "topo leafspine,leaves=2,spines=1,hosts=10, jobs 2 x gpt2 on 4",
    ]  # fmt: skip
    assert legend(figure) == list(ORDERS)
    assert len({line.get_color() for line in axes.lines}) == len(ORDERS)
    assert all([x for x, _ in points(line)] == [1, 2, 3, 4, 5, 6] for line in axes.lines)
    (heading,) = (text.get_text() for text in figure.texts)
    assert "queue default" in heading
    assert "jobs 2 x resnet50 on 4" in heading.replace("\n", " ")


def test_collectives_keep_their_looks_in_a_sweep() -> None:
    lines: list[Line] = [
        {"algo": algo, "loss": loss, "size_bytes": 1024, "time_ps": 10**9, "clock": "simulated"}
        for algo in ("ring", "tree")
        for loss in ("1%", "0.1%")
    ]

    figure = drawn(lines, ["loss"])
    about = {"ranks": 8, "rate_bps": 10**10, "delay_ps": 10**6}
    [title] = drawn([about | line for line in lines], ["loss"]).texts
    [shorter] = drawn([about | line | {"delay_ps": k} for k, line in enumerate(lines)], []).texts

    assert title.get_text() == "8 ranks, 10 Gbit/s and 1 µs per link of hosts"
    assert shorter.get_text() == "8 ranks"
    assert legend(figure) == ["ring", "tree"]
    assert figure.axes[0].get_ylabel() == "simulated time (µs)"
    assert not figure.texts
    assert [tick.get_text() for tick in figure.axes[0].get_xticklabels()] == ["0.1%", "1%"]


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        (["20G", "100G", "1T"], [20e9, 100e9, 1e12]),
        (["1us", "100ns", "0"], [1e6, 1e5, 0]),
        (["0.1%", "0"], [0.001, 0]),
        (["4", "32"], [4, 32]),
        (["64KiB", "1MiB"], [65536, 1 << 20]),
        (["dctcp", "swift"], []),
        (["", "1%"], []),
    ],
)
def test_values_of_options_are_ordered_as_quantities(texts: list[str], found: list[float]) -> None:
    assert sorting.quantities(texts) == pytest.approx(found)


def test_jobs_are_named_only_if_more_than_their_number_differs() -> None:
    alike = [*pair("fifo", 1.0), *pair("p3", 1.0)]
    assert sorting.with_workloads(alike) == alike

    mixed = [*pair("fifo", 1.0), job(1, "fifo", 1.0), job(2, "fifo", 1.0, model="vgg16")]
    assert [line["jobs"] for line in sorting.with_workloads(mixed)] == [
        "2 x resnet50 on 4", "2 x resnet50 on 4", *["1 x resnet50 on 4 + 1 x vgg16 on 4"] * 2,
    ]  # fmt: skip
