"""Explanations of all kinds of runs: they add up, change nothing, and agree with other records."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from running import page, read_run

from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.errors import ConfigError
from ringleaf.experiments.explain.arrows import diagram
from ringleaf.experiments.explain.findings import OTHER, Explained
from ringleaf.experiments.explain.log import LoggedNetwork
from ringleaf.experiments.figures.style import matplotlib_style
from ringleaf.experiments.records import results
from ringleaf.experiments.setup.network import build_topology, connect
from ringleaf.experiments.workloads.collective.experiment import CollectiveExperiment
from ringleaf.experiments.workloads.collective.explained_figures import (
    draw_time_space,
    draw_waterfalls,
)
from ringleaf.experiments.workloads.collective.kind import resolve
from ringleaf.experiments.workloads.collective.results import write_explained
from ringleaf.networks.options import NetworkOptions
from ringleaf.networks.outcome import RECEIVE
from ringleaf.topologies.graph import hosts, switches

CASES = [
    {"algo": "ring,tree,doubletree,switchml,atp"},
    {"algo": "ring,allpairs,switchml", "loss": "0.5%"},
    {"algo": "halvingdoubling", "routes": "ecmp", "switch_delay": "300ns", "host_delay": "1us"},
    {"algo": "ring", "reorder": "2%", "duplicate": "2%"},
    {"algo": "allpairs", "cc": "dcqcn", "message_overhead": "200ns"},
    {"algo": "alltoall-bruck,alltoall-2d"},
]


@pytest.mark.parametrize("given", CASES, ids=str)
def test_parts_add_up_and_the_time_is_that_without_an_explanation(given: dict[str, str]) -> None:
    given = {"topo": "fattree,k=4", "hosts": "8", "size": "64K", **given}
    plain = [each.row for each in CollectiveExperiment(resolve(given)).run(connect)]
    found = list(CollectiveExperiment(resolve({**given, "explain": "yes"})).run(connect))

    assert [each.row for each in found] == plain
    for each in found:
        why = each.explained
        assert why is not None
        assert why.time_ps == each.row.time_ps
        assert sum(why.spent_ps.values()) == each.row.time_ps
        assert sum(why.lost_ps.values()) == each.row.time_ps - each.row.bound_ps
        assert min(why.lost_ps.values()) >= 0
        assert 0 <= why.headers_ps <= why.spent_ps["line"] + why.spent_ps["slow"]
        if not {"loss", "reorder"} & given.keys():
            assert why.lost_ps[OTHER] == why.spent_ps["resends"] == 0
        assert Explained.read(why.plain()) == why


def test_arrows_are_the_messages_that_executors_hear_of() -> None:
    graph = build_topology("fattree,k=4", rate_bps=10**11, delay_ps=10**6, hosts=None)
    network = LoggedNetwork(graph, NetworkOptions(watch_messages=10_000, loss=0.002), seed=3)
    schedule = ALGORITHMS["ring"].build(16, size_bytes=262_144)
    outcome = network.run(schedule, [np.zeros(65_536, np.float32) for _ in range(16)])
    network.close()

    names = [*switches(graph), *hosts(graph)]
    found = diagram(network.packets(), names, (), in_network=False)

    heard = Counter(
        (note.peer, note.node, note.end_ps) for note in outcome.notes if note.kind == RECEIVE
    )
    drawn = Counter((arrow.src, arrow.dst, arrow.there_ps[1]) for arrow in found.arrows)
    assert found.messages == len(schedule.columns) == len(found.arrows) == 480
    # A packet before the last one may come again, after it; the executor hears of both then.
    late = sum((drawn - heard).values())
    assert late <= sum(arrow.again for arrow in found.arrows)
    assert sum((drawn & heard).values()) > 400
    assert all(arrow.sent_ps[0] < arrow.there_ps[1] for arrow in found.arrows)
    assert 0 < sum(arrow.again for arrow in found.arrows) < 100


def test_reports_have_waterfalls_tables_and_diagrams(tmp_path: Path) -> None:
    given = {"topo": "leafspine,leaves=1,spines=0,hosts=4", "size": "16K", "explain": "yes"}
    experiment = CollectiveExperiment(resolve({**given, "algo": "ring,switchml"}))
    run = experiment.results
    for each in experiment.run(connect):
        assert each.explained is not None
        run.rows.append(each.row)
        run.explained[each.row.algo, each.row.size_bytes] = each.explained
        write_explained(tmp_path, each.explained)
    results.write_rows(tmp_path, run)

    again = read_run(tmp_path)
    assert again.explained == run.explained
    said = [line for line in again.foot() if "over its bound" in line]
    assert len(said) == 2
    with matplotlib_style():
        waterfalls = draw_waterfalls(list(run.explained.values()), "simulated")
        spaces = [draw_time_space(each, "simulated") for each in run.explained.values()]
    assert [len(axes.patches) for axes in waterfalls.axes] == [
        2 + sum(time_ps > 0 for time_ps in each.lost_ps.values()) for each in run.explained.values()
    ]
    assert [label.get_text() for label in spaces[0].axes[0].get_yticklabels()] == [
        "h0", "h1", "h2", "h3",
    ]  # fmt: skip
    text = page(again, {"timespace-ring": "<svg>"})
    assert "Why not the bound" in text
    assert text.count("<td>switchml</td><td>16 KiB</td>") == 3  # results, and both
    assert "Messages over time, ring" in text


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"net": "mininet"},
            "explain: needs the packets' times in virtual time, got net='mininet'",
        ),
        ({"skip": "1%"}, "explain: needs all packets, got skip=1.000%"),
    ],
)
def test_runs_without_all_packets_are_refused(given: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        resolve({"explain": "yes", "algo": "ring", **given})
