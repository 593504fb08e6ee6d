"""Machines with several GPUs in place of hosts: their parts, links, routes and hierarchy."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from topology_specs import ANY_OF_MACHINES

from ringleaf.errors import ConfigError, TopologyError
from ringleaf.topologies.family import Counts
from ringleaf.topologies.graph import Link, Role, attachment, hosts, kind, link, switches
from ringleaf.topologies.machine import MACHINES
from ringleaf.topologies.registry import build, count, parse
from ringleaf.topologies.routing import dealt, path, routes
from ringleaf.topologies.trees import aggregation_tree

ANY_MACHINE = st.builds(
    lambda gpus, name, direct, nics: (
        f"node={'' if name == 'dgx1' else f'{gpus}x'}{name}{direct}"
        + (f",nics={min(nics, 8 if name == 'dgx1' else gpus)}" if nics else "")
    ),
    st.integers(1, 9),
    st.sampled_from(sorted(MACHINES)),
    st.sampled_from(["", ",gpudirect=no", ",gpudirect=yes"]),
    st.integers(0, 9),
)


def labels(graph: nx.Graph[str], nodes: list[str]) -> list[str]:
    return [graph.nodes[node]["label"] for node in nodes]


def joined(graph: nx.Graph[str], a: str, b: str) -> list[Link]:
    """Return the links between nodes of two kinds."""
    return [
        edge["link"]
        for x, y, edge in graph.edges(data=True)
        if sorted((kind(graph, x), kind(graph, y))) == sorted((a, b))
    ]


@given(ANY_OF_MACHINES, ANY_MACHINE)
def test_a_network_of_any_machines_is_counted_without_being_made(family: str, node: str) -> None:
    text = f"{family},{node}"
    if count(text).hosts > 300:
        return
    graph = build(text)
    racks = Counter(attachment(graph, host) for host in hosts(graph))
    rack = racks.popitem()[1] if len(set(racks.values())) == 1 else None
    found = count(text)

    assert (found.hosts, found.switches, found.links) == (
        len(hosts(graph)),
        len(switches(graph)),
        graph.number_of_edges(),
    )
    assert found.rack == rack


@given(ANY_OF_MACHINES, ANY_MACHINE)
def test_every_gpu_reaches_every_other_and_inside_a_machine_without_the_network(
    family: str, node: str
) -> None:
    text = f"{family},{node}"
    if count(text).hosts > 40:
        return
    graph = build(text)
    gpus = graph.graph["machine"][0]
    table = dealt(graph, routes(graph))
    for a, b in combinations(hosts(graph), 2):
        way = path(graph, a, b, table=table)
        met = {kind(graph, each) for each in way[1:-1]}
        outside = met - {"gpu", "nvswitch", "pcie", "cpu"}
        is_inside = int(a[1:]) // gpus == int(b[1:]) // gpus
        assert (not outside) == is_inside, labels(graph, way)
        if is_inside and "gpu" in met:
            assert met <= {"gpu", "nvswitch"}, labels(graph, way)


@given(ANY_OF_MACHINES, ANY_MACHINE)
def test_names_build_the_same_network_again(family: str, node: str) -> None:
    text = f"{family},{node},pcie_rate=7G,cpu_delay=3ns"
    if count(text).hosts > 100:
        return
    graph = build(text)
    again = build(graph.name)

    assert again.name == graph.name
    assert [*again.edges(data=True)] == [*graph.edges(data=True)]


def test_eight_h100_have_the_links_of_their_machine() -> None:
    """By hand: 18 NVLinks of 20.6 GB/s, 16 PCIe lanes of 24 Gbit/s, a NIC for each GPU."""
    graph = build("leafspine,leaves=1,spines=0,hosts=2,node=8xH100", rate_bps=400e9)

    assert joined(graph, "gpu", "nvswitch") == [Link(18 * 164_800_000_000, 150_000)] * 16
    assert joined(graph, "gpu", "pcie") == [Link(384 * 10**9, 200_000)] * 16
    assert joined(graph, "pcie", "nic") == [Link(384 * 10**9, 200_000)] * 16
    assert joined(graph, "nic", "leaf") == [Link(400 * 10**9, 1_000_000)] * 16
    assert joined(graph, "host", "gpu")[0].rate_bps == 18 * 164_800_000_000 + 384 * 10**9
    assert graph.graph["hierarchy"] == (8, 2)


def test_a_dgx1_has_the_cube_mesh() -> None:
    """16 pairs of GPUs are joined, half of them by two NVLinks, and each GPU has six."""
    graph = build("leafspine,leaves=1,spines=0,hosts=1,node=dgx1")
    mesh = [
        (graph.nodes[a]["label"][-1], graph.nodes[b]["label"][-1], edge["link"].rate_bps)
        for a, b, edge in graph.edges(data=True)
        if kind(graph, a) == kind(graph, b) == "gpu"
    ]
    units = Counter({(a, b): rate // 160_000_000_000 for a, b, rate in mesh})
    of_gpu = Counter[str]()
    for (a, b), number in units.items():
        of_gpu.update({a: number, b: number})
    double = {frozenset(pair) for pair, number in units.items() if number == 2}

    assert len(mesh) == 16
    assert sorted(units.values()) == [1] * 8 + [2] * 8
    assert set(of_gpu.values()) == {6}
    assert double == {frozenset(pair) for pair in ("01", "04", "13", "23", "26", "45", "57", "67")}
    assert Counter(kind(graph, each) for each in switches(graph)) == {
        "gpu": 8,
        "pcie": 4,
        "nic": 4,
        "leaf": 1,
    }


def test_the_ring_of_ranks_in_a_dgx1_has_two_nvlinks_everywhere() -> None:
    graph = build("leafspine,leaves=1,spines=0,hosts=1,node=dgx1")

    for rank in range(8):
        assert link(graph, f"s{rank}", f"s{(rank + 1) % 8}").rate_bps == 2 * 160_000_000_000


def test_gpus_without_nvlinks_meet_at_pcie_switches_and_cpus() -> None:
    graph = build("leafspine,leaves=1,spines=0,hosts=2,node=pcie")

    assert labels(graph, path(graph, "h0", "h3")) == ["h0", "pcie 0.0", "h3"]
    assert labels(graph, path(graph, "h0", "h4")) == [
        "h0",
        *("pcie 0.0", "cpu 0.0", "cpu 0.1", "pcie 0.1"),
        "h4",
    ]
    assert joined(graph, "cpu", "cpu") == [Link(80 * 10**9, 100_000)] * 2
    assert not graph.graph["servers"]


@pytest.mark.parametrize(
    ("option", "between"),
    [("", ["pcie", "nic"]), (",gpudirect=no", ["pcie", "cpu", "nic"])],
)
@pytest.mark.parametrize("machine", ["8xh100", "dgx1"])
def test_without_gpudirect_data_goes_through_the_hosts_memory(
    machine: str, option: str, between: list[str]
) -> None:
    graph = build(f"leafspine,leaves=1,spines=0,hosts=2,node={machine}{option}")
    way = [kind(graph, each) for each in path(graph, "h0", "h8")]

    assert way == ["host", "gpu", *between, "leaf", *reversed(between), "gpu", "host"]


def test_flows_of_one_gpu_and_of_all_gpus_of_machines_spread_over_spines() -> None:
    """Four machines to four others: 1 GPU each, and 4 GPUs each, load 4 uplinks equally."""
    graph = build("leafspine,leaves=2,spines=4,hosts=4,node=4xh100")
    table = dealt(graph, routes(graph))

    def uplinks(gpus: int) -> list[int]:
        spines = Counter(
            path(graph, f"h{4 * node + gpu}", f"h{4 * (node + 4) + gpu}", table=table)[5]
            for node in range(4)
            for gpu in range(gpus)
        )
        return sorted(spines.values())

    assert uplinks(1) == [1, 1, 1, 1]
    assert uplinks(4) == [4, 4, 4, 4]


def test_an_nvswitch_sums_a_machine_and_the_network_sums_machines() -> None:
    graph = build("leafspine,leaves=1,spines=0,hosts=2,node=4xh100")

    assert kind(graph, aggregation_tree(graph, hosts(graph)[:4]).root) == "nvswitch"
    assert kind(graph, aggregation_tree(graph, hosts(graph)).root) == "leaf"


def test_sources_are_told_of_every_figure() -> None:
    for machine in MACHINES.values():
        for wire in (machine.nvlink, machine.pcie, machine.cpu):
            assert wire is None or (wire.rate_source and wire.delay_source)


def test_hosts_that_must_find_room_choose_the_number_of_machines() -> None:
    assert count("leafspine,hosts=2,spines=1,node=8xh100", hosts=32) == count(
        "leafspine,leaves=2,spines=1,hosts=2,node=8xh100"
    )
    with pytest.raises(TopologyError, match=r"fattree,k=2,node=4xh100: has 8 hosts, 9 are wanted"):
        count("fattree,k=2,node=4xh100", hosts=9)


def test_a_text_says_what_it_wants() -> None:
    assert parse("fattree,node=2xpcie").gpus == 2
    assert str(parse("fattree,node=8xdgx1,gpudirect=no,nics=2").inside) == (
        "node=dgx1,nics=2,gpudirect=no"
    )
    assert count("torus2d,node=2xpcie") == Counts(32, 16 + 16 * 6, 48 + 16 * 7 + 16, 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fattree,gpudirect=no", "gpudirect is for machines, got none; add node=8xh100"),
        (
            "fattree,node=8xh10",
            "node: unknown machine, got 'h10'; did you mean 'h100'. valid: dgx1, h100, pcie",
        ),
        ("fattree,node=8", "node: must be a machine like 8xh100 or dgx1, got '8'"),
        ("fattree,node=0xh100", "node: must have 1 to 64 GPUs, got '0xh100'"),
        ("fattree,node=4xdgx1", "node: dgx1 has 8 GPUs, got '4xdgx1'; write node=dgx1"),
        ("fattree,node=pcie,nics=9", "nics: must be 1 to 8, the number of GPUs, got '9'"),
        ("fattree,node=pcie,gpudirect=on", "gpudirect: must be yes or no, got 'on'"),
        ("fattree,node=pcie,nvlink_rate=1G", "nvlink_rate: pcie has no NVLinks; take it away"),
        ("fattree,node=h100,pcie_rate=fast", "pcie_rate: not understood, got 'fast'"),
        ("fattree,node=h100,node=pcie", "node is there twice"),
    ],
)
def test_a_wrong_machine_is_refused(text: str, message: str) -> None:
    with pytest.raises((ConfigError, TopologyError), match=message):
        parse(text)


def test_gpus_are_hosts_with_one_link() -> None:
    graph = build("bcube,n=2,k=0,node=dgx1")

    assert [node for node in graph if graph.nodes[node]["role"] is Role.HOST] == hosts(graph)
    assert len(hosts(graph)) == 16
    assert all(graph.degree[host] == 1 for host in hosts(graph))
