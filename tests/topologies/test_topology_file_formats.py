"""The reading of formats that others write, by small files whose networks are known by hand."""

from __future__ import annotations

import json
import re
from pathlib import Path

import networkx as nx
import pytest

from ringleaf.errors import ConfigError, TopologyError
from ringleaf.topologies.files.format import FORMATS, find_format
from ringleaf.topologies.graph import Role, attachment, hosts, kind, link, switches
from ringleaf.topologies.registry import build, notes

EXAMPLES = Path("examples/topologies")


def rates(graph: nx.Graph[str]) -> dict[frozenset[str], int]:
    """Return the rate of each link in Gbit/s by its ends' labels, without those inside servers."""
    label = nx.get_node_attributes(graph, "label")
    return {
        frozenset((label[a], label[b])): link(graph, a, b).rate_bps // 10**9
        for a, b in graph.edges
        if label[a] != label[b]
    }


def test_networkx_files_are_read(tmp_path: Path) -> None:
    graph = nx.Graph([("a", "s"), ("b", "s"), ("s", "t"), ("c", "t")])
    nx.set_edge_attributes(graph, {("s", "t"): {"rate": "40G"}})
    nx.write_graphml(graph, tmp_path / "n.graphml")
    (tmp_path / "n.json").write_text(json.dumps(nx.node_link_data(graph)))
    nx.write_edgelist(nx.Graph(graph.edges), tmp_path / "n.edges")
    for name, rate in (("n.graphml", 40), ("n.json", 40), ("n.edges", 100)):
        found = rates(build(str(tmp_path / name)))
        assert found == {
            **{frozenset(pair): 100 for pair in (("a", "s"), ("b", "s"), ("c", "t"))},
            frozenset(("s", "t")): rate,
        }


def test_an_infragraph_server_has_its_own_switches() -> None:
    """NICs of a server with a switch are hops, so that accelerators reach each other by that."""
    graph = build(str(EXAMPLES / "two_servers.yaml"))
    xpus = [f"host.{server}.xpu.{number}" for server in (0, 1) for number in (0, 1)]
    assert [graph.nodes[host]["label"] for host in hosts(graph)] == xpus
    expected = {}
    for server in (0, 1):
        for number in (0, 1):
            xpu, nic = f"host.{server}.xpu.{number}", f"host.{server}.nic.{number}"
            expected[frozenset((xpu, f"host.{server}.nvlsw.0"))] = 400  # 50 gigabytes
            expected[frozenset((xpu, nic))] = 256
            expected[frozenset((nic, "leaf"))] = 100
    assert rates(graph) == expected
    assert graph.graph["hierarchy"] == (2, 2)


def test_infragraph_ports_and_lone_nics_are_no_hops(tmp_path: Path) -> None:
    """Two links of a server with one NIC each to one switch are one link of their rate together."""
    (tmp_path / "n.yaml").write_text(
        """
devices:
- name: server
  components: [{name: cpu, choice: cpu, count: 1}, {name: nic, choice: nic, count: 2}]
  links: [{name: pcie}]
  edges:
  - {ep1: {component: cpu}, ep2: {component: nic}, scheme: many2many, link: pcie}
- name: switch
  components: [{name: asic, choice: cpu, count: 1}, {name: port, choice: port, count: 4}]
  links: [{name: ic}]
  edges:
  - {ep1: {component: asic}, ep2: {component: port}, scheme: many2many, link: ic}
links:
- name: cable
  physical: {bandwidth: {gigabits_per_second: 25}, latency: {us: 2.5}}
instances: [{name: node, device: server, count: 2}, {name: tor, device: switch, count: 1}]
edges:
- {ep1: {instance: "node[0]", component: nic}, ep2: {instance: tor, component: "port[0:2]"},
   scheme: one2one, link: cable}
- {ep1: {instance: "node[1]", component: "nic[1]"}, ep2: {instance: tor, component: "port[-1]"},
   scheme: one2one, link: cable}
"""
    )
    graph = build(str(tmp_path / "n.yaml"))
    assert rates(graph) == {frozenset(("node.0", "tor")): 50, frozenset(("node.1", "tor")): 25}
    assert link(graph, "h0", "s0").delay_ps == 2_500_000


