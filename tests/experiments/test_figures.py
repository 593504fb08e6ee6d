"""Figures of runs: what they are made of, and that they can be read."""

import re
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import matplotlib.pyplot as plt
import numpy as np
import pytest
from drawn import collisions
from running import page

from ringleaf.core.faults import parse_faults
from ringleaf.core.units import PS_PER_US
from ringleaf.experiments.figures.style import INK, matplotlib_style, themed
from ringleaf.experiments.records.slow_links import with_slow_links
from ringleaf.experiments.workloads.collective import figures, link_figures, table
from ringleaf.experiments.workloads.collective.figures import draw_busbw, draw_time
from ringleaf.experiments.workloads.collective.kind import resolve
from ringleaf.experiments.workloads.collective.link_figures import (
    _fold,
    _in_order,
    draw_links,
    draw_spread,
    utilisation,
)
from ringleaf.experiments.workloads.collective.results import (
    CollectiveResults,
)
from ringleaf.experiments.workloads.collective.rows import (
    CollectiveRow,
    LinkSeries,
)
from ringleaf.topologies import draw as topology
from ringleaf.topologies import registry
from ringleaf.topologies.kinds import link_kinds

TWELVE = (
    "ring", "tree", "doubletree", "halvingdoubling", "blueconnect", "ps",
    "switchml", "atp", "omnireduce", "ssar-double", "ssar-split", "dsar-split",
)  # fmt: skip


def make_run(topo: str, algos: tuple[str, ...], sizes: tuple[int, ...]) -> CollectiveResults:
    """Return a run with made-up times; algorithm number i sent i + 1 MB over its first link."""
    graph = registry.build(topo)
    links = tuple(link for edge in graph.edges for link in (edge, edge[::-1]))
    run = CollectiveResults(
        collective="allreduce", topology=graph.name, ranks=16, switches=20,
        injection_bps=[100 * 10**9] * 2, links=link_kinds(graph),
        options=resolve({"topo": topo}).plain(),
        versions={}, complete=True, about=[f"allreduce of 16 ranks on {topo}"],
    )  # fmt: skip
    for number, algo in enumerate(algos):
        for size in sizes:
            time_ps = (number + 3) * size * 100 + 20 * PS_PER_US
            algbw = size / time_ps * 1e3
            run.rows.append(
                CollectiveRow(
                    algo=algo, size_bytes=size, count=size // 4, dtype="float32", redop="sum",
                    time_ps=time_ps, algbw_gb_s=algbw, busbw_gb_s=algbw * 1.875,
                    bound_ps=int(time_ps * 0.8), bound_percent=80.0,
                    floor_ps=time_ps // 2, floor_percent=50.0, wrong=0, wire_bytes=size * 2,
                    retransmissions=0, drops=0, lost=0, packet_hops=1000, events=1000,
                )
            )  # fmt: skip
            carried = np.zeros((len(links), 4), np.int64)
            carried[0, 1] = (number + 1) * 10**6
            run.series[algo, size] = LinkSeries(100 * PS_PER_US, links, carried)
    return run


def draw_all(run: CollectiveResults, folder: Path) -> dict[str, str]:
    place = folder / "figures"
    place.mkdir()
    with matplotlib_style():
        return {name: draw(place / name) for name, draw in run.tasks(folder).items()}


def test_algorithms_are_compared_where_all_have_been_measured() -> None:
    """Ctrl-C came after two of three algorithms at the largest size."""
    run = make_run("fattree,k=4", ("ring", "tree", "switchml"), (1 << 10, 1 << 20))
    run.rows = sorted(run.rows, key=lambda row: row.size_bytes)[:5]
    assert [run.mark(row) for row in run.rows] == ["best", "", "", "", ""]
    text = "fastest at 1 KiB: ring; times as long: tree 1.01, switchml 1.01"
    assert table.fastest(run.rows) == text
    assert "fastest at 1 KiB" in next(iter(run.facts())).what


