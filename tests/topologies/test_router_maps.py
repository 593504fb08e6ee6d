"""Maps of routers in the forms of the Internet Topology Zoo: GraphML, GML and node-link JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import networkx as nx
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from ringleaf.errors import RingleafError
from ringleaf.topologies.files.describe import describe
from ringleaf.topologies.files.rows import FileRow, LinkRow, NetworkRows, NodeRow
from ringleaf.topologies.graph import hosts, link, switches
from ringleaf.topologies.registry import build, count, notes, parse

GBPS = 10**9
USUAL_BPS = 100 * GBPS
HEAD = """<?xml version="1.0" encoding="utf-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key attr.name="label" attr.type="string" for="node" id="n0"/>
<key attr.name="Internal" attr.type="int" for="node" id="n1"/>
<key attr.name="hyperedge" attr.type="int" for="node" id="n2"/>
<key attr.name="type" attr.type="string" for="node" id="n3"/>
<key attr.name="Longitude" attr.type="double" for="node" id="n4"/>
<key attr.name="LinkSpeedRaw" attr.type="double" for="edge" id="e0"/>
<key attr.name="LinkSpeed" attr.type="string" for="edge" id="e1"/>
<key attr.name="LinkSpeedUnits" attr.type="string" for="edge" id="e2"/>
<key attr.name="LinkLabel" attr.type="string" for="edge" id="e3"/>
<key attr.name="key" attr.type="int" for="edge" id="e4"/>
<key attr.name="Network" attr.type="string" for="graph" id="g0"/>
<graph edgedefault="undirected"><data key="g0">Somewhere</data>
"""
FOUR = "".join(f'<node id="{i}"/>' for i in range(4))
RING = "".join(f'<edge source="{i}" target="{(i + 1) % 4}"/>' for i in range(4))
CHAIN = "".join(f'<edge source="{i}" target="{i + 1}"/>' for i in range(3))


def graphml(folder: Path, inside: str, name: str = "map.graphml") -> str:
    (folder / name).write_text(f"{HEAD}{inside}</graph></graphml>")
    return str(folder / name)


def rates(topo: str) -> dict[frozenset[str], int]:
    """Return the rate of each link between switches in Gbit/s, by the ends' labels."""
    graph = build(topo)
    label = nx.get_node_attributes(graph, "label")
    return {
        frozenset((label[a], label[b])): link(graph, a, b).rate_bps // GBPS
        for a, b in graph.edges
        if {a, b} <= {*switches(graph)}
    }


def test_parallel_links_are_one_of_added_rates(tmp_path: Path) -> None:
    speed = '<data key="e0">10000000000.0</data>'
    topo = graphml(
        tmp_path,
        "".join(f'<node id="{i}"><data key="n0">{n}</data></node>' for i, n in enumerate("ABCD"))
        + f'<edge source="0" target="1">{speed}</edge>'
        + f'<edge source="1" target="2">{speed}<data key="e4">0</data></edge>'
        + f'<edge source="2" target="1">{speed}<data key="e4">1</data></edge>'
        + f'<edge source="2" target="3">{speed}</edge>',
    )
    assert rates(topo) == {frozenset("BC"): 20}
    assert notes(topo) == (
        "rates of links are by LinkSpeedRaw",
        "links side by side are one, with their rates added: B-C",
        "no node has a role, so the 2 with one link are hosts (A, D); "
        "hosts=each puts a host at every node",
    )


@pytest.mark.parametrize(
    ("texts", "gbps"),
    [
        (("", ""), 200),
        (("", "", ""), 300),
        (("rate=10G", ""), 110),
        (("rate=10G", "rate=30G"), 40),
        (("rate=10G rate_back=4G", "rate=1G"), 11),
    ],
)
def test_links_without_rates_add_the_usual_one(
    tmp_path: Path, texts: tuple[str, ...], gbps: int
) -> None:
    (tmp_path / "n.edges").write_text("a s\nb t\n" + "".join(f"s t {text}\n" for text in texts))
    graph = build(str(tmp_path / "n.edges"))
    assert link(graph, "s0", "s1").rate_bps == gbps * GBPS
    back = 5 if "back" in texts[0] else gbps
    assert link(graph, "s1", "s0").rate_bps == back * GBPS