def test_infragraph_links_without_rates_are_added_too(tmp_path: Path) -> None:
    """One host has two cables of the usual rate, the other two, of which one has 25 Gbit/s."""
    (tmp_path / "n.yaml").write_text(
        """
devices:
- name: server
  components: [{name: cpu, choice: cpu, count: 1}, {name: nic, choice: nic, count: 2}]
  links: [{name: pcie}]
  edges:
  - {ep1: {component: cpu}, ep2: {component: nic}, scheme: many2many, link: pcie}
- {name: switch, components: [{name: port, choice: port, count: 4}]}
links:
- {name: plain}
- {name: slow, physical: {bandwidth: {gigabits_per_second: 25}}}
instances: [{name: node, device: server, count: 2}, {name: tor, device: switch, count: 1}]
edges:
- {ep1: {instance: "node[0]", component: nic}, ep2: {instance: tor, component: "port[0:2]"},
   scheme: one2one, link: plain}
- {ep1: {instance: "node[1]", component: "nic[0]"}, ep2: {instance: tor, component: "port[2]"},
   scheme: one2one, link: plain}
- {ep1: {instance: "node[1]", component: "nic[1]"}, ep2: {instance: tor, component: "port[3]"},
   scheme: one2one, link: slow}
"""
    )
    graph = build(str(tmp_path / "n.yaml"), rate_bps=10**11)
    assert rates(graph) == {frozenset(("node.0", "tor")): 200, frozenset(("node.1", "tor")): 125}


def test_two_components_of_infragraph_have_one_edge(tmp_path: Path) -> None:
    """InfraGraph 3.1.0 adds each edge to an nx.Graph: the last one of two components counts."""
    mesh = "{ep1: {component: xpu}, ep2: {component: xpu}, scheme: many2many, link: xgmi}"
    again = '{ep1: {component: "xpu[1]"}, ep2: {component: "xpu[0]"}, link: slow}'
    (tmp_path / "n.yaml").write_text(
        f"""
devices:
- name: box
  components: [{{name: xpu, choice: xpu, count: 3}}]
  links:
  - {{name: xgmi, physical: {{bandwidth: {{gigabytes_per_second: 64}}}}}}
  - {{name: slow, physical: {{bandwidth: {{gigabytes_per_second: 8}}}}}}
  edges: [{mesh}, {again}]
instances: [{{name: box, device: box, count: 1}}]
"""
    )
    graph = build(str(tmp_path / "n.yaml"))
    xpus = [f"box.0.xpu.{number}" for number in range(3)]
    assert rates(graph) == {
        frozenset((xpus[0], xpus[1])): 64,
        frozenset((xpus[0], xpus[2])): 512,
        frozenset((xpus[1], xpus[2])): 512,
    }


def linked(folder: Path, cable: str) -> str:
    """Return a file of two servers at a switch, whose links' terms are of this text."""
    (folder / "n.yaml").write_text(
        f"""
devices:
- {{name: server, components: [{{name: nic, choice: nic, count: 1}}]}}
- {{name: switch, components: [{{name: port, choice: port, count: 2}}]}}
links: [{{name: cable, {cable}}}]
instances: [{{name: node, device: server, count: 2}}, {{name: tor, device: switch, count: 1}}]
edges:
- {{ep1: {{instance: node, component: nic}}, ep2: {{instance: tor, component: port}},
   scheme: one2one, link: cable}}
"""
    )
    return str(folder / "n.yaml")


GML = """graph [ directed {directed}
  node [ id 0 graphics [ x 1 ] LabelGraphics [ text "a" ] ] node [ id 1 ] node [ id 2 ]
  edge [ source 0 target 2 {first} ] edge [ source 1 target 2 ] {more} ]
"""


