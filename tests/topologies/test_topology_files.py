"""Topology files: what every format keeps, and how broken files are refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import networkx as nx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from topology_specs import ANY_SPEC, SPECS

from ringleaf.topologies.files.export import rows_of
from ringleaf.topologies.files.format import FORMATS, written
from ringleaf.topologies.graph import (
    Link,
    directions,
    hosts,
    index,
    join_server,
    kind,
    link,
    switches,
)
from ringleaf.topologies.registry import build, count
from ringleaf.topologies.routing import dealt, longest_rtt_ps, routes
from ringleaf.topologies.trees import aggregation_tree

EXAMPLES = Path("examples/topologies")
ALL = tuple(written())
RATES = ("", ",rate=50G,delay=2us", ",host_rate=25G,host_delay=300ns")


def write(graph: nx.Graph[str], name: str, folder: Path) -> Path:
    form = FORMATS[name]
    assert form.write is not None
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
        **{name: graph.graph.get(name) for name in ("shape", "grid", "in_grid")},
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
    assert count(str(path)) == replace(count(spec + rates), rack=None)  # files don't tell racks


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("spec", [spec for spec in SPECS if "node=" in spec])
def test_a_file_keeps_machines_and_how_they_are_dealt_ports(
    tmp_path: Path, spec: str, name: str
) -> None:
    graph = build(spec)
    again = build(str(write(graph, name, tmp_path)))
    assert facts(again) == facts(graph)
    assert again.graph["machine"] == graph.graph["machine"]
    first, second = (dealt(each, routes(each)) for each in (graph, again))
    assert all(dict(first[switch]) == dict(second[switch]) for switch in switches(graph))


@pytest.mark.parametrize("spec", SPECS)
def test_the_longest_round_trip_of_a_file_is_the_familys(tmp_path: Path, spec: str) -> None:
    graph = build(spec)
    if len(hosts(graph)) < 2:
        return
    again = build(str(write(graph, "graphml", tmp_path)))
    assert longest_rtt_ps(again, 4096) == longest_rtt_ps(graph, 4096)


def read(folder: Path, text: str, name: str = "net.edges") -> nx.Graph[str]:
    path = folder / name
    path.write_text(text)
    return build(str(path))


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), name=st.sampled_from(ALL))
def test_every_format_keeps_each_direction_of_each_link(
    tmp_path: Path, data: st.DataObject, name: str
) -> None:
    graph = build(data.draw(st.sampled_from(["leafspine,leaves=2,spines=2,hosts=2", "bcube,n=2"])))
    ways = st.builds(
        Link,
        st.integers(1, 10**12),
        st.integers(0, 10**9),
        st.none() | st.floats(0, 0.9),
        st.none() | st.integers(16 << 10, 1 << 30),
    )
    for a, b in graph.edges:
        if not (graph.graph["servers"] and {f"h{index(a)}", f"s{index(a)}"} == {a, b}):
            graph.edges[a, b]["link"] = data.draw(ways)
            graph.edges[a, b]["back"] = {b: data.draw(ways)}
    for host in hosts(graph) if graph.graph["servers"] else []:
        join_server(graph, host, 1)
    again = build(str(write(graph, name, tmp_path)))
    assert {(a, b): sent for a, b, sent in directions(again)} == {
        (a, b): sent for a, b, sent in directions(graph)
    }


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize(
    "text",
    [
        "a role=host\nb role=host\nserver0 role=switch\na server0\nb server0\n",
        "a role=host\nb role=server kind=gpu\nc role=host\na b\nb s\nc s\n",
        "a b rate=10G rate_back=20G\na role=server\nb role=server\n",
    ],
    ids=["a switch called server", "a server of another kind", "a way back of its own"],
)
def test_a_server_is_one_by_its_role_alone(tmp_path: Path, text: str, name: str) -> None:
    (tmp_path / "first.edges").write_text(text)
    graph = build(f"{tmp_path / 'first.edges'},host_rate=10G")
    assert facts(build(str(write(graph, name, tmp_path)))) == facts(graph)


def test_an_inner_delay_leaves_the_rates_of_both_directions(tmp_path: Path) -> None:
    text = "a b rate=10G rate_back=20G\na role=server inner_delay=5ns\nb role=server\n"
    graph = read(tmp_path, text)
    assert link(graph, "h0", "s0") == Link(10 * 10**9, 5000)  # what a sends to b
    assert link(graph, "s0", "h0") == Link(20 * 10**9, 5000)


def test_a_direction_of_its_own_leaves_the_other_terms(tmp_path: Path) -> None:
    graph = read(tmp_path, "a s rate=10G delay=2us loss=1% buffer=64KiB rate_back=4G\nb s\n")
    assert link(graph, "h0", "s0") == Link(10 * 10**9, 2_000_000, 0.01, 65536)
    assert link(graph, "s0", "h0") == Link(4 * 10**9, 2_000_000, 0.01, 65536)
    assert link(graph, "h1", "s0") == Link(100 * 10**9, 1_000_000)


def test_options_are_for_links_without_terms_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "net.edges"
    path.write_text("a s rate=10G\nb s\n")
    graph = build(f"{path},rate=25G", delay_ps=7)
    assert [link(graph, host, "s0").rate_bps for host in ("h0", "h1")] == [10**10, 25 * 10**9]
    assert link(graph, "h0", "s0").delay_ps == 7


def test_a_directed_file_has_a_link_for_each_direction(tmp_path: Path) -> None:
    graph = build(str(EXAMPLES / "one_way_fast.json"))
    assert link(graph, "s0", "s1").rate_bps == 2 * link(graph, "s1", "s0").rate_bps == 200 * 10**9
    assert link(graph, "h0", "s0").rate_bps == link(graph, "s0", "h0").rate_bps == 300 * 10**9


def test_hosts_are_ranked_by_attribute_or_in_order(tmp_path: Path) -> None:
    graph = read(tmp_path, "a rank=1\nb rank=0\na s\nb s\n")
    assert [graph.nodes[name]["label"] for name in ("h0", "h1", "s0")] == ["b", "a", "s"]
    graph = read(tmp_path, "a s\nb s\n")
    assert [graph.nodes[name]["label"] for name in ("h0", "h1", "s0")] == ["a", "b", "s"]


def test_a_host_with_several_links_forwards_by_a_switch_of_its_own(tmp_path: Path) -> None:
    graph = read(tmp_path, "a role=host\nb role=host\nc role=host\na b\nb c\nc s\ns role=switch\n")
    assert graph.graph["servers"]
    assert set(graph.edges) == {
        *(("h0", "s0"), ("h1", "s1"), ("h2", "s2")),
        *(("s0", "s1"), ("s1", "s2"), ("s2", "s3")),
    }
    mixed = read(tmp_path, "a role=host\nb role=host\nc role=host\na t\na s\nb s\nc s\n")
    assert not mixed.graph["servers"]
    assert {frozenset(edge) for edge in mixed.edges} == {
        *map(frozenset, (("h0", "s0"), ("s0", "s1"), ("s0", "s2"), ("h1", "s2"), ("h2", "s2")))
    }


def test_an_unmarked_node_with_one_link_is_a_host(tmp_path: Path) -> None:
    graph = read(tmp_path, "x y\nz y\ny w\nw v\n")
    assert [graph.nodes[name]["label"] for name in hosts(graph)] == ["x", "z", "v"]


@pytest.mark.parametrize(
    ("text", "hierarchy"),
    [
        ("a s\nb s\nc t\nd t\ns u\nt u\n", (2, 2)),
        ("a s\nb s\nc s\nd t\ns u\nt u\n", (4,)),  # groups of three and one
        ("a s\nb t\nc s\nd t\ns u\nt u\n", (4,)),  # ranks of a group are not consecutive
        ("a s\nb s\nc t\nd t\ne u\nf u\ng v\nh v\ns x\nt x\nu y\nv y\nx y\n", (2, 2, 2)),
    ],
)
def test_the_hierarchy_is_found(tmp_path: Path, text: str, hierarchy: tuple[int, ...]) -> None:
    assert read(tmp_path, text).graph["hierarchy"] == hierarchy


@pytest.mark.parametrize("spec", ["fattree,k=4", "leafspine,leaves=4,spines=2,hosts=3"])
def test_the_hierarchy_of_a_family_is_found_again(tmp_path: Path, spec: str) -> None:
    graph = build(spec)
    path = write(graph, "edgelist", tmp_path)
    path.write_text("".join(path.read_text().splitlines(keepends=True)[1:]))  # without hierarchy=
    assert build(str(path)).graph["hierarchy"] == graph.graph["hierarchy"]


def test_the_longest_round_trip_is_that_of_any_two_hosts(tmp_path: Path) -> None:
    text = "a s delay=1us\nb s delay=5us\nc s delay=7us delay_back=9us\n"
    graph = read(tmp_path, text)
    wire_ps = 4 * 8 * 4096 * 10  # four times 4096 bytes at 100 Gbit/s, 10 ps a bit
    assert longest_rtt_ps(graph, 4096) == (5 + 5 + 7 + 9) * 1_000_000 + wire_ps


@pytest.mark.parametrize("path", sorted(EXAMPLES.iterdir()), ids=lambda path: path.name)
def test_examples_are_topologies(path: Path) -> None:
    graph = build(str(path))
    table = routes(graph)
    assert all(table[switch][host] for switch in table for host in hosts(graph))
    tree = aggregation_tree(graph, hosts(graph))
    assert {child for below in tree.children.values() for child in below} >= set(hosts(graph))


def test_a_comment_in_an_edge_list_begins_with_a_word() -> None:
    text = "gpu#0 leaf rate=1G # it's first\n'a #1' leaf\n# all\nb\\#2 \"leaf\" #\n"
    rows = FORMATS["edgelist"].read(text, "n.edges")
    assert [each.name for each in rows.nodes] == ["gpu#0", "leaf", "a #1", "b#2"]
    assert [dict(each.row.values) for each in rows.links] == [{"rate": "1G"}, {}, {}]
