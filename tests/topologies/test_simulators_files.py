"""Networks in the files of ASTRA-sim, HPCC's ns-3, SimAI, htsim and P4's tutorials."""

from __future__ import annotations

import json
from itertools import pairwise, product
from math import prod
from pathlib import Path

import networkx as nx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ringleaf.errors import RingleafError
from ringleaf.topologies.files.describe import describe
from ringleaf.topologies.files.format import FORMATS
from ringleaf.topologies.graph import hosts, link, switches
from ringleaf.topologies.rank_order import host_cycles
from ringleaf.topologies.registry import build, count, notes, parse
from ringleaf.topologies.routing import routes

GBPS = 10**9


def write(folder: Path, text: str, name: str) -> str:
    (folder / name).write_text(text)
    return str(folder / name)


def astra(topology: str, sizes: str, bandwidth: str = "50", latency: str = "500") -> str:
    return (
        f"# Network\ntopology: [ {topology} ]\nnpus_count: [ {sizes} ]\n"
        f"bandwidth: [ {bandwidth} ]  # GB/s\nlatency: [ {latency} ]  # ns\n"
    )


def joined(graph: nx.Graph[str]) -> dict[frozenset[str], tuple[int, int]]:
    """Return the Gbit/s and ns of links between switches, which are those of NPUs."""
    return {
        frozenset((a, b)): (
            link(graph, a, b).rate_bps // GBPS,
            link(graph, a, b).delay_ps // 1000,
        )
        for a, b in graph.edges
        if {a, b} <= {*switches(graph)}
    }


def test_half_an_npu_of_astra_sim(tmp_path: Path) -> None:
    with pytest.raises(RingleafError, match=r"npus_count: must be a whole number, got '?8.5"):
        build(write(tmp_path, astra("Ring", "8.5"), "half.yml"))


def test_a_ring_of_astra_sim(tmp_path: Path) -> None:
    graph = build(write(tmp_path, astra("Ring", "8", "50.0", "500.0"), "ring8.yml"))
    assert len(hosts(graph)) == 8
    assert joined(graph) == {frozenset((f"s{i}", f"s{(i + 1) % 8}")): (400, 500) for i in range(8)}
    assert graph.graph["routing"] == "dimension_order"


def test_rings_of_astra_sim_have_a_cycle_of_all_npus_for_each_dimension(tmp_path: Path) -> None:
    text = astra("Ring, Ring", "4, 4", "50, 50", "500, 500")
    graph = build(write(tmp_path, text, "torus.yml"))
    cycles = host_cycles(graph, 16)
    assert [sorted(each) for each in cycles] == [[*range(16)]] * 2
    steps = [(f"s{a}", f"s{b}") for each in cycles for a, b in pairwise((*each, each[0]))]
    assert {*map(frozenset, steps)} == {*joined(graph)}  # 32 links, each once


def test_one_dimension_of_astra_sim_may_be_without_lists(tmp_path: Path) -> None:
    text = "topology: Ring\nnpus_count: 4\nbandwidth: 50\nlatency: 500\n"
    graph = build(write(tmp_path, text, "n.yml"))
    assert joined(graph) == {frozenset((f"s{i}", f"s{(i + 1) % 4}")): (400, 500) for i in range(4)}
    for mixed in (text.replace("50\n", "[ 50 ]\n"), text.replace("Ring", "[ Ring ]")):
        with pytest.raises(RingleafError, match="must be a list with an entry for each dimension"):
            build(write(tmp_path, mixed, "n.yml"))


