"""Ports and addresses that a topology's file has of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringleaf.errors import RingleafError
from ringleaf.networks.forwarding import forwarding_entities
from ringleaf.topologies.addresses import format_ipv4, format_mac, ipv4, mac
from ringleaf.topologies.files import p4_utils
from ringleaf.topologies.files.attributes import OUT_PORT
from ringleaf.topologies.files.export import rows_of
from ringleaf.topologies.files.format import FORMATS
from ringleaf.topologies.files.numbering import read_ipv4, read_mac
from ringleaf.topologies.files.rows import FileRow, LinkRow, with_ways
from ringleaf.topologies.graph import hosts, neighbors, switches
from ringleaf.topologies.registry import build, notes

# Three switches in a triangle, at ports that are in no order of links.
TRIANGLE: dict[str, Any] = {
    "hosts": {
        "h1": {"ip": "10.0.1.1/24", "mac": "08:00:00:00:01:11"},
        "h2": {"ip": "10.0.2.2/24", "mac": "08:00:00:00:02:22"},
        "h3": {"ip": "192.168.3.3/24", "mac": "08:00:00:00:03:33"},
    },
    "switches": {"s1": {}, "s2": {}, "s3": {}},
    "links": [
        *(["h1", "s1-p3"], ["h2", "s2-p3"], ["s3-p3", "h3"]),
        *(["s1-p1", "s2-p2"], ["s2-p1", "s3-p2"], ["s3-p1", "s1-p2"]),
    ],
}
PORTS = {
    "s0": {1: "s1", 2: "s2", 3: "h0"},
    "s1": {1: "s2", 2: "s0", 3: "h1"},
    "s2": {1: "s0", 2: "s1", 3: "h2"},
}
IN_ORDER = {
    "s0": {1: "h0", 2: "s1", 3: "s2"},
    "s1": {1: "h1", 2: "s0", 3: "s2"},
    "s2": {1: "h2", 2: "s1", 3: "s0"},
}
OWN = "ports, IPv4 addresses, MAC addresses: the file's own"


def write(folder: Path, data: Any, name: str = "topology.json") -> str:
    (folder / name).write_text(data if isinstance(data, str) else json.dumps(data))
    return str(folder / name)


def ports(graph: nx.Graph[str]) -> dict[str, dict[int, str]]:
    return {switch: neighbors(graph, switch) for switch in switches(graph)}


NAMES = "names in results are Ringleaf's, and in options the file's: "


def others(topo: str) -> tuple[str, ...]:
    """Return notes, without the one on names."""
    return tuple(line for line in notes(topo) if not line.startswith(NAMES))


def addresses(graph: nx.Graph[str]) -> list[tuple[str, str]]:
    return [
        (format_ipv4(ipv4(graph, host)), format_mac(mac(graph, host, 1))) for host in hosts(graph)
    ]


def test_ports_and_addresses_of_p4_tutorials(tmp_path: Path) -> None:
    topo = write(tmp_path, TRIANGLE)
    assert ports(build(topo)) == PORTS
    assert addresses(build(topo)) == [
        ("10.0.1.1", "08:00:00:00:01:11"),
        ("10.0.2.2", "08:00:00:00:02:22"),
        ("192.168.3.3", "08:00:00:00:03:33"),
    ]
    assert others(topo) == (OWN,)


def test_ports_of_p4_utils(tmp_path: Path) -> None:
    links = [
        *(["h1", "s1", {"port2": 2}], ["h2", "s1", {"port1": 0, "port2": 1, "bw": 10}]),
    ]
    topo = write(tmp_path, {"hosts": {"h1": {}, "h2": {}}, "switches": {"s1": {}}, "links": links})
    assert ports(build(topo)) == {"s0": {1: "h1", 2: "h0"}}
    assert others(topo) == ("ports: the file's own",)


FORWARDING: dict[str, Any] = {
    "links": [["h1", "s1"], ["h2", "s2"], ["s1", "s2"], ["s1", "s3"], ["h3", "s3"], ["h4", "s3"]],
    "hosts": {"h1": {}, "h2": {}, "h3": {}, "h4": {}},
    "switches": {"s1": {}, "s2": {}, "s3": {}},
}
"""Of p4-learning: its tables say that h3 is at port 1 of s3, h4 at 2 and s1 at 3."""


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        ("l2", ["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"]),
        ("mixed", ["10.0.1.1", "10.0.2.2", "10.0.3.3", "10.0.3.4"]),
        ("l3", ["10.1.1.2", "10.2.2.2", "10.3.3.2", "10.3.4.2"]),
    ],
)
def test_p4_utils_numbers_what_its_file_leaves_open(
    tmp_path: Path, strategy: str, expected: list[str]
) -> None:
    topo = write(tmp_path, {"topology": {**FORWARDING, "assignment_strategy": strategy}})
    graph = build(topo)
    assert ports(graph) == {
        "s0": {1: "h0", 2: "s1", 3: "s2"},
        "s1": {1: "h1", 2: "s0"},
        "s2": {1: "h2", 2: "h3", 3: "s0"},
    }
    assert [ip for ip, _ in addresses(graph)] == expected
    for ip, station in addresses(graph):
        assert station == "00:00:" + ":".join(f"{int(byte):02x}" for byte in ip.split("."))
    assert others(topo) == (OWN,)


def test_p4_utils_numbers_switches_and_ports_from_the_lowest_free_one(tmp_path: Path) -> None:
    data = {
        **{"assignment_strategy": "mixed", "hosts": {"h1": {}, "h300": {}, "h2": {}}},
        "switches": {"s10": {}, "s9": {"device_id": 1, "cpu_port": True}, "s2": {}},
        "links": [["s10", "s9"], ["h1", "s9", {"port2": 3}], ["s10", "s2"], ["h2", "s2"]],
    }
    topo = write(tmp_path, {"topology": {**data, "links": [*data["links"], ["h300", "s10"]]}})
    assert ports(build(topo)) == {  # s10 is s0; s9 has 3, 1 for its controller, and then 2
        "s0": {1: "s1", 2: "s2", 3: "h1"},
        "s1": {1: "s0", 2: "h0"},
        "s2": {1: "s0", 2: "h2"},
    }
    problem = "as not all hosts have one of their own, got none of 'h300'"
    assert others(topo) == (
        "ports are numbered by the order of links, as those of 's9' are 2, 3",
        f"IPv4 addresses are Ringleaf's, {problem}",
        f"MAC addresses are Ringleaf's, {problem}",
    )


def test_ends_that_are_no_names_are_refused_as_such(tmp_path: Path) -> None:
    link = {"source": {"a": 1}, "target": "s1", "node1": ["s1"], "node2": "a", "port1": 2}
    nodes = [{"id": "a", "isHost": True}, {"id": "s1", "isSwitch": True}]
    with pytest.raises(RingleafError, match="must have 'source', a text or whole number"):
        build(write(tmp_path, {"nodes": nodes, "links": [link]}))


def ips_of(switches: dict[str, Any], links: list[LinkRow]) -> dict[str, str]:
    own = p4_utils.addresses("mixed", switches, links)
    return {host: each["ipv4"] for host, each in own.items()}


def test_addresses_by_p4_utils_numbers_of_switches() -> None:
    switches = {"s10": {}, "s9": {"device_id": 1}, "s2": {"device_id": 257}}
    links = [LinkRow(a, b, FileRow(1, {})) for a, b in (("h1", "s9"), ("s2", "h2"), ("h7", "s10"))]
    assert ips_of(switches, links) == {"h1": "10.0.1.1", "h2": "10.1.1.2", "h7": "10.0.2.7"}


def test_tutorials_before_2019_number_links_of_hosts_first(tmp_path: Path) -> None:
    """By ExerciseTopo of p4lang/tutorials, utils/run_exercise.py, commit 948a890."""
    links = ["h1 s1", "s1 s2", "s1 s3", "s3 s2", "s2 h2", "s3 h3"]
    data = {"hosts": ["h1", "h2", "h3"], "switches": {"s1": {}, "s2": {}, "s3": {}}}
    topo = write(tmp_path, {**data, "links": [each.split() for each in links]})
    assert ports(build(topo)) == {
        "s0": {1: "h0", 2: "s1", 3: "s2"},
        "s1": {1: "h1", 2: "s0", 3: "s2"},
        "s2": {1: "h2", 2: "s0", 3: "s1"},
    }
    numbers = ((1, 1), (2, 2), (3, 3))
    assert addresses(build(topo)) == [
        (f"10.0.{switch}.{host}", f"00:00:00:00:0{switch}:0{host}") for switch, host in numbers
    ]
    data["hosts"] = ["h1", "h2", "client"]  # which they refused
    links[-1] = "s3 client"
    topo = write(tmp_path, {**data, "links": [each.split() for each in links]})
    assert others(topo) == ("ports are numbered by the order of links",)


def test_p4_utils_numbers_switches_in_natural_order() -> None:
    """Its `mixed` goes through `self.nodes(withInfo=True)`, which are sorted so."""
    links = [LinkRow(a, b, FileRow(1, {})) for a, b in (("h1", "s10"), ("s2", "h2"))]
    assert ips_of({"s10": {}, "s2": {}}, links) == {"h1": "10.0.2.1", "h2": "10.0.1.2"}


def test_routers_of_p4_utils_are_switches(tmp_path: Path) -> None:
    """Like those of its `examples/frrouters`; their ports are numbered from 1 as well."""
    topology = {
        "hosts": {"h1": {"ip": "5.0.0.1/24"}, "h2": {"ip": "6.0.0.1/24"}},
        "switches": {"s1": {}},
        "routers": {"r1": {"int_conf": "r1.conf"}},
        "links": [["s1", "r1"], ["s1", "h1"], ["r1", "h2"]],
    }
    topo = write(tmp_path, {"topology": topology})
    assert ports(build(topo)) == {"s0": {1: "h0", 2: "s1"}, "s1": {1: "h1", 2: "s0"}}
    assert others(topo) == ("ports, IPv4 addresses: the file's own",)


def test_networks_that_p4_utils_has_kept(tmp_path: Path) -> None:
    """Its links say the ports of `node1` and `node2`, whichever of them is the source."""
    nodes = [
        {"id": "a", "isHost": True, "ip": "10.0.0.1/16", "mac": "00:00:0a:00:00:01"},
        {"id": "b", "isHost": True, "ip": "10.0.0.2/16", "mac": "00:00:0a:00:00:02"},
        {"id": "s1", "isSwitch": True},
    ]
    links = [
        {"source": "a", "target": "s1", "node1": "s1", "node2": "a", "port1": 2, "port2": 0},
        {"source": "s1", "target": "b", "node1": "s1", "node2": "b", "port1": 1, "port2": 0},
    ]
    graph = build(write(tmp_path, {"nodes": nodes, "links": links}))
    assert ports(graph) == {"s0": {1: "h1", 2: "h0"}}
    expected = [("10.0.0.1", "00:00:0a:00:00:01"), ("10.0.0.2", "00:00:0a:00:00:02")]
    assert addresses(graph) == expected


def test_a_port_of_one_end_is_not_the_other_ends() -> None:
    links = [LinkRow("s", "a", FileRow(1, {OUT_PORT: "2"})), LinkRow("s", "b", FileRow(2, {}))]
    there, back, _ = with_ways(links, [False, True])
    assert (there.row.values, back.row.values) == ({OUT_PORT: "2"}, {})


@pytest.mark.parametrize(
    ("link", "shown"),
    [
        (["h1", "s1-p4"], "4, 1, 2"),  # a gap
        (["h1", "s1"], "none, 1, 2"),
        (["h1", "s1-p1"], "1, 1, 2"),  # twice
        (["h1", "s1-p0"], "0, 1, 2"),
        (["h1", "s1-p511"], "0, 1, 2"),  # no port of a switch in P4
        (["h1", "s1", {"port2": -1}], "0, 1, 2"),
    ],
)
def test_ports_that_are_not_whole_are_not_used(tmp_path: Path, link: list[str], shown: str) -> None:
    topo = write(tmp_path, {**TRIANGLE, "links": [link, *TRIANGLE["links"][1:]]})
    assert ports(build(topo)) == IN_ORDER
    line = f"ports are numbered by the order of links, as those of 's1' are {shown}"
    assert others(topo) == (line, "IPv4 addresses, MAC addresses: the file's own")


@pytest.mark.parametrize(
    ("host", "line"),
    [
        ({}, "got none of 'h3'"),
        ({"ip": "10.0.2.2"}, "got '10.0.2.2' of 'h2' and 'h3'"),
        ({"ip": "ten"}, "got 'ten' of 'h3'"),
        ({"ip": "224.0.0.1"}, "got '224.0.0.1' of 'h3'"),
    ],
)
def test_addresses_that_are_not_whole_are_not_used(
    tmp_path: Path, host: dict[str, str], line: str
) -> None:
    data = {**TRIANGLE, "hosts": {**TRIANGLE["hosts"], "h3": {"mac": "08:00:00:00:03:33", **host}}}
    topo = write(tmp_path, data)
    assert [ip for ip, _ in addresses(build(topo))] == ["10.0.0.3", "10.0.1.3", "10.0.2.3"]
    problem = "IPv4 addresses are Ringleaf's, as not all hosts have one of their own, "
    assert others(topo) == (problem + line, "ports, MAC addresses: the file's own")


LINES = """\
a role=host ipv4={} mac=08:00:00:00:01:11
b role=host ipv4=10.0.2.2 mac={}
s role=switch {}
a s out_port_back={}
s b out_port=1
"""
FITTING = ("10.0.1.1", "08:00:00:00:02:22", "", 2)


def test_our_own_files_have_ports_and_addresses(tmp_path: Path) -> None:
    graph = build(write(tmp_path, LINES.format(*FITTING), "n.edges"))
    assert ports(graph) == {"s0": {1: "h1", 2: "h0"}}
    expected = [("10.0.1.1", "08:00:00:00:01:11"), ("10.0.2.2", "08:00:00:00:02:22")]
    assert addresses(graph) == expected


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (0, "10.0.2.2", "ipv4: all hosts must have one of their own, got '10.0.2.2' of 'a' and"),
        (0, "10.0.1", "ipv4: all hosts must have one of their own, got '10.0.1' of 'a'"),
        (1, "soon", "mac: all hosts must have one of their own, got 'soon' of 'b'"),
        (2, "ipv4=10.0.3.3", "only a host has ipv4, got role 'switch'"),
        (3, 3, "out_port: the links of a switch must have ports 1 to 2, got 3, 1 of 's'"),
        (3, "x", "out_port_back: must be a whole number from 0 to 510, got 'x'"),
    ],
)
def test_wrong_ones_of_our_own_files_are_refused(
    tmp_path: Path, place: int, value: object, message: str
) -> None:
    values: list[object] = [*FITTING]
    values[place] = value
    with pytest.raises(RingleafError, match=message):
        build(write(tmp_path, LINES.format(*values), "n.edges"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10.0.1.1", 0x0A000101),
        ("10.0.1.1/24", 0x0A000101),
        ("0.0.0.0", None),
        ("127.0.0.1", None),
        ("255.255.255.255", None),
        ("::1", None),
        ("10.0.1.1/33", None),
    ],
)
def test_addresses_are_of_one_host(text: str, expected: int | None) -> None:
    assert read_ipv4(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("08:00:00:00:01:aB", 0x0800000001AB),
        ("08-00-00-00-01-AB", 0x0800000001AB),
        ("08:00-00:00:01:AB", None),
        ("08:00:00:00:01", None),
        ("01:00:00:00:00:01", None),  # of a group
        ("00:00:00:00:00:00", None),
    ],
)
def test_macs_are_of_one_station(text: str, expected: int | None) -> None:
    assert read_mac(text) == expected


@st.composite
def tutorials(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a tutorial's network of switches in a row or more, whose ports are in any order."""
    count = draw(st.integers(1, 5))
    names = [f"s{number + 1}" for number in range(count)]
    pairs = {(names[i], names[draw(st.integers(0, i - 1))]) for i in range(1, count)}
    pairs |= draw(st.sets(st.sampled_from([(a, b) for a in names for b in names])))
    joined = {frozenset(pair) for pair in pairs if len({*pair}) == 2}
    ends = [[f"h{i}", draw(st.sampled_from(names))] for i in range(draw(st.integers(2, 5)))]
    links = draw(st.permutations([*ends, *map(sorted, joined)]))
    free = {
        name: draw(st.permutations(range(1, 1 + sum(name in link for link in links))))
        for name in names
    }
    taken = {name: iter(numbers) for name, numbers in free.items()}
    return {
        "hosts": {name: {} for name, _ in ends},
        "switches": {name: {} for name in names},
        "links": [
            [f"{end}-p{next(taken[end])}" if end in taken else end for end in link]
            for link in links
        ],
    }