def test_the_longest_delay_and_highest_loss_are_those_of_the_whole(tmp_path: Path) -> None:
    text = "a s\nb t\ns t delay=1us loss=1% buffer=64KiB\nt s delay=3us loss=2% buffer=32KiB\n"
    (tmp_path / "n.edges").write_text(text)
    topo = str(tmp_path / "n.edges")
    found = link(build(topo), "s0", "s1")
    assert (found.delay_ps, found.loss, found.queue_bytes) == (3_000_000, 0.02, 98304)
    assert "and the longest delay: s-t" in notes(topo)[0]


def test_directed_links_side_by_side_are_added_each_way(tmp_path: Path) -> None:
    """NetworkX writes a MultiDiGraph so; its JSON says `multigraph`, and edges have keys."""
    graph: nx.MultiDiGraph[str] = nx.MultiDiGraph()
    for name in "ab":
        graph.add_node(name, role="host")
    graph.add_node("s", role="switch")
    for a, b, gbps in (("a", "s", 1), ("a", "s", 2), ("s", "a", 7), ("b", "s", 9), ("s", "b", 9)):
        graph.add_edge(a, b, rate=f"{gbps}G")
    (tmp_path / "n.json").write_text(json.dumps(nx.node_link_data(graph)))
    nx.write_graphml(graph, tmp_path / "n.graphml")
    for name in ("n.json", "n.graphml"):
        made = build(str(tmp_path / name))
        assert link(made, "h0", "s0").rate_bps == 3 * GBPS
        assert link(made, "s0", "h0").rate_bps == 7 * GBPS


def test_too_much_side_by_side_is_refused(tmp_path: Path) -> None:
    (tmp_path / "n.edges").write_text("a s\nb s\n" + "a s rate=900T\n" * 2)
    with pytest.raises(RingleafError, match=r"line 1: link a-s: at most 10+ bit/s, got 18001"):
        build(str(tmp_path / "n.edges"))


def test_a_host_is_put_at_every_node(tmp_path: Path) -> None:
    topo = graphml(tmp_path, FOUR + RING)
    with pytest.raises(RingleafError, match=r"no node with one link; .* write .*,hosts=each"):
        parse(topo)
    graph = build(f"{topo},hosts=each,rate=40G")
    assert hosts(graph) == ["h0", "h1", "h2", "h3"]
    assert count(f"{topo},hosts=each").hosts == 4
    assert nx.shortest_path_length(graph, "h0", "h1") == 3
    assert graph.graph["name"] == f"{topo},hosts=each,rate=40G"
    assert {link(graph, f"s{i}", f"s{(i + 1) % 4}").rate_bps for i in range(4)} == {40 * GBPS}


def test_a_file_itself_may_ask_for_hosts(tmp_path: Path) -> None:
    (tmp_path / "n.json").write_text(
        '{"graph": {"hosts": "each"}, "nodes": [{"id": 1}, {"id": 2}, {"id": 3}], "links":'
        ' [{"source": 1, "target": 2}, {"source": 2, "target": 3}, {"source": 3, "target": 1}]}'
    )
    assert len(hosts(build(str(tmp_path / "n.json")))) == 3
    (tmp_path / "n.edges").write_text("hosts=each\na b\nb c\nc a\n")
    assert len(hosts(build(str(tmp_path / "n.edges")))) == 3


def test_stub_routers_are_hosts_only_with_a_word(tmp_path: Path) -> None:
    topo = graphml(tmp_path, FOUR + CHAIN)
    assert len(hosts(build(topo))) == 2
    assert "the 2 with one link are hosts (0, 3)" in notes(topo)[0]
    assert len(hosts(build(f"{topo},hosts=each"))) == 4
    assert notes(f"{topo},hosts=each") == ()


@pytest.mark.parametrize(
    ("inside", "option", "message"),
    [
        (FOUR + RING, ",hosts=all", "unknown hosts, got 'all'; valid: each"),
        (FOUR + RING, ",host=each", "unknown key, got 'host'"),
        (FOUR, "", "no node with one link; for a host at every node, write"),
        ('<node id="0"/>', ",hosts=each", "must have two hosts at least, got 1$"),
        ("", ",hosts=each", "must have two hosts at least, got 0$"),
        (
            FOUR.replace('<node id="0"/>', '<node id="0"><data key="n3">x</data></node>') + CHAIN,
            ",rate_unit=furlong",
            "rate_unit: unknown unit, got 'furlong'",
        ),
    ],
)
def test_wrong_ways_to_ask_are_refused(
    tmp_path: Path, inside: str, option: str, message: str
) -> None:
    with pytest.raises(RingleafError, match=message):
        parse(graphml(tmp_path, inside) + option)


