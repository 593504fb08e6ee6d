"""Roles and tiers of nodes by the words of other programs, and links that are there twice."""

from __future__ import annotations

import json
from pathlib import Path

import networkx as nx
import pytest

from ringleaf.topologies.graph import hosts, link
from ringleaf.topologies.registry import build, notes

ENDS = [("h0", "s0"), ("h0", "s1"), ("h1", "s0"), ("h1", "s1"), ("h2", "s0")]
"""Two hosts with two links, one with one link, and two switches."""

FORWARDING = "2 hosts have several links, and may forward for others: h0, h1"
NAMES = "names in results are Ringleaf's, and in options the file's: s2 is the file's s0"
"""Their own switches come first."""

STAR = [("h0", "s0"), ("h1", "s0"), ("h2", "s0")]


def save(path: Path, hosts_have: dict[str, object], switches_have: dict[str, object]) -> str:
    graph = nx.Graph(ENDS)
    for name in graph:
        graph.nodes[name].update(hosts_have if name[0] == "h" else switches_have)
    path.write_text(json.dumps(nx.node_link_data(graph)))
    return str(path)


@pytest.mark.parametrize(
    ("name", "host", "switch"),
    [
        ("kind", "host", "switch"),
        ("kind", "GPU", "NVSwitch"),
        ("category", "worker", "bridge"),
        ("class", "end-host", "top-of-rack"),
        ("node_role", "endpoint", "leaf switch"),
        ("type", "pc", "ovs"),
        ("type", "host", float("nan")),
        ("is_host", True, False),
        ("isSwitch", False, True),
        ("is_server", "yes", "no"),
        ("IsRouter", 0, 1),
    ],
)
def test_roles_by_more_words(tmp_path: Path, name: str, host: object, switch: object) -> None:
    """Without a role, nodes with one link are hosts: here h2 alone."""
    topo = save(tmp_path / "n.json", {name: host}, {name: switch})
    assert len(hosts(build(topo))) == 3
    assert notes(topo) == (f"roles of nodes are by {name}", FORWARDING, NAMES)


def test_an_attribute_that_names_hosts_goes_before_others(tmp_path: Path) -> None:
    """FNSS says `tier` of all nodes, `leaf` of hosts among others, and `type`."""
    topo = save(
        tmp_path / "n.json",
        {"class": "leaf", "tier": "leaf", "type": "host"},
        {"class": "edge", "tier": "core", "type": "switch"},
    )
    assert len(hosts(build(topo))) == 3
    assert notes(topo) == (
        "roles of nodes are by type",
        "not used: 'class', 'tier' of nodes",
        FORWARDING,
        NAMES,
    )


def test_flags_beside_the_one_that_counts_are_not_named(tmp_path: Path) -> None:
    topo = save(tmp_path / "n.json", {"isHost": True}, {"isSwitch": True})
    assert notes(topo) == ("roles of nodes are by isHost", FORWARDING, NAMES)


def test_tiers_and_ranks_of_tables_are_floats(tmp_path: Path) -> None:
    graph = nx.Graph(STAR)
    for rank, name in enumerate(("h2", "h1", "h0")):
        graph.nodes[name].update(role="host", rank=float(rank), tier=float("nan"))
    graph.nodes["s0"].update(role="switch", tier=3.0)
    (tmp_path / "n.json").write_text(json.dumps(nx.node_link_data(graph)))
    made = build(str(tmp_path / "n.json"))
    assert [made.nodes[host]["label"] for host in hosts(made)] == ["h2", "h1", "h0"]
    assert made.nodes["s0"]["tier"] == 3


def test_tiers_of_hosts_are_named_as_not_used(tmp_path: Path) -> None:
    graph = nx.Graph(STAR)
    graph.add_nodes_from(["h0", "h1", "h2"], role="host", tier=0)
    graph.add_node("s0", role="switch", tier=1)
    topo = str(tmp_path / "n.json")
    (tmp_path / "n.json").write_text(json.dumps(nx.node_link_data(graph)))
    assert build(topo).nodes["s0"]["tier"] == 1
    assert notes(topo) == ("not used: 'tier' of nodes",)


def both_ways(links: list[tuple[str, str, str]]) -> dict[str, object]:
    return {
        "nodes": [{"id": name} for name in "abs"],
        "links": [{"source": a, "target": b, "rate": rate} for a, b, rate in links],
    }


UP_AND_DOWN = [("a", "s", "10G"), ("s", "a", "20G"), ("b", "s", "10G"), ("s", "b", "20G")]


def test_links_that_are_there_from_both_ends_are_one(tmp_path: Path) -> None:
    """They were two side by side, of 30 Gbit/s."""
    file = tmp_path / "n.json"
    file.write_text(json.dumps(both_ways(UP_AND_DOWN)))
    made = build(str(file))
    assert (link(made, "h0", "s0").rate_bps, link(made, "s0", "h0").rate_bps) == (
        10**10,
        2 * 10**10,
    )
    assert notes(str(file))[0] == "each link is there from both ends: the two are one link"