YED = """Creator "yFiles" Version "2.20" graph [ hierarchic 1 label "" directed 1
  node [ id 0 label "h1" ] node [ id 1 label "h2" ] node [ id 2 label "s1" gid 9 ]
  node [ id 3 label "s2" gid 9 ] node [ id 9 label "Group" isGroup 1 ]
  edge [ source 0 target 2 label "10G" ] edge [ source 1 target 3 label "10G" ]
  edge [ source 2 target 3 label "10G" graphics [ fill "#000000" {} ] ]
  edge [ source 3 target {} label "10G" ] ]
"""


def test_yed_writes_gml_with_groups_and_arrows(tmp_path: Path) -> None:
    """Two cables that were drawn in opposite directions, without an arrow, are side by side."""
    file = tmp_path / "n.gml"
    file.write_text(YED.format("", 2))
    assert rates(build(str(file))) == {
        frozenset(("h1", "s1")): 10,
        frozenset(("h2", "s2")): 10,
        frozenset(("s1", "s2")): 20,
    }
    assert "left out: 1 group, whose nodes are kept" in notes(str(file))
    assert not [note for note in notes(str(file)) if "not used" in note or "both ways" in note]
    file.write_text(YED.format('targetArrow "standard"', 2))
    with pytest.raises(TopologyError, match="link 0-2: must have a link back"):
        build(str(file))
    file.write_text(YED.format("", 9))
    with pytest.raises(ConfigError, match="line 6: an edge must end at nodes, got the group '9'"):
        build(str(file))


@pytest.mark.parametrize(
    ("first", "said"),
    [
        ('medium [ kind "fibre" ]', ("not used: 'medium' of links",)),
        ("graphics [ width 1 ]", ()),
        ("port 1 port 2", ("not used: 'port' of links",)),
    ],
)
def test_lists_of_gml_that_are_no_looks_are_named(
    tmp_path: Path, first: str, said: tuple[str, ...]
) -> None:
    file = tmp_path / "n.gml"
    file.write_text(GML.format(directed=0, first=first, more=""))
    assert notes(str(file))[:-1] == said


@pytest.mark.parametrize(
    ("first", "problem"),
    [
        ('bandwidth [ value 10 unit "G" ]', r"must be a number.*, got '\[value unit\]'"),
        ('bandwidth "10G" bandwidth "40G"', "unknown unit, got '10Gx40G'"),
    ],
)
def test_a_rate_of_gml_is_one_number(tmp_path: Path, first: str, problem: str) -> None:
    """A list was passed over, and of two values the last one counted."""
    file = tmp_path / "n.gml"
    file.write_text(GML.format(directed=0, first=first, more=""))
    with pytest.raises(ConfigError, match=f"link 0-2: bandwidth: {problem}"):
        build(str(file))


@pytest.mark.parametrize("directed", ["1", "true", '"1"'])
def test_gml_may_say_in_words_that_it_is_directed(tmp_path: Path, directed: str) -> None:
    back = "edge [ source 2 target 0 ] edge [ source 2 target 1 ] edge [ source 2 target 0 ]"
    (tmp_path / "n.gml").write_text(GML.format(directed=directed, first="", more=back))
    graph = build(str(tmp_path / "n.gml"), rate_bps=7)
    assert link(graph, "h0", "s0").rate_bps == 7
    assert link(graph, "s0", "h0").rate_bps == 14


def test_latencies_of_infragraph_are_as_long_as_ours(tmp_path: Path) -> None:
    """`topo export` writes a second in nanoseconds."""
    graph = build(linked(tmp_path, "physical: {latency: {ns: 1000000000}}"))
    assert link(graph, "h0", "s0").delay_ps == 10**12
    with pytest.raises(ConfigError, match="delay: must be at most 1000s, got '1000001000000ns'"):
        build(linked(tmp_path, "physical: {latency: {ns: 1000001000000}}"))
    with pytest.raises(ConfigError, match="rate: must be at most"):
        build(linked(tmp_path, "physical: {bandwidth: {gigabits_per_second: 1000000000}}"))