def test_a_file_with_hosts_needs_no_others(tmp_path: Path) -> None:
    (tmp_path / "n.edges").write_text("a role=host\nb role=host\na s\nb s\n")
    with pytest.raises(RingleafError, match="line 1: node 'a': is a host already"):
        parse(f"{tmp_path / 'n.edges'},hosts=each")
    (tmp_path / "n.edges").write_text("a role=switch\nb role=switch\nc role=switch\na b\nb c\n")
    assert len(hosts(build(f"{tmp_path / 'n.edges'},hosts=each"))) == 3


@pytest.mark.parametrize("words", [{"type": "host"}, {"role": "Host"}, {"is_switch": "no"}])
def test_hosts_by_words_of_others_are_hosts_already(words: dict[str, str]) -> None:
    switch = {name: {"no": "yes"}.get(value, "switch") for name, value in words.items()}
    nodes = [("a", words), ("b", words), ("s", switch)]
    rows = NetworkRows(
        tuple(NodeRow(name, FileRow(1, values)) for name, values in nodes),
        tuple(LinkRow(name, "s", FileRow(1, {})) for name in "ab"),
        FileRow(1, {"hosts": "each"}),
    )
    with pytest.raises(RingleafError, match="node 'a': is a host already"):
        describe(rows, "n.json")


def test_a_file_of_routers_by_type_is_answered_with_the_word() -> None:
    nodes = tuple(NodeRow(name, FileRow(1, {"type": "router"})) for name in "abc")
    links = (LinkRow("a", "b", FileRow(1, {})), LinkRow("b", "c", FileRow(1, {})))
    rows = NetworkRows(nodes, links, FileRow(1, {}))
    with pytest.raises(RingleafError, match=r"got 0; for a host .* write n\.json,hosts=each"):
        describe(rows, "n.json")
    asked = describe(replace(rows, about=FileRow(1, {"hosts": "each"})), "n.json")
    assert [each.name for each in asked.hosts] == ["a", "b", "c"]


def test_only_the_largest_part_is_taken_and_the_rest_is_named(tmp_path: Path) -> None:
    inside = FOUR + '<node id="7"/><node id="8"/><node id="9"/><edge source="8" target="9"/>'
    topo = f"{graphml(tmp_path, inside + RING)},hosts=each"
    assert len(hosts(build(topo))) == 4
    assert notes(topo) == ("left out: 3 of 7 nodes, 7, 8, 9: not connected",)


def test_a_node_that_stands_for_a_link_has_no_host(tmp_path: Path) -> None:
    hub = '<node id="x"><data key="n2">1</data></node>'
    spokes = "".join(f'<edge source="{i}" target="x"/>' for i in range(4))
    graph = build(f"{graphml(tmp_path, FOUR + hub + spokes)},hosts=each")
    assert len(hosts(graph)) == 4
    assert len(switches(graph)) == 5


def test_labels_that_people_can_not_read_are_mended(tmp_path: Path) -> None:
    names = ["  Liege 1 ", "two\nlines", "x" * 100, ""]
    inside = "".join(
        f'<node id="{i}"><data key="n0">{name}</data></node>' for i, name in enumerate(names)
    )
    graph = build(f"{graphml(tmp_path, inside + RING)},hosts=each")
    assert [graph.nodes[f"h{i}"]["label"] for i in range(4)] == [
        *("Liege 1", "two lines", "x" * 80, "3")
    ]


@dataclass(frozen=True)
class Edge:
    a: int
    b: int
    form: str
    bps: int


