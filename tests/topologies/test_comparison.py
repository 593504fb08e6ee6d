"""Figures by which topologies compare, from the formulas of their papers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import networkx as nx
import pytest

from ringleaf.topologies import comparison
from ringleaf.topologies.comparison import TopologyFigures, figures_by_family, figures_of, table
from ringleaf.topologies.registry import TOPOLOGIES, build

G = 10**9


@pytest.mark.parametrize(
    ("text", "figures"),
    [
        # k^3/4 hosts, 5 k^2/4 switches, 3 k^3/4 links; 6 links from pod to pod
        ("fattree,k=4", TopologyFigures(16, 20, 48, 6, 800 * G, True)),
        (
            "fattree,k=8,edge=2,core=2",
            TopologyFigures(128, 32 + 16 + 4, 128 + 64 + 32, 6, 1600 * G, True),
        ),
        # n^(k+1) hosts, (k+1) n^k switches, (k+1) n^(k+1) links; k + 1 hops of two links
        ("bcube,n=4,k=1", TopologyFigures(16, 8, 32, 4, 800 * G, True)),
        # t hosts, t/n switches, t + k t/2 links; link, switch, link, link, switch, link: 2 + 1 + 2
        ("dcell,n=2,k=1", TopologyFigures(6, 3, 9, 4, 200 * G, True)),
        ("leafspine,leaves=1,spines=0,hosts=4", TopologyFigures(4, 1, 4, 2, 200 * G, True)),
        ("torus2d,x=4,y=4", TopologyFigures(16, 0, 32, 4, 800 * G, True)),
    ],
)
def test_figures_are_those_of_the_formulas(text: str, figures: TopologyFigures) -> None:
    found = figures_of(build(text))
    assert found == figures
    assert found.ports == 2 * figures.links


def test_a_table_has_a_line_for_each() -> None:
    named = [
        ("a,k=4", TopologyFigures(16, 20, 48, 6, 800 * G, True)),
        ("longer", TopologyFigures(5, 1, 40, 2, 100 * G, False)),
        ("huge", TopologyFigures(1000, 1, 1500, 2, None, False)),
    ]
    assert table(named) == [
        "topology  hosts  switches  links  diameter  ports  per host      bisection      per host",
        "a,k=4        16        20     48         6     96       6.0     800 Gbit/s    100 Gbit/s",
        "longer        5         1     40         2     80      16.0  <= 100 Gbit/s  <= 50 Gbit/s",
        "huge       1000         1   1500         2   3000       3.0              -             -",
    ]


def test_bisections_of_large_networks_are_not_sought(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "MOST_HOSTS", 15)
    assert figures_of(build("fattree,k=4")).bisection_bps is None


def test_each_family_has_figures_that_are_the_same_when_they_are_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    graphs = [build(family) for family in TOPOLOGIES]
    made = [(graph.name, figures_of(graph)) for graph in graphs]

    assert figures_by_family() == made
    monkeypatch.setattr(comparison, "build", None)
    assert figures_by_family() == made


def test_families_with_so_many_hosts_are_built_anew() -> None:
    assert dict(figures_by_family(20))["fattree,k=6"] == figures_of(build("fattree,k=6"))


def test_a_family_of_a_package_that_fails_is_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def generate(**sizes: object) -> nx.Graph[str]:
        raise ValueError(f"no network of {len(sizes)} sizes")

    failing = replace(TOPOLOGIES["leafspine"], generate=generate)
    monkeypatch.setattr("ringleaf.core.plugins._warned", set())
    monkeypatch.setitem(TOPOLOGIES.added, "alien", failing)
    names = [name.partition(",")[0] for name, _ in figures_by_family()]
    assert names == TOPOLOGIES.shipped()
    assert "ValueError: no network of" in capsys.readouterr().err