def test_edges_of_infragraph_that_leave_ends_out_are_named(tmp_path: Path) -> None:
    """Two ports of four are left of each server, which has 50 Gbit/s and not 100."""
    topo = linked(tmp_path, "physical: {bandwidth: {gigabits_per_second: 25}}")
    assert notes(topo) == ()
    text = (tmp_path / "n.yaml").read_text()
    text = text.replace("nic, count: 1", "nic, count: 4").replace("count: 2}]", "count: 4}]")
    text = text.replace("instance: node,", 'instance: "node[0]",')
    other = (
        text[text.index("- {ep1") :].replace("node[0]", "node[1]").replace("port}", '"port[2:]"}')
    )
    (tmp_path / "n.yaml").write_text(text.replace("port}", '"port[:2]"}') + other)
    assert set(rates(build(topo)).values()) == {50}
    assert notes(topo) == tuple(
        f"line {line}: an edge joins 4 ends with 2 ends, one to one: 2 ends left out, as in "
        "InfraGraph"
        for line in (8, 10)
    )


@pytest.mark.parametrize(
    ("cable", "message"),
    [
        ("Physical: {}", "line 5: link: unknown name, got 'Physical'; did you mean 'physical'"),
        ("rate: 100G", "line 5: link: unknown name, got 'rate'; valid: name, "),
        ("physical: {bandwith: {}}", "link: physical: unknown name, got 'bandwith'; did you mean "),
        ("physical: {bandwidth: {gbps: 9}}", "link: bandwidth: unknown name, got 'gbps'; valid: "),
        ("physical: {bandwidth: 100G}", "link: must have a mapping 'bandwidth', got '100G'"),
        ("physical: {latency: 1us}", "link: must have a mapping 'latency', got '1us'"),
        ("physical: {latency: {ps: 1}}", "link: latency: unknown name, got 'ps'; "),
        ("physical: {latency: {us: 1, ms: 2}}", "latency must be in one unit, got ms, us"),
    ],
)
def test_names_of_infragraph_that_mean_nothing_are_refused(
    tmp_path: Path, cable: str, message: str
) -> None:
    """Such links had the usual rate and delay, without a word."""
    with pytest.raises(ConfigError, match=message):
        build(linked(tmp_path, cable))


def test_transfers_of_infragraph_are_told(tmp_path: Path) -> None:
    cable = "physical: {bandwidth: {choice: gigatransfers_per_second, %s: 16}, latency: {ns: 1.5}}"
    topo = linked(tmp_path, cable % "gigatransfers_per_second")
    each = link(build(topo, rate_bps=10**11), "h0", "s0")
    assert (each.rate_bps, each.delay_ps) == (10**11, 1500)
    assert "gigatransfers_per_second have no rate" in notes(topo)[0]


def test_nccl_rates_are_nccls() -> None:
    """PCIe 4.0 has 12 Gbit/s a lane, an NVLink of compute capability 8.0 20 GB/s, AMD 16 GB/s."""
    graph = build(str(EXAMPLES / "four_gpus.xml"))
    left, right = "0000:01:00.0", "0000:81:00.0"
    assert rates(graph) == {
        frozenset(("gpu0", "gpu1")): 320,
        frozenset(("gpu2", "gpu3")): 320,
        **{frozenset((gpu, left)): 192 for gpu in ("gpu0", "gpu1")},
        **{frozenset((gpu, right)): 192 for gpu in ("gpu2", "gpu3")},
        frozenset(("cpu0", left)): 192,
        frozenset(("cpu1", right)): 192,
        frozenset(("cpu0", "cpu1")): 128,
    }