@given(data=tutorials())
@settings(max_examples=30)
def test_any_ports_are_kept_and_exported(tmp_path_factory: Any, data: dict[str, Any]) -> None:
    folder = tmp_path_factory.mktemp("n")
    graph = build(write(folder, data))
    label = {node: graph.nodes[node]["label"] for node in graph}
    expected = {
        frozenset((a.partition("-")[0], b.partition("-")[0])): {a, b} for a, b in data["links"]
    }
    for switch, peers in ports(graph).items():
        assert [*peers] == [*range(1, len(peers) + 1)]
        for port, peer in peers.items():
            assert f"{label[switch]}-p{port}" in expected[frozenset((label[switch], label[peer]))]
    for form in (FORMATS[name] for name in ("graphml", "edgelist", "nodelink")):
        assert form.write is not None
        copy = build(write(folder, form.write(rows_of(graph)), f"copy{form.endings[0]}"))
        assert ports(copy) == ports(graph), form.summary


def test_every_host_of_its_own_address_has_a_route(tmp_path: Path) -> None:
    """No prefix is that of a switch: 10.0.1.1 is at s0 here, and 10.0.1.0/24 was that of s1."""
    graph = build(write(tmp_path, TRIANGLE))
    for switch, entities in forwarding_entities(graph).items():
        routes = {
            each.match["dst"]: each.action
            for each in entities
            if each.table_id == "ipv4_lpm" and each.match is not None
        }
        whole = {(ipv4(graph, host), 32) for host in hosts(graph)}
        assert set(routes) == whole
        own = f"h{switch[1:]}"
        action = routes[ipv4(graph, own), 32]
        assert (action.args["port"], action.args["dmac"]) == (3, mac(graph, own, 1))


def test_machines_in_place_of_hosts_need_an_order(tmp_path: Path) -> None:
    topo = write(tmp_path, TRIANGLE)
    with pytest.raises(RingleafError, match="machines need ports that follow from an order"):
        build(f"{topo},node=8xh100")


def test_names_that_mean_another_node_here_are_told(tmp_path: Path) -> None:
    topo = write(tmp_path, TRIANGLE)
    assert f"{NAMES}h0 is the file's h1, s0 is the file's s1" in notes(topo)
    links = [["h7", "s0"], ["h8", "s0"]]
    beside = {"hosts": {"h7": {}, "h8": {}}, "switches": {"s0": {}}, "links": links}
    topo = write(tmp_path, beside)
    assert others(topo) == notes(topo)  # no name is another's
    server = "a role=server\nb role=host\na s0\nb s0\n"  # whose switch is our s0
    assert f"{NAMES}s1 is the file's s0" in notes(write(tmp_path, server, "n.edges"))
