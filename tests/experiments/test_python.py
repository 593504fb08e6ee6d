"""Experiments from Python: results as objects, and topologies, schedules, tensors of one's own."""

from __future__ import annotations

import csv
import doctest
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import torch

import ringleaf
from ringleaf.collectives.algorithm import Algorithm
from ringleaf.collectives.cost import Cost
from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.collectives.schedule import Collective, Op, Schedule, Transfer
from ringleaf.errors import ConfigError
from ringleaf.experiments.runs import python
from ringleaf.experiments.workloads.collective.rows import (
    CollectiveRow,
)
from ringleaf.topologies.graph import Link, add_host, add_switch, connect, new_graph
from ringleaf.topologies.registry import TOPOLOGIES

MASKED = np.ma.masked_array(np.ones(4, np.float32), [True, False, False, False])
RACK = "leafspine,leaves=1,spines=1,hosts=3"


@pytest.fixture(autouse=True)
def registries() -> Iterator[None]:
    """Take out again what tests have given to the registries of this process."""
    yield
    ALGORITHMS.added.clear()
    TOPOLOGIES.added.clear()


def star(hosts: int, rate_bps: int) -> nx.Graph[str]:
    graph = new_graph("mine", (hosts,))
    add_switch(graph, 0, 0, "hub", (0, 1))
    for rank in range(hosts):
        add_host(graph, rank, (rank, 0))
        connect(graph, f"h{rank}", "s0", Link(rate_bps, 1_000_000))
    return graph


def chain(ranks: int) -> Schedule:
    """Sum along a line of ranks, and copy the sum back."""
    up = [Transfer(rank, rank, rank + 1, 0, Op.REDUCE) for rank in range(ranks - 1)]
    down = [
        Transfer(ranks - 1 + n, ranks - 1 - n, ranks - 2 - n, 0, Op.COPY) for n in range(ranks - 1)
    ]
    return Schedule(Collective.ALLREDUCE, "chain", ranks, 1, (*up, *down))


def time_ps(result: ringleaf.Result) -> int:
    [row] = result.rows
    assert isinstance(row, CollectiveRow)
    assert row.wrong == 0
    return row.time_ps


def test_the_docstring_does_what_it_says() -> None:
    assert doctest.testmod(python) == (0, 4)


def test_importing_ringleaf_imports_nothing_heavy() -> None:
    code = "import sys, ringleaf; print({'torch', 'numba', 'numpy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "set()\n"


def test_tensors_of_ones_own_are_summed_and_left_alone() -> None:
    given = [torch.arange(1000, dtype=torch.int32) * rank for rank in (1, 2, 3)]
    before = [tensor.clone() for tensor in given]

    result = ringleaf.run(
        topo=RACK, algo=["ring", "switchml"], tensors=(each for each in given), loss="1%"
    )

    assert set(result.tensors) == {("ring", 4000), ("switchml", 4000)}
    for tensors in result.tensors.values():
        assert all(torch.equal(tensor, before[0] * 6) for tensor in tensors)
    assert all(torch.equal(a, b) for a, b in zip(given, before, strict=True))


def test_a_graph_of_ones_own_keeps_its_rates() -> None:
    slow, fast = (
        time_ps(ringleaf.run(topo=star(3, rate), algo="ring", size="64K"))
        for rate in (10**9, 10**10)
    )
    assert slow > 5 * fast


def test_a_schedule_of_ones_own_is_run_and_judged() -> None:
    assert time_ps(ringleaf.run(topo=star(4, 10**10), algo=chain(4), size="4K")) > 0

    short = chain(4)
    wrong = Schedule(short.collective, "short", 4, 1, short.rows[:-1])  # rank 0 gets no sum
    assert ringleaf.run(topo=star(4, 10**10), algo=wrong, size="4K").wrong > 0

    with pytest.raises(ConfigError, match="chain is for 4 ranks and 0 servers, got 3 and 0"):
        ringleaf.run(topo=RACK, algo=chain(4), size="4K")


def load_0_1_0(folder: Path, *rows: dict[str, Any]) -> python.Result:
    """Load a folder of 0.1.0, whose summary has no kind, and whose rows have fewer columns."""
    names = "algo size_bytes count dtype redop time_ps algbw_gb_s busbw_gb_s bound_ps bound_percent"
    more = "floor_ps floor_percent wrong wire_bytes retransmissions drops lost packet_hops events"
    usual = dict.fromkeys(f"{names} {more}".split(), 1)
    summary = {"schema_version": 2, "complete": True, "wrong": 0}
    all_rows = [usual | row for row in rows]
    (folder / "summary.json").write_text(json.dumps(summary | {"rows": all_rows}))
    return ringleaf.load(folder)