@pytest.mark.parametrize(("capability", "rate"), [(60, 144), (80, 160), (90, 164), (100, 320)])
def test_nvlinks_that_join_all_gpus_are_the_network(
    tmp_path: Path, capability: int, rate: int
) -> None:
    """All NVSwitches are one, as in NCCL, and PCI is left out."""
    link_to = '<nvlink target="0:a{}" count="{}" tclass="0x068000"/>'
    gpus = "".join(
        f'<pci busid="0:{number}" class="0x0302" link_speed="16.0 GT/s PCIe" link_width="16">'
        f'<gpu dev="{number}" sm="{capability}" rank="{3 - number}">'
        f"{link_to.format(0, 2)}{link_to.format(1, 1)}</gpu></pci>"
        for number in range(4)
    )
    (tmp_path / "n.xml").write_text(f'<system><cpu numaid="0">{gpus}</cpu></system>')
    graph = build(str(tmp_path / "n.xml"))
    each = {90: 3 * 1648 // 10, 100: 3 * 3208 // 10}.get(capability, 3 * rate)
    assert rates(graph) == {frozenset((f"gpu{number}", "nvswitch")): each for number in range(4)}
    order = [graph.nodes[host]["label"] for host in hosts(graph)]
    assert order == ["gpu3", "gpu2", "gpu1", "gpu0"]  # by rank
    assert kind(graph, attachment(graph, "h0")) == "nvswitch"
    assert all(graph.nodes[node]["role"] is Role.SWITCH for node in switches(graph))


def test_graphml_defaults_are_values() -> None:
    graph = build(str(EXAMPLES / "degraded.graphml"))
    up, down = link(graph, "s1", "s3"), link(graph, "s3", "s1")
    assert (up.rate_bps, up.loss, up.queue_bytes) == (50 * 10**9, 0.0001, 512 << 10)
    assert (down.rate_bps, down.delay_ps) == (100 * 10**9, 500_000)
    assert {frozenset((f"gpu{number}", f"leaf{number // 2}")) for number in range(4)} < {
        *rates(graph)
    }


def drawn(*arrows: str) -> str:
    """Return a file as yEd writes it: a chain of three nodes, whose second edge is twice there."""
    ends = (("n0", "n1"), ("n1", "n2"), ("n2", "n1"))
    return (
        '<graphml xmlns:y="http://www.yworks.com/xml/graphml"><key for="node" id="d0"/>'
        '<key for="edge" id="d1"/><graph edgedefault="directed">'
        + "".join(
            f'<node id="n{number}"><data key="d0"><y:ShapeNode><y:NodeLabel>{label}<y:Model/>'
            "</y:NodeLabel></y:ShapeNode></data></node>"
            for number, label in enumerate(("\n  north ", "hub", "south\nend"))
        )
        + "".join(
            f'<edge source="{a}" target="{b}"><data key="d1"><y:PolyLineEdge>{arrow}'
            "</y:PolyLineEdge></data></edge>"
            for (a, b), arrow in zip(ends, arrows, strict=False)
        )
        + "</graph></graphml>"
    )


def arrow(source: str, target: str) -> str:
    return f'<y:Arrows source="{source}" target="{target}"/>'


def test_edges_without_arrows_are_both_ways_and_nodes_have_their_drawn_names(
    tmp_path: Path,
) -> None:
    file = tmp_path / "n.graphml"
    file.write_text(drawn(arrow("none", "none"), arrow("white", "standard"), arrow("none", "none")))
    graph = build(str(file))

    assert rates(graph) == {
        frozenset(("north", "hub")): 100,
        frozenset(("hub", "south end")): 200,  # two lines side by side
    }
    assert not [note for note in notes(str(file)) if "both ways" in note]


def test_an_edge_may_say_itself_whether_it_is_directed(tmp_path: Path) -> None:
    """Both ways a-s at 10G; s to b at 20G, b to s at 30G."""
    path = tmp_path / "net.graphml"
    edge = '<edge source="{}" target="{}" directed="{}"><data key="rate">{}</data></edge>'.format
    edges = edge("a", "s", "false", "10G") + edge("s", "b", "true", "20G")
    text = (
        '<graphml><key id="rate" for="edge"/><graph edgedefault="{}"><node id="a"/><node id="b"/>'
        '<node id="s"/>{}</graph></graphml>'
    )
    for default in ("directed", "undirected"):
        path.write_text(text.format(default, edges + edge("b", "s", "true", "30G")))
        graph = build(str(path))
        ways = [("h0", "s0"), ("s0", "h0"), ("s0", "h1"), ("h1", "s0")]
        assert [link(graph, *way).rate_bps // 10**9 for way in ways] == [10, 10, 20, 30]
        path.write_text(text.format(default, edges))
        with pytest.raises(TopologyError, match="line 1: link s-b: must have a link back"):
            build(str(path))


def test_an_edge_of_both_ways_among_directed_ones_keeps_its_way_back(tmp_path: Path) -> None:
    path = tmp_path / "net.graphml"
    keys = ("rate", "rate_back", "out_port", "out_port_back")
    data = "".join(
        f'<data key="{key}">{value}</data>'
        for key, value in zip(keys, ("100G", "25G", "1", "2"), strict=True)
    )
    path.write_text(
        "<graphml>"
        + "".join(f'<key id="{key}" for="edge"/>' for key in keys)
        + "<graph>"
        + "".join(f'<node id="{name}"/>' for name in "abs")
        + f'<edge source="a" target="s">{data}</edge>'
        + '<edge source="b" target="s" directed="true"/>'
        + '<edge source="s" target="b" directed="true"><data key="out_port">1</data></edge>'
        + "</graph></graphml>"
    )
    graph = build(str(path))
    ways = [link(graph, *ends).rate_bps // 10**9 for ends in (("h0", "s0"), ("s0", "h0"))]
    assert ways == [100, 25]
    assert graph.edges["h0", "s0"]["ports"]["s0"] == 2
    assert "ports: the file's own" in notes(str(path))


def test_a_way_back_that_has_its_own_edge_is_said_not_to_be_used(tmp_path: Path) -> None:
    path = tmp_path / "net.json"
    ways = [{"source": a, "target": b} for a, b in ("as", "sa", "bs", "sb")]
    ways[0] |= {"rate": "100G", "rate_back": "25G"}
    nodes = [{"id": name} for name in "abs"]
    path.write_text(json.dumps({"directed": True, "nodes": nodes, "links": ways}))
    assert notes(str(path))[0] == (
        "not used: 'rate_back' of links: each direction has its own link"
    )


def test_graphs_in_nodes_are_parts_of_the_one_graph(tmp_path: Path) -> None:
    path = tmp_path / "net.graphml"
    text = (
        '<graphml><graph edgedefault="undirected"><node id="rack"><graph edgedefault="undirected">'
        '<node id="s"/><node id="a"/><edge source="a" target="s"/></graph></node>'
        '<node id="b"/><edge source="b" target="{}"/></graph></graphml>'
    )
    path.write_text(text.format("s"))
    graph = build(str(path))
    assert [data["label"] for _, data in graph.nodes(data=True)] == ["a", "b", "s"]
    assert "left out: 1 group, whose nodes are kept" in notes(str(path))
    path.write_text(text.format("rack"))
    with pytest.raises(
        ConfigError, match="line 1: an edge must end at nodes, got the group 'rack'"
    ):
        build(str(path))


def test_xml_may_be_in_the_encoding_that_it_says(tmp_path: Path) -> None:
    path = tmp_path / "net.graphml"
    text = (
        '<?xml version="1.0" encoding="ISO-8859-1"?><graphml><graph edgedefault="undirected">'
        '<node id="Zürich"/><node id="s"/><node id="b"/><edge source="Zürich" target="s"/>'
        '<edge source="b" target="s"/></graph></graphml>'
    )
    path.write_bytes(text.encode("latin-1"))
    assert build(str(path)).nodes["h0"]["label"] == "Zürich"


def test_a_directed_file_without_a_link_back_is_taken_both_ways(tmp_path: Path) -> None:
    file = tmp_path / "n.graphml"
    file.write_text(drawn(arrow("none", "standard"), arrow("none", "standard")))

    assert len(hosts(build(str(file)))) == 2
    assert "links are directed, but none has one back: each is taken both ways" in notes(str(file))


def test_arrows_say_that_an_edge_is_one_direction(tmp_path: Path) -> None:
    file = tmp_path / "n.graphml"
    file.write_text(drawn(*[arrow("none", "standard")] * 3))

    with pytest.raises(TopologyError, match="link n0-n1: must have a link back"):
        build(str(file))


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_has_a_page_with_an_example(name: str) -> None:
    text = Path(f"docs/reference/topology-files/{name}.md").read_text()
    [example] = set(re.findall(r"`(examples/topologies/\S+)`", text))
    assert find_format(example, Path(example).read_text()) is FORMATS[name]