def test_npus_are_numbered_in_the_first_dimension_first(tmp_path: Path) -> None:
    """As the first input of ASTRA-sim's network with three dimensions, but smaller."""
    text = astra("Ring, FullyConnected, Switch", "2, 3, 2", "200, 100, 12.5", "50, 500, 2000")
    graph = build(write(tmp_path, text, "n.yaml"))
    assert len(hosts(graph)) == 12
    found = joined(graph)
    assert found.pop(frozenset(("s4", "s5"))) == (1600, 50)
    assert found.pop(frozenset(("s6", "s10"))) == (800, 500)
    assert sorted(found.values()) == [
        *[(100, 2000)] * 12,
        *[(800, 500)] * (4 * 3 - 1),
        *[(1600, 50)] * (6 - 1),
    ]
    hubs = {
        frozenset(graph.adj[hub]) for hub in switches(graph) if graph.nodes[hub]["kind"] == "switch"
    }
    assert hubs == {frozenset((f"s{i}", f"s{i + 6}")) for i in range(6)}


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(st.sampled_from(["Ring", "FullyConnected", "Switch"]), st.integers(2, 5)),
        min_size=1,
        max_size=3,
    )
)
def test_any_network_of_astra_sim_has_a_group_for_each_place(
    tmp_path: Path, dims: list[tuple[str, int]]
) -> None:
    shapes, sizes = zip(*dims, strict=True)
    same = ", ".join("1" for _ in dims)
    text = astra(", ".join(shapes), ", ".join(map(str, sizes)), same, same)
    found = count(write(tmp_path, text, "n.yml"))
    npus = prod(sizes)
    links = 0
    for shape, size in dims:
        ring = 1 if size == 2 else size
        own = {"Ring": ring, "FullyConnected": size * (size - 1) // 2, "Switch": size}
        links += npus // size * own[shape]
    hubs = sum(npus // size for shape, size in dims if shape == "Switch")
    assert found.hosts == npus
    if shapes != ("Switch",):  # whose NPUs have one link, and forward for nobody
        links, hubs = links + npus, hubs + npus
    assert (found.switches, found.links) == (hubs, links)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (astra("Ring, Ring", "4"), "npus_count: must be a list with an entry for each dimension"),
        (astra("Torus", "4"), "topology: unknown shape, got 'Torus'; valid: Ring, Fully"),
        (astra("Ring", "1"), "npus_count: must be a number from 2 on, got '1'"),
        (astra("Ring", "4", "fast"), "bandwidth: must be a number from 0 on, got 'fast'"),
        (astra("Ring", "4", "0"), "rate: must be above 0"),
        (astra("Ring, Ring", "300, 300", "1, 1", "1, 1"), "at most 20000 NPUs, got 90000"),
        (astra("FullyConnected", "2000"), "at most 100000 links"),
        ("npus_count: [ 8 ]\n", "instances, or a network of ASTRA-sim with topology, npus_count"),
        ("services:\n  web: {image: nginx}\n", "or a network of ASTRA-sim with .* got neither"),
    ],
)
def test_a_wrong_network_of_astra_sim_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(RingleafError, match=message):
        parse(write(tmp_path, text, "n.yml"))


def test_other_lists_of_astra_sim_are_named(tmp_path: Path) -> None:
    topo = write(tmp_path, astra("Ring", "4") + "dimension-type: [ N ]\n", "n.yml")
    assert notes(topo) == ("not used: 'dimension-type'",)


SIMAI = """{nodes} 2 2 2 {links} A100
4 5 6 7
0 4 2400Gbps 0.000025ms 0
1 4 2400Gbps 0.000025ms 0
2 5 2400Gbps 0.000025ms 0
3 5 2400Gbps 0.000025ms 0
0 6 100Gbps 0.0005ms 0
1 7 100Gbps 0.0005ms 0
2 6 100Gbps 0.0005ms 0.001
3 7 100Gbps 0.0005ms 0
6 7 400Gbps 0.0005ms 0
"""
FORWARDING = "4 hosts have several links, and may forward for others: node0, node1, node2, node3"


@pytest.mark.parametrize("name", ["n.topo", "n.txt", "Spectrum-X_4g_2gps_100Gbps_A100"])
def test_a_topology_of_simai_is_known_by_its_text(tmp_path: Path, name: str) -> None:
    topo = write(tmp_path, SIMAI.format(nodes=8, links=9), name)
    graph = build(topo)
    assert [graph.nodes[host]["label"] for host in hosts(graph)] == [f"node{i}" for i in range(4)]
    inner = link(graph, "s0", "s4")
    assert (inner.rate_bps, inner.delay_ps) == (2400 * GBPS, 25_000)
    outer = link(graph, "s2", "s6")
    assert (outer.rate_bps, outer.delay_ps, outer.loss) == (100 * GBPS, 500_000, 0.001)
    assert link(graph, "s6", "s7").rate_bps == 400 * GBPS
    assert [graph.nodes[f"s{i}"]["kind"] for i in (4, 5, 6, 7)] == [
        *("nvswitch", "nvswitch", "switch", "switch")
    ]
    assert [*routes(graph)["s0"]["h1"]] == [2]  # by the NVSwitch, which is its first link
    assert notes(topo) == (FORWARDING,)


