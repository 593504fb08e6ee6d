"""Topology files: what every format keeps, and how broken files are refused."""

from __future__ import annotations

from pathlib import Path

import networkx as nx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from topology_specs import ANY_SPEC, SPECS

from ringleaf.topologies.files.export import rows_of
from ringleaf.topologies.files.format import FORMATS
from ringleaf.topologies.graph import directions, hosts, kind, switches
from ringleaf.topologies.registry import build, count
from ringleaf.topologies.routing import longest_rtt_ps

EXAMPLES = Path("examples/topologies")
ALL = tuple(FORMATS)
RATES = ("", ",rate=50G,delay=2us", ",host_rate=25G,host_delay=300ns")


def write(graph: nx.Graph[str], name: str, folder: Path) -> Path:
    form = FORMATS[name]
    path = folder / f"net{form.endings[0]}"
    path.write_text(form.write(rows_of(graph)))
    return path


def facts(graph: nx.Graph[str]) -> dict[str, object]:
    """Return all of a topology that results depend on."""
    return {
        "nodes": sorted(graph),
        "ports": {frozenset((a, b)): data["ports"] for a, b, data in graph.edges(data=True)},
        "links": {(a, b): sent for a, b, sent in directions(graph)},
        "tiers": {name: graph.nodes[name]["tier"] for name in switches(graph)},
        "kinds": {name: kind(graph, name) for name in graph},
        "order": list(graph.edges),
        **{name: graph.graph[name] for name in ("hierarchy", "routing", "servers")},
        "shape": graph.graph.get("shape"),
    }


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(ANY_SPEC, st.sampled_from(RATES), st.sampled_from(ALL))
def test_a_file_keeps_all_of_a_family(tmp_path: Path, spec: str, rates: str, name: str) -> None:
    graph = build(spec + rates)
    if len(hosts(graph)) < 2:
        return
    path = write(graph, name, tmp_path)
    again = build(str(path))
    assert facts(again) == facts(graph)
    assert count(str(path)) == count(spec + rates)


@pytest.mark.parametrize("spec", SPECS)
def test_the_longest_round_trip_of_a_file_is_the_familys(tmp_path: Path, spec: str) -> None:
    graph = build(spec)
    if len(hosts(graph)) < 2:
        return
    again = build(str(write(graph, "graphml", tmp_path)))
    assert longest_rtt_ps(again, 4096) == longest_rtt_ps(graph, 4096)