def test_wrong_results_are_never_the_fastest() -> None:
    run = make_run("fattree,k=4", ("ring", "tree", "switchml"), (1 << 10,))
    run.rows[0] = replace(run.rows[0], wrong=5)
    assert [run.mark(row) for row in run.rows] == ["wrong", "best", ""]
    assert table.fastest(run.rows) == "fastest at 1 KiB: tree; times as long: switchml 1.01"
    assert table.fastest(run.rows[:1]) == "fastest at 1 KiB: ring"


@pytest.mark.parametrize(
    ("topo", "groups"),
    [
        ("fattree,k=4", ["host → edge", "edge → agg", "agg → core"]),
        ("leafspine", ["host → leaf", "leaf → spine"]),
        ("hammingmesh", ["host → router", "router → column", "router → row"]),
        ("torus2d", ["host → router"]),
    ],
)
def test_links_are_grouped_upward_then_downward_each_kind_once(
    topo: str, groups: list[str]
) -> None:
    graph = registry.build(topo)
    links = [link for edge in graph.edges for link in (edge, edge[::-1])]

    order, of_link = _in_order(graph, links)
    found = [name for name, _ in groupby(of_link)]

    assert sorted(order) == list(range(len(links)))

    assert found[: len(groups)] == groups
    assert len(found) == len(set(found))
    assert found[-1] == " → ".join(reversed(groups[0].split(" → ")))


def test_utilisation_is_of_each_links_own_rate() -> None:
    graph = registry.build("leafspine,leaves=1,spines=1,hosts=2,host_rate=25G")
    links = (("h0", "s0"), ("s0", "s1"))
    size_bytes = np.array([[3125, 0], [12_500, 6250]])  # in 1 us at 25 and 100 Gbit/s

    busy = utilisation(LinkSeries(PS_PER_US, links, size_bytes), graph)

    assert busy.tolist() == [[1.0, 0.0], [1.0, 0.5]]


def test_utilisation_is_of_the_rate_that_faults_leave() -> None:
    slow = parse_faults("h0-s0 rate 10G at 1us", "faults")
    graph = with_slow_links(registry.build("leafspine,leaves=1,spines=1,hosts=2"), slow)
    series = LinkSeries(PS_PER_US, (("s0", "h0"), ("h1", "s0")), np.array([[12_500, 1250]] * 2))

    assert utilisation(series, graph).tolist() == [[1.0, 1.0], [1.0, 0.1]]
    row = cast("CollectiveRow", SimpleNamespace(time_ps=4 * PS_PER_US))
    assert link_figures.busy_percent(row, series, graph).tolist() == [50.0, 27.5]


def test_neighbours_of_a_kind_share_a_row_where_there_are_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(link_figures, "_MOST_ROWS", 3)

    shares, groups = _fold(np.array([[1.0], [0.0], [0.5], [0.3], [0.1]]), ["up"] * 3 + ["down"] * 2)

    assert groups == ["up", "up", "down"]
    assert shares.ravel().tolist() == pytest.approx([0.5, 0.5, 0.2])


def test_all_maps_of_a_run_have_one_scale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tops = []
    make_figure = topology.make_figure

    def spy(*args, **options):  # type: ignore[no-untyped-def]
        figure = make_figure(*args, **options)
        tops.append(figure.axes[1].get_ylim())
        return figure

    monkeypatch.setattr(topology, "make_figure", spy)
    monkeypatch.setattr(link_figures, "write_figure", lambda *_: None)
    run = make_run("leafspine,leaves=2,spines=1,hosts=1", ("ring", "tree", "switchml"), (1 << 22,))
    graph = registry.build(run.topology)

    svgs = [
        link_figures.draw_map(graph, *panel, tmp_path / "map")
        for panel in link_figures.largest(run)
    ]

    assert tops == [(0, 100)] * 3
    shades = [set(re.findall(r"stroke: var\((--c[0-9a-f]{6}),", svg)) for svg in svgs]
    assert len({max(shade) for shade in shades}) > 1  # 3, 4 and 5 % look different