def test_a_folder_of_0_1_0_is_loaded(tmp_path: Path) -> None:
    assert load_0_1_0(tmp_path, {"algo": "ring"}).fastest().algo == "ring"


def test_the_fastest_is_that_of_the_largest_size_that_all_have(tmp_path: Path) -> None:
    """A small size takes less time, an interrupted run has only some rows of the last one, and
    chain is wrong.
    """
    times_ps = {"tree": (10, 90, 150), "ring": (20, 40, None)}
    rows = [
        {"algo": algo, "size_bytes": size, "time_ps": time_ps, "wrong": 0}
        for algo, times in times_ps.items()
        for size, time_ps in zip((1, 2, 3), times, strict=True)
        if time_ps is not None
    ]
    rows.append({"algo": "chain", "size_bytes": 2, "time_ps": 30, "wrong": 7})
    best = load_0_1_0(tmp_path, *rows).fastest()
    assert (best.algo, best.size_bytes) == ("ring", 2)


def test_a_sweep_has_runs_rows_and_a_figure(tmp_path: Path) -> None:
    result = ringleaf.sweep(
        topo=[RACK, star(3, 10**11)], algo="ring", size="1K", loss=[0, 0.01], out=tmp_path
    )
    assert result.is_sweep
    assert (len(result.runs), len(result.rows), result.wrong) == (4, 4, 0)
    assert result.figure().path == tmp_path / "sweep.png"
    assert ringleaf.load(tmp_path).rows == result.rows
    with (tmp_path / "sweep.csv").open() as file:
        assert {row["loss"] for row in csv.DictReader(file)} == {"0", "0.01"}


def test_figures_and_report_are_drawn_when_asked_for(tmp_path: Path) -> None:
    result = ringleaf.run(topo=RACK, algo="ring", size=["1K", "4K"], out=tmp_path / "run")
    assert not (tmp_path / "run" / "report.html").exists()
    assert result.figure("busbw")._repr_png_().startswith(b"\x89PNG")
    assert {"time", "busbw", "links"} <= set(result.figures)
    assert "<h1>" in result.report().read_text()
    with pytest.raises(ConfigError, match=r"figure: unknown name, got 'tiem'; valid: .*time"):
        result.figure("tiem")