def test_gpus_at_one_switch_still_take_their_nvswitch(tmp_path: Path) -> None:
    """SimAI sends between GPUs of a server by NVLink, whatever they share outside."""
    text = SIMAI.format(nodes=8, links=9).replace("1 7 100", "1 6 100").replace("2 6 ", "2 7 ")
    topo = write(tmp_path, text, "n.topo")
    graph = build(topo)
    assert "their NICs are switches" in notes(topo)[0]
    assert [graph.nodes[f"s{i}"]["kind"] for i in range(8, 12)] == ["nic"] * 4
    [way] = nx.all_shortest_paths(graph, "h0", "h1")
    assert way == ["h0", "s0", "s4", "s1", "h1"]
    assert link(graph, "s0", "s8").rate_bps == link(graph, "s8", "s6").rate_bps == 100 * GBPS
    delays = [link(graph, *ends).delay_ps for ends in (("s0", "s8"), ("s8", "s6"))]
    assert delays == [0, 500_000]


def test_switches_at_an_nvswitch_are_no_gpus(tmp_path: Path) -> None:
    """Only GPUs get NICs, whatever links join switches to one another."""
    text = SIMAI.format(nodes=8, links=11).replace("1 7 100", "1 6 100").replace("2 6 ", "2 7 ")
    text += "4 6 400Gbps 0.0005ms 0\n0 1 100Gbps 0.0005ms 0\n"
    graph = build(write(tmp_path, text, "n.topo"))
    kinds = [graph.nodes[node].get("kind") for node in graph if node.startswith("s")]
    assert kinds.count("nic") == 4
    assert graph.has_edge("s4", "s6")


def test_counts_that_are_not_those_of_the_file_are_told(tmp_path: Path) -> None:
    topo = write(tmp_path, SIMAI.format(nodes=14, links=16), "n.topo")
    assert len(hosts(build(topo))) == 4
    assert notes(topo) == (
        "line 1 says 14 nodes and 16 links; links are read of 8 nodes, and 9 of them",
        FORWARDING,
    )


def test_what_follows_the_links_of_hpcc_is_passed_over(tmp_path: Path) -> None:
    links = "0 2 100Gbps 1us 0\n1 2 25Gbps 1us 0\n"
    after = "0 1 400Gbps 1us 0\n\nFirst line: total node #, switch node #, link #\n"
    topo = write(tmp_path, f"3 1 2\n2\n{links}{after}", "topology.txt")
    graph = build(topo)
    assert [link(graph, f"h{i}", "s0").rate_bps for i in (0, 1)] == [100 * GBPS, 25 * GBPS]
    assert len(graph.edges) == 2
    assert notes(topo) == (
        "line 1 says 2 links: what follows them, from line 5 on, is passed over",
    )


def test_a_topology_of_hpcc_has_plain_hosts(tmp_path: Path) -> None:
    rows = "".join(f"{host} {4 + host // 2} 100Gbps 1us 0.000000\n" for host in range(4))
    text = f"7 3 6\n4 5 6\n{rows}4 6 400Gbps 1us 0\n5 6 400Gbps 1us 0\n"
    graph = build(write(tmp_path, text.replace("\n", "\r\n"), "topology.txt"))
    assert not graph.graph["servers"]
    assert (len(hosts(graph)), len(switches(graph))) == (4, 3)
    assert link(graph, "h0", "s0").loss is None


@pytest.mark.parametrize(
    ("rate", "bps"),
    [
        *(("100GBps", 800 * GBPS), ("12.5GB/s", 100 * GBPS), ("100Gb/s", 100 * GBPS)),
        *(("1Gib/s", 2**30), ("1MiB/s", 2**23), ("25000000000.0", 25 * GBPS), ("1e9", GBPS)),
    ],
)
def test_rates_of_ns3(tmp_path: Path, rate: str, bps: int) -> None:
    """The units of ns-3's DataRate; a number alone is in bit/s."""
    text = f"3 1 1 2\n2\n0 2 {rate} 1us 0\n1 2 {rate} 0.000001 0\n"
    graph = build(write(tmp_path, text, "topology.txt"))
    assert {link(graph, host, "s0").rate_bps for host in hosts(graph)} == {bps}
    assert {link(graph, host, "s0").delay_ps for host in hosts(graph)} == {10**6}