def test_the_page_sets_each_colour_of_a_map(tmp_path: Path) -> None:
    run = make_run("leafspine,leaves=2,spines=1,hosts=1", ("ring", "tree"), (1 << 22,))

    svgs = draw_all(run, tmp_path)
    text = page(run, svgs)

    dark = text[text.rindex("prefers-color-scheme: dark") :]
    used = set(re.findall(r"var\((--c[0-9a-f]{6}),", text))
    assert used
    assert all(f"{name}:#" in dark for name in used)
    maps = "".join(svg for name, svg in svgs.items() if name.startswith(link_figures.MAP))
    assert maps.count("<svg") == 2
    assert "data:image" not in maps
    white = re.findall(r"(?:fill|stroke): #f+\b", maps)
    assert white == []
    assert sorted(path.name for path in (tmp_path / "figures").glob("*.png")) == [
        "busbw.png", "links.png", "time.png", "utilisation-ring.png", "utilisation-tree.png",
    ]  # fmt: skip


def test_ink_is_the_pages_and_other_colours_are_variables() -> None:
    svg = f'<path style="stroke: {INK}; fill: #f6c65b"/><path style="fill: #123456"/>'

    assert themed(svg, {INK: "currentColor", "#f6c65b": "#5c3a1e"}) == (
        '<path style="stroke: currentColor; fill: var(--cf6c65b,#f6c65b)"/>'
        '<path style="fill: #123456"/>'
    )


def test_a_large_topology_has_one_figure_by_kind_of_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link_figures, "MOST_LINKS", 2)
    monkeypatch.setattr(figures, "save", lambda _, stem: stem.name)
    run = make_run("leafspine,leaves=2,spines=1,hosts=1", ("ring",), (1 << 22,))

    assert sorted(draw_all(run, tmp_path)) == ["busbw", "links", "time", "utilisation"]
    assert list((tmp_path / "figures").iterdir()) == []


@pytest.mark.parametrize(
    ("algos", "sizes"),
    [
        (TWELVE, (1 << 22,)),
        (TWELVE[:1], (1 << 22,)),
        (TWELVE, tuple(1 << power for power in range(10, 26))),
    ],
)
def test_no_text_of_a_figure_lies_on_another(
    algos: tuple[str, ...], sizes: tuple[int, ...]
) -> None:
    run = make_run("fattree,k=4", algos, sizes)
    graph = registry.build(run.topology)
    panels = link_figures.largest(run)

    with matplotlib_style():
        drawn = [draw_time(run), draw_busbw(run)]
        if len(sizes) == 1:
            drawn += [draw_links(run, graph, panels), draw_spread(run, graph, panels)]
        assert [collisions(figure) for figure in drawn] == [[]] * len(drawn)
        plt.close("all")


def test_one_size_gives_a_bar_per_algorithm() -> None:
    run = make_run("fattree,k=4", TWELVE, (1 << 22,))

    with matplotlib_style():
        axes = draw_time(run).axes[0]

    widths = [patch.get_width() for patch in axes.patches]  # type: ignore[attr-defined]
    assert widths == [row.time_ps / PS_PER_US for row in run.rows]
    assert [label.get_text() for label in axes.get_yticklabels()] == list(TWELVE)


def test_a_floor_is_drawn_once_for_all_in_which_the_same_add() -> None:
    """Both algorithms' hosts add, at two sizes; then one's floor is lower, as switches add."""
    run = make_run("fattree,k=4", ("ring", "tree"), (1024, 4096))
    run.rows = [replace(row, floor_ps=1000 * row.size_bytes) for row in run.rows]

    assert _floors(run) == {"floor of any": [1.024, 4.096]}

    run.rows = [
        replace(row, floor_ps=row.floor_ps // (1 + (row.algo == "tree"))) for row in run.rows
    ]
    assert _floors(run) == {
        "floor if hosts add": [1.024, 4.096],
        "floor if switches do": [0.512, 2.048],
    }


def _floors(run: CollectiveResults) -> dict[str, list[float]]:
    lines = draw_time(run).axes[0].get_lines()
    found = {str(line.get_label()): np.asarray(line.get_ydata()).tolist() for line in lines}
    return {name: values for name, values in found.items() if name.startswith("floor")}