@pytest.mark.parametrize(
    ("links", "more"),
    [
        (UP_AND_DOWN[:3], {}),  # one has no link back
        ([*UP_AND_DOWN, ("a", "s", "10G")], {}),
        (UP_AND_DOWN, {"multigraph": True}),
    ],
)
def test_other_links_between_two_nodes_are_side_by_side(
    links: list[tuple[str, str, str]], more: dict[str, object], tmp_path: Path
) -> None:
    file = tmp_path / "n.json"
    file.write_text(json.dumps({**both_ways(links), **more}))
    rate = sum(int(each[:-1]) for a, b, each in links if {a, b} == {"a", "s"})
    assert link(build(str(file)), "s0", "h0").rate_bps == rate * 10**9


def test_links_side_by_side_may_all_be_there_from_both_ends(tmp_path: Path) -> None:
    """NetworkX writes a MultiDiGraph so, without a word that it is one."""
    data = "{'bandwidth': '10Gbps'}"
    links = ["a s", "s a", "b t", "t b", "s t", "s t", "t s", "t s"]
    file = tmp_path / "n.edgelist"
    file.write_text("".join(f"{each} {data}\n" for each in links))
    made = build(str(file))
    assert [link(made, *ends).rate_bps // 10**9 for ends in (("h0", "s0"), ("s0", "s1"))] == [
        10,
        20,
    ]


def test_links_from_both_ends_in_all_formats(tmp_path: Path) -> None:
    ends = "".join(f'<edge source="{a}" target="{b}"/>' for a, b, _ in UP_AND_DOWN)
    nodes = "".join(f'<node id="{name}"/>' for name in "abs")
    texts = {
        "n.graphml": f"<graphml><graph>{nodes}{ends}</graph></graphml>",
        "n.gexf": f"<gexf><graph><nodes>{nodes}</nodes><edges>{ends}</edges></graph></gexf>",
        "n.gml": "graph [ "
        + " ".join(f"node [ id {name} ]" for name in "abs")
        + " ".join(f" edge [ source {a} target {b} ]" for a, b, _ in UP_AND_DOWN)
        + " ]",
        "n.edgelist": "".join(f"{a} {b} {{'weight': 1}}\n" for a, b, _ in UP_AND_DOWN),
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
        made = build(str(tmp_path / name), rate_bps=5)
        assert [link(made, host, "s0").rate_bps for host in hosts(made)] == [5, 5], name


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("h0 role=host\nh1 role=host\nh0 s0\nh0 s1\nh1 s0\ns0 s1\n", True),
        ("h0 role=server\nh1 role=host\nh0 s0\nh0 s1\nh1 s0\ns0 s1\n", False),
        ("h0 role=host\nh1 role=host\nh2 role=host\nh0 h1\nh1 h2\nh2 h0\n", False),  # a torus
    ],
)
def test_hosts_that_forward_are_named_unless_the_file_says_it(
    tmp_path: Path, text: str, said: bool
) -> None:
    """Where packets may go through a server with two links, which few real ones would do."""
    (tmp_path / "n.edges").write_text(text)
    note = "1 host has several links, and may forward for others: h0"
    assert (note in notes(str(tmp_path / "n.edges"))) == said


@pytest.mark.parametrize(("head", "rates_gbps"), [("", (10, 20)), ("multigraph 1", (30, 30))])
def test_facing_links_of_a_multigraph_in_gml_are_two(
    head: str, rates_gbps: tuple[int, int], tmp_path: Path
) -> None:
    """Each pair has 10 and 20 Gbit/s: one link with a rate each way, or two links both ways."""
    nodes = " ".join(f'node [ id {number} label "{name}" ]' for number, name in enumerate("abs"))
    edges = " ".join(
        f'edge [ source {"abs".index(a)} target {"abs".index(b)} rate "{rate}" ]'
        for a, b, rate in UP_AND_DOWN
    )
    file = tmp_path / "n.gml"
    file.write_text(f"graph [ {head} {nodes} {edges} ]\n")
    made = build(str(file))
    assert (link(made, "h0", "s0").rate_bps, link(made, "s0", "h0").rate_bps) == tuple(
        each * 10**9 for each in rates_gbps
    )


@pytest.mark.parametrize("is_facing", [False, True])
def test_two_lines_of_ns3_are_two_links(is_facing: bool, tmp_path: Path) -> None:
    """Each line of its text is a link both ways, from whichever end it is given."""
    pairs = [(0, 2), (1, 2), *([(2, 0), (2, 1)] if is_facing else [(0, 2), (1, 2)])]
    lines = "".join(f"{a} {b} 10Gbps 1us 0\n" for a, b in pairs)
    file = tmp_path / "n.topo"
    file.write_text(f"3 1 4\n2\n{lines}")
    made = build(str(file))
    assert link(made, "h0", "s0").rate_bps == link(made, "s0", "h0").rate_bps == 2 * 10**10