def test_another_process_draws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So matplotlib's backend here, and all that is set of it, stay the caller's."""
    result = ringleaf.run(topo=RACK, algo="ring", size="1K", out=tmp_path)
    monkeypatch.setattr("ringleaf.experiments.runs.drawing.redraw", None)
    assert result.report().is_file()


def test_a_result_nobody_asked_to_keep_is_removed() -> None:
    result = ringleaf.run(topo=RACK, algo="ring", size="1K")
    folder = result.folder
    assert folder.exists()
    del result
    assert not folder.exists()


def test_runs_and_figures_keep_what_they_need() -> None:
    """Nobody holds the sweep, or the run, whose folder they are in."""
    options: dict[str, Any] = {"topo": RACK, "algo": "ring", "size": "1K"}
    runs = ringleaf.sweep(**options, seed=(1, 2)).runs
    assert [row.wrong for run in runs for row in run.rows] == [0, 0]
    figure = ringleaf.run(**options).figure()
    assert figure._repr_png_().startswith(b"\x89PNG")


@pytest.mark.parametrize("dtype", [np.int32, np.dtype("int32"), torch.int32])
def test_types_of_elements_may_be_numpys_or_pytorchs(dtype: Any) -> None:
    result = ringleaf.run(topo=RACK, algo="ring", size=1024, dtype=dtype)
    assert result.rows[-1].dtype == "int32"
    with pytest.raises(ConfigError, match="dtype: unknown element type, got 'float64'"):
        ringleaf.run(topo=RACK, algo="ring", size=1024, dtype=np.float64)


def test_several_values_may_be_in_an_array_a_range_or_a_generator() -> None:
    options: dict[str, Any] = {"topo": RACK, "algo": np.array(["ring", "tree"])}
    for sizes in (2 ** np.arange(10, 12), range(1024, 2049, 1024), (1024 << n for n in range(2))):
        rows = ringleaf.run(**options, size=sizes).rows
        assert [(row.algo, row.size_bytes) for row in rows] == [
            ("ring", 1024),
            ("tree", 1024),
            ("ring", 2048),
            ("tree", 2048),
        ]
    assert (
        len(ringleaf.sweep(**options, size=np.int64(1024), loss=np.linspace(0, 0.5, 2)).runs) == 2
    )
    options = {"topo": iter([RACK]), "algo": (name for name in ("ring", "tree"))}
    assert len(ringleaf.sweep(**options, size=1024, seed=range(1, 3)).rows) == 4


def test_numbers_and_paths_in_jobs_may_be_of_any_library(tmp_path: Path) -> None:
    jobs = [{"model": "resnet50", "ranks": np.int64(2), "iterations": np.int32(1)}]
    [row] = ringleaf.run(topo=RACK, algo="ring", size=np.float64(0.01), jobs=jobs).rows
    assert (row.ranks, row.iterations) == (2, 1)
    flows = tmp_path / "flows.csv"
    flows.write_text("source,target,size,start\n0,1,64KiB,0\n")
    [row] = ringleaf.run(topo=RACK, workload=flows).rows
    assert row.size_bytes == 65536


def test_a_folder_without_rows_says_so(tmp_path: Path) -> None:
    ringleaf.run(topo=RACK, algo="ring", size="1K", out=tmp_path / "run")
    (tmp_path / "run" / "results.csv").write_text("")
    with pytest.raises(ConfigError, match=r"frame: can't read, got .*results.csv"):
        ringleaf.load(tmp_path / "run").frame()
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    (tmp_path / "run" / "summary.json").write_text(json.dumps(summary | {"rows": []}))
    with pytest.raises(ConfigError, match="fastest: nothing was measured"):
        ringleaf.load(tmp_path / "run").fastest()


def test_a_result_never_has_the_rows_of_a_later_run(tmp_path: Path) -> None:
    options: dict[str, Any] = {"topo": RACK, "algo": "ring", "out": tmp_path / "run"}
    older = ringleaf.run(**options, size=1024)
    later = ringleaf.run(**options, size=2048)

    assert [row.size_bytes for row in later.rows] == [2048]
    with pytest.raises(ConfigError, match="result: its folder has later results by now, got"):
        _ = older.rows


def test_tensors_that_are_given_as_data_are_told_the_right_option() -> None:
    with pytest.raises(ConfigError, match=r"data: must say which .*; give your own by tensors="):
        ringleaf.run(topo=RACK, algo="ring", data=[torch.ones(4)] * 3)


def test_results_may_be_in_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    options: dict[str, Any] = {"topo": RACK, "algo": "ring", "size": "1K"}
    assert ringleaf.run(**options, out="~/run").folder == tmp_path / "run"
    ringleaf.sweep(**options, seed=[1, 2], out="~/runs")
    names = ("~/run", "~/run/results.csv", "~/runs", "~/runs/sweep.csv")
    assert [len(ringleaf.load(name).rows) for name in names] == [1, 1, 2, 2]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run", "runs"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": []}, r"loss: must have a value, got \[\]; leave it out"),
        ({"size": []}, r"size: must have a value, got \[\]"),
        ({"size": {4096}}, r"size: a set has no order, got \{4096\}; make it a list"),
        ({"algo": {"ring"}}, r"algo: a set has no order, got \{'ring'\}; make it a list"),
        ({"out": ["a"]}, r"out: must be a folder's name, got \['a'\]"),
        ({"tensors": [[1.0], [2.0]]}, r"tensors: must be PyTorch's or NumPy's, .* got \[1.0\]"),
        (
            {"loss": [0, "1%"]},
            "one value each, got several of loss, 2 combinations; ringleaf.sweep",
        ),
        ({"seed": b"1"}, "seed: must be text, got b'1'; decode it"),
        ({"seed": 10**5000}, "seed: a number has at most 100 digits, got more"),
        ({"out": "a\0b"}, r"out: a name has no zero in it, got 'a.x00b'"),
        ({"algo": Path("a,b.csv")}, "a file's name can have no comma, got 'a,b.csv'"),
        ({"tensors": 3}, "tensors: must be a list of one for each rank, got 3"),
        ({"tensors": torch.tensor(1.0)}, r"a list of one for each rank, got tensor\(1.\)"),
        ({"tensors": pd.Series([1.0, 2.0])}, "tensors: must be PyTorch's or NumPy's, .* got 1.0"),
        ({"tensors": [torch.zeros(4)] * 3, "hosts": 2}, "hosts: must be 3, a host for .* got '2'"),
        ({"tensors": [torch.zeros(4)] * 2, "servers": "x"}, "servers: must be a whole .* got 'x'"),
        ({"tensors": [MASKED] * 2}, "tensors: must have all elements, got a masked array"),
        ({"tensors": [torch.zeros(4)] * 2, "workload": "incast"}, "can't go with workload"),
        ({"topo": 7}, "topo must be a name, a family or a graph"),
        ({"tpoo": "fattree"}, "unknown option, got 'tpoo'; did you mean 'topo'"),
        ({"tensors": [torch.zeros(4), torch.zeros(5)]}, "must be of one type and shape"),
        ({"tensors": [torch.zeros(4, dtype=torch.float16)] * 2}, "must be of float32 or int32"),
        ({"tensors": [torch.zeros(4)] * 2, "size": "1K"}, "can't go with size"),
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ringleaf.run(**options)


def algorithm(name: str) -> Algorithm:
    return Algorithm(
        name,
        Collective.ALLREDUCE,
        name,
        lambda asked: chain(asked.ranks),
        lambda asked: Cost(0, 0, 4),
    )


def test_an_algorithm_of_ones_own_takes_the_place_of_no_other() -> None:
    """It would stay there: later runs that say `ring` would run it."""
    usual: dict[str, Any] = {"topo": RACK, "size": "1K"}
    for name, message in (
        ("ring", "algo: the name is taken, got 'ring'; rename yours"),
        ("my, own", "algo: names must be a word without , and /, got 'my, own'"),
    ):
        with pytest.raises(ConfigError, match=message):
            ringleaf.run(**usual, algo=algorithm(name))
    with pytest.raises(ConfigError, match="algo: names must differ, got 'mine' twice"):
        ringleaf.run(**usual, algo=[algorithm("mine"), algorithm("mine")])
    with pytest.raises(ConfigError, match="algo: names must differ, got 'chain-given' twice"):
        ringleaf.run(**usual, algo=[chain(3), chain(3)])
    for _ in range(2):  # a notebook's cell makes it anew
        assert ringleaf.run(**usual, algo=[algorithm("mine"), ALGORITHMS["ring"]]).wrong == 0


def test_graphs_that_are_none_of_ours_are_refused() -> None:
    gap = nx.relabel_nodes(star(3, 10**9), {"h2": "h7"})
    for graph, message in (
        (
            nx.complete_graph(4),
            "topo: a graph's nodes must have roles, got none of 0; make them by",
        ),
        (gap, "topo: nodes must be numbered from 0, got h0, h1, h7; make them by add_host"),
    ):
        with pytest.raises(ConfigError, match=message):
            ringleaf.run(topo=graph, algo="ring", size="1K")


@pytest.mark.parametrize("name", ["rate", "delay", "inject"])
@pytest.mark.parametrize("several", [False, True])
def test_options_of_links_are_refused_beside_a_graph(name: str, several: bool) -> None:
    """They would have no effect, among several topologies, too."""
    graph = star(3, 10**9)
    options: dict[str, Any] = {"topo": [RACK, graph] if several else graph, name: "1us"}
    with pytest.raises(ConfigError, match=f"{name}: links of a graph keep their own, got '1us'"):
        (ringleaf.sweep if several else ringleaf.run)(**options, algo="ring", size="1K")


def test_other_processes_know_names_only() -> None:
    with pytest.raises(ConfigError, match="topo: other processes know names only"):
        ringleaf.sweep(topo=star(3, 10**9), loss=[0, 0.1], parallel=2)


def test_folders_that_are_no_results_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"can't read its summary.json"):
        ringleaf.load(tmp_path)


def test_notebooks_show_tables() -> None:
    """Of a run its own, and of a sweep those of all runs, with their names."""
    alone = ringleaf.run(topo=RACK, algo=["ring", "tree"], size="4K")._repr_html_()
    assert re.findall(r"<td>(ring|tree)</td>", alone) == ["ring", "tree"]
    assert alone.count("<table>") == alone.count("</table>") == 1
    both = ringleaf.sweep(topo=RACK, algo="ring", size="4K", seed=[1, 2])._repr_html_()
    assert re.findall(r"<p>(.*?)</p><div|<td>(ring)</td>", both) == [
        *(("seed=1", ""), ("", "ring"), ("seed=2", ""), ("", "ring")),
    ]