@pytest.mark.parametrize("switches_text", ["4 5 6", "4 5\n6", "4\n5\n\n6"])
def test_switches_of_ns3_may_take_several_lines(tmp_path: Path, switches_text: str) -> None:
    rows = "".join(f"{host} {4 + host // 2} 100Gbps 1us 0\n" for host in range(4))
    text = f"7 3 6\n{switches_text}\n{rows}4 6 400Gbps 1us 0\n5 6 400Gbps 1us 0\n"
    topo = write(tmp_path, text, "n.topo")
    assert (len(hosts(build(topo))), len(switches(build(topo)))) == (4, 3)
    assert notes(topo) == ()


def test_switches_that_are_not_as_many_as_said_are_told(tmp_path: Path) -> None:
    topo = write(tmp_path, "3 2 2\n2\n0 2 1Gbps 1us 0\n1 2 1Gbps 1us 0\n", "n.topo")
    assert len(hosts(build(topo))) == 2
    assert notes(topo) == ("line 1 says 2 switches; 1 are listed",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("4 1 3\n3\n0 3 1Gbps 1us\n1 3 1Gbps\n", "line 4: must be two nodes, a rate, a delay"),
        ("4 1 3\nx\n0 3 1Gbps 1us 0\n", "line 2: must be a whole number, got 'x'"),
        ("4 1 3 9 9\n3\n0 3 1Gbps 1us 0\n", "line 1: must have nodes, switches and links, or Sim"),
        ("4 1 3\n3\n0 3 1Gbps 1us 0\n1 3 1Gbps 1us lossy\n", "line 4: link 1-3: loss: not und"),
        ("4 1 3\n3\n0 3 1GBPS 1us 0\n1 3 1Gbps 1us\n", "line 3: link 0-3: rate: must be in bit/s"),
        ("4 1 3\n3\n0 3 1Gbps 1us 0\n1 3 1Gbps 1000000\n", "line 4: link 1-3: delay: must be at"),
        ("4 1 3\n", "must have a line of counts, one of switches, and links"),
        ("4 1 3\n3\n0 3 1Gbps 1us 0\n", "must have two hosts at least, got 1"),
    ],
)
def test_a_wrong_topology_of_ns3_is_refused(text: str, message: str) -> None:
    with pytest.raises(RingleafError, match=message):
        describe(FORMATS["ns3"].read(text, "topology n"), "n")


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(1, 4), st.integers(1, 3), st.integers(1, 4), st.sampled_from([1, 40, 400]))
def test_any_leaf_spine_of_ns3_is_read(
    tmp_path: Path, leaves: int, spines: int, own: int, gbps: int
) -> None:
    count_of = leaves * own
    leaf = [count_of + i for i in range(leaves)]
    spine = [count_of + leaves + i for i in range(spines)]
    lines = [f"{host} {leaf[host // own]} {gbps}Gbps 0.001ms 0" for host in range(count_of)]
    lines += [f"{a} {b} {4 * gbps}Gbps 0.001ms 0" for a, b in product(leaf, spine)]
    head = f"{count_of + leaves + spines} {leaves + spines} {len(lines)}"
    text = "\n".join([head, " ".join(map(str, leaf + spine)), *lines])
    if count_of < 2:
        return
    graph = build(write(tmp_path, text, "n"))
    assert (len(hosts(graph)), len(switches(graph))) == (count_of, leaves + spines)
    assert notes(str(tmp_path / "n")) == ()
    for (a, b), bps in nx.get_edge_attributes(graph, "link").items():
        assert bps.rate_bps == gbps * GBPS * (1 if {a, b} & {*hosts(graph)} else 4)


TREE = """# comment
Nodes {nodes}
tiers 3
Podsize 8

Tier 0
Downlink_speed_Gbps 100
Radix_Down 4
Radix_Up {up}
Downlink_Latency_ns 500
Switch_Latency_ns {latency}

Tier 1
Downlink_speed_Gbps 200
Radix_Down 4
Radix_Up 2
Bundle 2
Downlink_Latency_ns 1000

Tier 2
Downlink_speed_Gbps 400
Radix_Down 4
Downlink_Latency_ns 2000
"""