@dataclass(frozen=True)
class Map:
    """A drawn file: the labels of nodes, which of them are hyperedges, and links."""

    labels: tuple[str, ...]
    hyper: frozenset[int]
    edges: tuple[Edge, ...]

    def attributes(self, edge: Edge) -> dict[str, str]:
        if edge.form == "raw":
            return {"LinkSpeedRaw": f"{edge.bps}.0", "LinkLabel": "some speed"}
        if edge.form == "units":
            return {"LinkSpeed": str(edge.bps // 10**6), "LinkSpeedUnits": "M"}
        return {"LinkLabel": "10-20Gbps"}


SPEEDS = st.sampled_from([2, 34, 155, 622, 1000, 2500, 10_000]).map(lambda mbps: mbps * 10**6)


@st.composite
def maps(draw: st.DrawFn) -> Map:
    labels = draw(st.lists(st.sampled_from(["A", "B", "", "São Paulo", "C & <D>"]), min_size=2))
    nodes = st.integers(0, len(labels) - 1)
    forms = st.sampled_from(["raw", "units", "none"])
    edges = draw(st.lists(st.builds(Edge, nodes, nodes, forms, SPEEDS), max_size=25))
    return Map(tuple(labels), draw(st.frozensets(nodes, max_size=2)), tuple(edges))


def as_graphml(drawn: Map, folder: Path) -> str:
    graph: nx.MultiGraph[int] = nx.MultiGraph()
    for number, label in enumerate(drawn.labels):
        more = {"hyperedge": 1} if number in drawn.hyper else {}
        graph.add_node(number, label=label, Internal=number % 2, Longitude=2.5, **more)
    for edge in drawn.edges:
        graph.add_edge(edge.a, edge.b, **drawn.attributes(edge))
    nx.write_graphml_xml(graph, folder / "m.graphml")
    return str(folder / "m.graphml")


def as_gexf(drawn: Map, folder: Path) -> str:
    graph: nx.MultiGraph[int] = nx.MultiGraph()
    for number, label in enumerate(drawn.labels):
        graph.add_node(number, label=label, hyperedge=int(number in drawn.hyper))
    for edge in drawn.edges:
        graph.add_edge(edge.a, edge.b, **drawn.attributes(edge))
    nx.write_gexf(graph, folder / "m.gexf")
    return str(folder / "m.gexf")


def as_gml(drawn: Map, folder: Path) -> str:
    lines = ["graph [", '  Network "Somewhere"']
    for number, label in enumerate(drawn.labels):
        text = label.replace("&", "&amp;").replace("<", "&lt;")
        more = "hyperedge 1" if number in drawn.hyper else ""
        lines.append(f'  node [\n    id {number}\n    label "{text}" Internal 1 {more}\n  ]')
    for edge in drawn.edges:
        told = " ".join(f'{key} "{value}"' for key, value in drawn.attributes(edge).items())
        lines.append(f"  edge [ source {edge.a} target {edge.b} {told} ]")
    (folder / "m.gml").write_text("\n".join([*lines, "]"]))
    return str(folder / "m.gml")


def as_json(drawn: Map, folder: Path) -> str:
    data = {
        "multigraph": True,
        "directed": False,
        "nodes": [
            {"id": number, "label": label, "hyperedge": int(number in drawn.hyper)}
            for number, label in enumerate(drawn.labels)
        ],
        "links": [
            {"source": edge.a, "target": edge.b, "key": key, **drawn.attributes(edge)}
            for key, edge in enumerate(drawn.edges)
        ],
    }
    (folder / "m.json").write_text(json.dumps(data))
    return str(folder / "m.json")


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(maps(), st.sampled_from([as_graphml, as_gexf, as_gml, as_json]))
def test_every_map_loads_with_one_option(
    tmp_path: Path, drawn: Map, write: Callable[[Map, Path], str]
) -> None:
    """The largest part's nodes have a host each, and the links of a pair are added."""
    simple = nx.Graph((edge.a, edge.b) for edge in drawn.edges)
    simple.add_nodes_from(range(len(drawn.labels)))
    parts = sorted(nx.connected_components(simple), key=len)
    assume(len(parts) == 1 or len(parts[-1]) > len(parts[-2]))
    routers = [node for node in sorted(parts[-1]) if node not in drawn.hyper]
    assume(len(routers) > 1)
    ways = Counter((edge.a, edge.b) for edge in drawn.edges if edge.a != edge.b)
    # Where each link is there from both ends, the two are one.
    assume(any(ways[b, a] != count for (a, b), count in ways.items()))

    graph = build(f"{write(drawn, tmp_path)},hosts=each")

    assert len(hosts(graph)) == len(routers)
    others = [node for node in sorted(parts[-1]) if node in drawn.hyper]
    name = {node: f"s{number}" for number, node in enumerate([*routers, *others])}
    expected: Counter[frozenset[str]] = Counter()
    for edge in drawn.edges:
        if edge.a != edge.b and {edge.a, edge.b} <= {*name}:
            bps = USUAL_BPS if edge.form == "none" else edge.bps
            expected[frozenset((name[edge.a], name[edge.b]))] += bps
    found = {
        frozenset((a, b)): link(graph, a, b).rate_bps
        for a, b in graph.edges
        if {a, b} <= {*name.values()}
    }
    assert found == expected