def test_a_fat_tree_of_htsim(tmp_path: Path) -> None:
    """Four pods of two racks of four; two aggregates of a pod, of two links to each rack."""
    topo = write(tmp_path, TREE.format(nodes=32, up=4, latency=0), "tree.topo")
    graph = build(topo)
    kinds = [graph.nodes[name]["kind"] for name in switches(graph)]
    assert kinds == [*["tor"] * 8, *["agg"] * 8, *["core"] * 4]
    assert len(hosts(graph)) == 32
    terms = {
        frozenset(graph.nodes[end].get("kind", "host") for end in ends): (
            each.rate_bps // GBPS,
            each.delay_ps // 1000,
        )
        for ends, each in nx.get_edge_attributes(graph, "link").items()
    }
    assert terms == {
        frozenset(("host", "tor")): (100, 500),
        frozenset(("tor", "agg")): (400, 1000),
        frozenset(("agg", "core")): (400, 2000),
    }
    label = nx.get_node_attributes(graph, "label")
    near = {label[name]: {label[peer] for peer in graph.adj[name]} for name in switches(graph)}
    assert near["agg3"] == {"tor2", "tor3", "core1", "core3"}
    assert near["core2"] == {"agg0", "agg2", "agg4", "agg6"}
    assert notes(topo) == ("bundles of links are one, with their rates added",)
    topo = write(tmp_path, TREE.format(nodes=32, up=4, latency=300), "tree.topo")
    assert notes(topo)[1] == "not used: switch_latency_ns; give --switch-delay and --queue"


LEAVES = """Nodes {nodes}
Tiers 2
Podsize {nodes}
Tier 0
Downlink_speed_Gbps 100
Radix_Down {own}
Radix_Up {spines}
Downlink_Latency_ns 1000
Tier 1
Downlink_speed_Gbps 400
Radix_Down {leaves}
Downlink_Latency_ns 1000
"""


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(1, 5), st.integers(1, 4), st.integers(2, 6))
def test_any_leaf_spine_of_htsim_is_the_familys(
    tmp_path: Path, leaves: int, spines: int, own: int
) -> None:
    text = LEAVES.format(nodes=leaves * own, own=own, spines=spines, leaves=leaves)
    mine = count(write(tmp_path, text, "n"))
    theirs = count(f"leafspine,leaves={leaves},spines={spines},hosts={own}")
    assert (mine.hosts, mine.switches, mine.links) == (theirs.hosts, theirs.switches, theirs.links)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TREE.format(nodes=33, up=4, latency=0), "numbers must fit each other, got 33 nodes"),
        (TREE.format(nodes=32, up=3, latency=0), r"must fit each other, .* radix_up \[3, 2\]"),
        (TREE.format(nodes=40, up=4, latency=0), "numbers must fit each other"),
        (TREE.format(nodes=0, up=4, latency=0), "nodes: must be a whole number from 1 on"),
        (TREE.format(nodes=10**6, up=4, latency=0), "at most 20000 hosts"),
        (TREE.format(nodes=32, up="many", latency=0), "line 9: must be a name and a whole number"),
        (TREE.replace("Tier 2", "Tier 3").format(nodes=32, up=4, latency=0), "must be tier 2, got"),
        (
            TREE.replace("Bundle", "Bunch").format(nodes=32, up=4, latency=0),
            "unknown name, got 'Bu",
        ),
        (
            LEAVES.format(nodes=8, own=4, spines=2, leaves=2) + "Tier 2\n",
            "got Tiers 2 and 3 of them",
        ),
        ("Nodes 4\nTiers 2\nPodsize 4\n", "got Tiers 2 and 0 of them"),
    ],
)
def test_a_wrong_fat_tree_of_htsim_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(RingleafError, match=message):
        parse(write(tmp_path, text, "n.topo"))


POD = {
    "hosts": {"h1": {"ip": "10.0.1.1/24"}, "h2": {"ip": "10.0.2.2/24"}, "h11": {}},
    "switches": {"s1": {"runtime_json": "s1.json"}, "s2": {}},
    "links": [["h1", "s1-p2"], ["h11", "s1-p1"], ["s1-p3", "s2-p3", "0", 512], ["h2", "s2-p1"]],
}


def test_the_topology_of_p4_tutorials(tmp_path: Path) -> None:
    graph = build(write(tmp_path, json.dumps(POD), "topology.json"))
    assert [graph.nodes[host]["label"] for host in hosts(graph)] == ["h1", "h2", "h11"]
    assert link(graph, "s0", "s1").rate_bps == 512 * 10**6
    assert link(graph, "s0", "s1").delay_ps == 0
    assert link(graph, "h0", "s0").rate_bps == 100 * GBPS
    assert notes(str(tmp_path / "topology.json"))[:2] == (
        "ports are numbered by the order of links, as those of 's2' are 3, 1",
        "IPv4 addresses are Ringleaf's, as not all hosts have one of their own, got none of 'h11'",
    )


@pytest.mark.parametrize(
    ("terms", "rate_bps", "delay_ps"),
    [
        (["1ms"], 100 * GBPS, 10**9),
        ([3], 100 * GBPS, 3 * 10**9),
        ([0, 0.5], 500_000, 0),
        (["50us", 10], 10**7, 50_000_000),
        ([None, 1000], GBPS, 10**6),
        (["1ms", "0.5"], 500_000, 10**9),
        (["1ms", "10 Mbps"], 10**7, 10**9),
    ],
)
def test_terms_of_links_of_p4_tutorials(
    tmp_path: Path, terms: list[object], rate_bps: int, delay_ps: int
) -> None:
    between = ["s1-p3", "s2-p3", *terms]
    data = {**POD, "links": [["h1", "s1-p2"], ["h11", "s1-p1"], between, ["h2", "s2-p1"]]}
    found = link(build(write(tmp_path, json.dumps(data), "n.json")), "s0", "s1")
    assert (found.rate_bps, found.delay_ps) == (rate_bps, delay_ps)


def test_old_topologies_of_p4_tutorials_have_lists(tmp_path: Path) -> None:
    data = {"hosts": ["h1", "h2"], "switches": {"s1": {}}, "allocated": 1}
    text = json.dumps({**data, "links": [["h1", "s1"], ["h2", "s1"]]})
    assert len(hosts(build(write(tmp_path, text, "n.json")))) == 2
    assert notes(str(tmp_path / "n.json"))[0] == "not used: 'allocated'"


APP = {
    "p4_src": "a.p4",
    "topology": {
        "assignment_strategy": "l2",
        "default": {"bw": 20, "loss": 2, "delay": "5ms", "max_queue_size": 99},
        "hosts": {"h1": {}, "h2": {}},
        "switches": {"s1": {"cli_input": "s1.txt"}, "s2": {}},
        "links": [["h1", "s1"], ["s1", "s2", {"bw": 0.5, "delay": 3, "loss": 0}], ["s2", "h2"]],
    },
}


def test_the_applications_of_p4_utils(tmp_path: Path) -> None:
    topo = write(tmp_path, json.dumps(APP), "p4app.json")
    graph = build(topo)
    usual, own = link(graph, "h0", "s0"), link(graph, "s0", "s1")
    assert (usual.rate_bps, usual.delay_ps, usual.loss) == (20 * 10**6, 5 * 10**9, 0.02)
    assert (own.rate_bps, own.delay_ps, own.loss) == (500_000, 3 * 10**9, None)
    assert notes(topo)[0] == "not used: 'p4_src', 'max_queue_size'"


def test_older_applications_have_targets(tmp_path: Path) -> None:
    old = {"program": "a.p4", "targets": {"multiswitch": {**POD, "cli": True}}}
    topo = write(tmp_path, json.dumps(old), "p4app.json")
    assert len(hosts(build(topo))) == 3
    assert notes(topo)[0] == "not used: 'program', 'cli'"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"default": 3}, "default must be options of links, got 3"),
        ({"links": [["h1", "s1", {"bw": "fast"}]]}, "link h1-s1: rate: "),
        ({"links": [["h1"]]}, "a link must be two nodes, a latency and a bandwidth"),
        ({"links": [["h1", "s9-p1"]]}, "no such node, got 's9-p1'"),
        ({"hosts": 3}, "hosts must be names, got 3"),
        ({"links": [["h1", "s1", "soon"]]}, "delay: not understood, got 'soon'"),
        ({"links": []}, "must be connected"),
    ],
)
def test_a_wrong_topology_of_p4_tutorials_is_refused(
    tmp_path: Path, change: dict[str, object], message: str
) -> None:
    with pytest.raises(RingleafError, match=message):
        parse(write(tmp_path, json.dumps({**POD, **change}), "n.json"))


def test_a_fat_tree_of_htsim_may_have_tabs_and_any_name(tmp_path: Path) -> None:
    text = TREE.format(nodes=32, up=4, latency=0).replace(" ", "\t").replace("\n", "\r\n")
    assert len(hosts(build(write(tmp_path, text, "fat.txt")))) == 32
