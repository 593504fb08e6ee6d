"""Rates, delays and roles by the names that other programs give them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.errors import ConfigError
from ringleaf.topologies.files.foreign import translate
from ringleaf.topologies.files.foreign_units import rate_unit
from ringleaf.topologies.files.rows import FileRow, LinkRow, NetworkRows, NodeRow
from ringleaf.topologies.graph import hosts, link
from ringleaf.topologies.registry import build, notes, parse


def read(values: Mapping[str, str], about: Mapping[str, str] | None = None) -> NetworkRows:
    """Return the translation of a network with one link that has these attributes."""
    nodes = tuple(NodeRow(name, FileRow(1, {})) for name in "ab")
    return translate(
        NetworkRows(nodes, (LinkRow("a", "b", FileRow(7, values)),), FileRow(1, about or {})),
        "topology n.json",
    )


def link_of(values: Mapping[str, str], about: Mapping[str, str] | None = None) -> dict[str, str]:
    return dict(read(values, about).links[0].row.values)


@pytest.mark.parametrize(
    ("values", "bps"),
    [
        ({"LinkSpeedRaw": "10000000000.0"}, 10**10),
        ({"LinkSpeedRaw": "64000"}, 64_000),
        ({"LinkSpeed": "2.5", "LinkSpeedUnits": "G"}, 2_500_000_000),
        ({"LinkSpeed": "64", "LinkSpeedUnits": "K"}, 64_000),
        ({"LinkSpeed": "1", "LinkSpeedRaw": "3e9", "LinkSpeedUnits": "G"}, 3 * 10**9),
        ({"capacity": "10000000000"}, 10**10),  # in any other unit, more than there is
        ({"bandwidth": "1e10"}, 10**10),
        ({"bandwidth": "40 Gbps"}, 40 * 10**9),
        ({"bandwidth": "40Gbit/s"}, 40 * 10**9),
        ({"capacity": "622 Mb/s"}, 622 * 10**6),
        ({"bandwidth_gbps": "25"}, 25 * 10**9),
        ({"linkSpeedMbps": "155"}, 155 * 10**6),
        ({"Bandwidth (Gbps)": "100"}, 100 * 10**9),
        ({"bw_GBps": "50"}, 400 * 10**9),
        ({"max_bandwidth_Mbit": "20"}, 20 * 10**6),
        ({"data_rate": "9.6kbps"}, 9600),
        ({"link_capacity": "8Gbit"}, 8 * 10**9),
        ({"bit_rate": "5 Gbits/sec"}, 5 * 10**9),
        ({"speed": "100GbE"}, 10**11),
        ({"speed": "1 Gigabit"}, 10**9),
        ({"bandwidth": "10", "rate_unit": "G"}, 10**10),
    ],
)
def test_rates_by_other_names(values: dict[str, str], bps: int) -> None:
    assert link_of(values) == {"rate": str(bps)}
    assert not [note for note in read(values).notes if note.startswith("not used")]


@pytest.mark.parametrize(
    ("values", "about", "bps"),
    [
        ({"capacity": "10"}, {"rate_unit": "G"}, 10 * 10**9),
        ({"capacity": "10"}, {"capacity_unit": "Mbps"}, 10**7),  # FNSS
        ({"bw": "100"}, {"rate_unit": "Mbit/s"}, 10**8),  # Mininet
        ({"bandwidth": "50"}, {"rate_unit": "GB/s"}, 400 * 10**9),
        ({"rate": "5"}, {"rate_unit": "K"}, 5000),
        ({"capacity": "2e9"}, {"rate_unit": "bit/s"}, 2 * 10**9),
    ],
)
def test_the_unit_of_a_file(values: dict[str, str], about: dict[str, str], bps: int) -> None:
    assert link_of(values, about) == {"rate": str(bps)}


@pytest.mark.parametrize(
    ("values", "about", "ps"),
    [
        ({"latency": "5ms"}, {}, "5ms"),
        ({"latency_ms": "2.5"}, {}, "2500000000ps"),
        ({"delayms": "2"}, {}, "2000000000ps"),  # nearly one of ours, and none
        ({"delay_s": "1"}, {}, "1000000000000ps"),
        ({"propagation-delay": "0"}, {}, "0ps"),
        ({"delay": "3"}, {"delay_unit": "us"}, "3000000ps"),
        ({"delay": "3"}, {"delay_unit": "\N{MICRO SIGN}s"}, "3000000ps"),
        ({"latency_ns": "500"}, {}, "500000ps"),
        ({"length_km": "200"}, {}, "1000000000ps"),  # 1 ms
        ({"distance": "10"}, {"delay_unit": "km"}, "50000000ps"),
        ({"dist": "20 m"}, {}, "100000ps"),
        ({"latency": "5", "latencyUnit": "ms"}, {}, "5000000000ps"),
        ({"delay": "5", "delay_unit": "us"}, {}, "5000000ps"),
        ({"latency": "5", "delay_unit": "us"}, {}, "5000000ps"),
        ({"delay_msec": "5"}, {}, "5000000000ps"),
        ({"latency": "5 microseconds"}, {}, "5000000ps"),
        ({"delay": "3"}, {"delay_unit": "Milliseconds"}, "3000000000ps"),
    ],
)
def test_delays_by_other_names(values: dict[str, str], about: dict[str, str], ps: str) -> None:
    assert link_of(values, about) == {"delay": ps}
    assert not [note for note in read(values, about).notes if note.startswith("not used")]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"capacity": "10"},
            "line 7: link a-b: capacity: a number needs a unit, got '10'; write n",
        ),
        ({"LinkSpeed": "155"}, "LinkSpeed: a number needs a unit"),
        ({"bandwidth": "10", "bandwidth_unit": "furlong"}, "bandwidth: a number needs a unit"),
        ({"bandwidth": "fast"}, "bandwidth: must be a number, with or without a unit, got 'fast'"),
        (
            {"delay": "0.001"},
            "delay: a number needs a unit, got '0.001'; write n.json,delay_unit=",
        ),
        ({"latency": "3"}, "latency: a number needs a unit, got '3'; write n.json,delay_unit=ms"),
        ({"latency_us": "x"}, "latency_us: must be a number"),
        ({"bandwidth_GB": "12.5"}, "bandwidth_GB: a number needs a unit, got '12.5'"),
        ({"bandwidth": "10", "bandwidth_unit": "MB"}, "a number needs a unit, got '10'"),
        ({"bandwidth": "10 Gibps"}, "unknown unit, got '10 Gibps'; write it like 10G, or"),
        ({"bandwidth": "10,000 Mbps"}, "bandwidth: unknown unit, got '10,000 Mbps'"),
    ],
)
def test_a_number_that_may_mean_several_rates_is_asked_about(
    values: dict[str, str], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        read(values)


def test_bytes_in_a_value_are_asked_about_as_ours_are(tmp_path: Path) -> None:
    graph: nx.Graph[str] = nx.Graph()
    graph.add_edges_from([("a", "s"), ("b", "s")], bandwidth="10 GB/s")
    (tmp_path / "n.json").write_text(json.dumps(nx.node_link_data(graph)))
    with pytest.raises(ConfigError, match=r"must be in bit/s, got '10 GB/s'.* write 80G"):
        parse(str(tmp_path / "n.json"))


@pytest.mark.parametrize(
    ("unit", "bps"),
    [
        *(("G", 10**9), ("gbps", 10**9), ("Gbit/s", 10**9), ("MB/s", 8 * 10**6), ("Kbytes", 8000)),
        *(("GbE", 10**9), ("GE", 10**9), ("Megabits/s", 10**6), ("GB", None), ("KB", None)),
        *(("bps", 1), ("bit/s", 1), ("GBPS", 10**9), ("GBps", 8 * 10**9), ("x", None), ("", 1)),
    ],
)
def test_units_of_rates(unit: str, bps: int | None) -> None:
    assert rate_unit(unit) == bps


@pytest.mark.parametrize(
    ("values", "ps"),
    [
        ({"delay_\N{MICRO SIGN}s": "5"}, "5000000ps"),
        ({"Latency (\N{GREEK SMALL LETTER MU}s)": "5"}, "5000000ps"),
        ({"delay_s": "5"}, "5000000000000ps"),
        ({"latency [s]": "5"}, "5000000000000ps"),
        ({"delayS": "5"}, "5000000000000ps"),
        ({"latency_micros": "5"}, "5000000ps"),
        ({"propagation_delay_nanos": "5"}, "5000ps"),
        ({"delay": "5 milliseconds"}, "5000000000ps"),
        ({"latency": "5 micros"}, "5000000ps"),
    ],
)
def test_units_of_delays_in_names_and_words(values: dict[str, str], ps: str) -> None:
    assert link_of(values) == {"delay": ps}


@pytest.mark.parametrize("name", ["delays", "link_delays", "Latencys"])
def test_a_plural_is_no_unit(name: str) -> None:
    with pytest.raises(ConfigError, match=r"a number needs a unit, got '5'"):
        link_of({name: "5"})


@pytest.mark.parametrize(
    ("values", "bps"),
    [
        ({"bandwidth (Gb/s)": "50"}, 50 * 10**9),
        ({"bandwidth (GB/s)": "50"}, 400 * 10**9),
        ({"bandwidth_gbytes_per_sec": "50"}, 400 * 10**9),
        ({"capacity_gigabits_per_second": "50"}, 50 * 10**9),
        ({"speed [Mbit/s]": "50"}, 50 * 10**6),
        ({"line_rate_gbps": "50"}, 50 * 10**9),
        ({"port_speed": "10GigE"}, 10**10),
        ({"bandwidth": "10 gigabits per second"}, 10**10),
        ({"rate": "10 gigabits per second"}, 10**10),
    ],
)
def test_units_of_rates_that_are_written_out(values: dict[str, str], bps: int) -> None:
    assert link_of(values) == {"rate": str(bps)}


def test_gigabytes_or_gigabits_are_told_by_the_unit_of_the_file() -> None:
    """`GB` was taken for gigabits, an eighth of what its author may mean."""
    values = {"bandwidth_GB": "12.5"}
    assert link_of(values, {"rate_unit": "GB/s"}) == {"rate": str(10**11)}
    assert link_of(values, {"rate_unit": "G"}) == {"rate": "12500000000"}


@pytest.mark.parametrize("nothing", ["nan", "NaN", "NAN", "null", "N/A", "-", "unknown"])
def test_links_may_lack_values(nothing: str) -> None:
    """Tables have no empty cells of numbers: they write NaN there."""
    assert link_of({"bandwidth": nothing, "latency": nothing, "rate": "10G"}) == {"rate": "10G"}


def test_networks_of_tables_have_nan_where_a_link_has_no_rate(tmp_path: Path) -> None:
    graph = nx.Graph([("a", "s"), ("b", "s")])
    graph.add_edge("a", "s", bandwidth=25e9)
    graph.add_edge("b", "s", bandwidth=float("nan"))
    nx.write_gml(graph, tmp_path / "n.gml")
    nx.write_graphml(graph, tmp_path / "n.graphml")
    nx.write_gexf(graph, tmp_path / "n.gexf")
    (tmp_path / "n.json").write_text(json.dumps(nx.node_link_data(graph)))
    for name in ("n.gml", "n.graphml", "n.gexf", "n.json"):
        made = build(str(tmp_path / name), rate_bps=7)
        assert [link(made, host, "s0").rate_bps for host in hosts(made)] == [25 * 10**9, 7], name
        assert notes(str(tmp_path / name))[0].endswith("bandwidth; 1 of 2 links has none")


@pytest.mark.parametrize(
    ("label", "terms"),
    [
        ("10 Gbps", {"rate": str(10**10)}),
        ("100G", {"rate": str(10**11)}),
        ("2.5 Gbit/s, 5 ms", {"rate": "2500000000", "delay": "5000000000ps"}),
        ("1GbE 300 km", {"rate": str(10**9), "delay": "1500000000ps"}),
        ("12.5 GB/s | 500ns", {"rate": str(10**11), "delay": "500000ps"}),
        ("20us", {"delay": "20000000ps"}),
        ("12.5 GB", {}),  # of bits, or of bytes?
        *((each, {}) for each in ("10", "10 m", "10 g", "STM-16", "10G to Oslo", "link 10G", "")),
    ],
)
def test_labels_of_links_may_say_rates_and_delays(label: str, terms: dict[str, str]) -> None:
    """Who draws a network writes `10G` at a link; such links had the usual rate."""
    assert link_of({"LinkLabel": label}) == terms
    assert link_of({"label": label, "bandwidth": "3G", "latency": "1s"}) == {
        "rate": "3000000000",
        "delay": "1s",
    }


@pytest.mark.parametrize(
    ("label", "said"),
    [
        *(("2x100G", True), ("10 Gbps Ethernet", True), ("< 2.5 Gbps", True)),
        *(("10 Gbps / 5 ms", True), ("about 5 us", True)),
        *(
            ("10 Gbps, 5 ms", False),
            ("eth1", False),
            ("enp1s0", False),
            ("7", False),
            ("5 m", False),
        ),
    ],
)
def test_labels_that_have_more_than_a_rate_are_named(label: str, said: bool) -> None:
    note = f"not used: labels like {label!r} of links, which are more than a rate or a delay"
    assert (note in read({"label": label}).notes) == said
    assert note not in read({"label": label, "rate": "1G"}).notes


def test_labels_that_are_used_are_named(tmp_path: Path) -> None:
    (tmp_path / "n.graphml").write_text(
        '<graphml xmlns:y="http://www.yworks.com/xml/graphml">'
        '<key for="edge" id="d6" yfiles.type="edgegraphics"/><graph edgedefault="undirected">'
        '<node id="a"/><node id="b"/><node id="s"/><edge source="a" target="s">'
        '<data key="d6"><y:PolyLineEdge><y:EdgeLabel>10G\n2ms</y:EdgeLabel></y:PolyLineEdge></data>'
        '</edge><edge source="b" target="s"/></graph></graphml>'
    )
    (tmp_path / "n.gexf").write_text(
        '<gexf><graph><nodes><node id="a"/><node id="b"/><node id="s"/></nodes><edges>'
        '<edge source="a" target="s" label="10G, 2ms"/><edge source="b" target="s"/></edges>'
        "</graph></gexf>"
    )
    for name in ("n.graphml", "n.gexf"):
        topo = str(tmp_path / name)
        first = link(build(topo), "h0", "s0")
        assert (first.rate_bps, first.delay_ps) == (10**10, 2 * 10**9)
        assert notes(topo)[:2] == (
            "rates of links are by label; 1 of 2 links has none",
            "delays of links are by label; 1 of 2 links has none",
        )


def test_what_changes_no_result_is_passed_over_and_the_rest_is_named() -> None:
    looks = {"LinkLabel": "STM-16", "color": "red", "key": "0", "LinkNote": "new", "width": "3"}
    assert read(looks).notes == ()
    assert link_of({**looks, "weight": "3"}) == {}
    found = read({"weight": "3", "LinkStatus": "planned", "jitter": "", "length": "12"})
    assert found.notes == ("not used: 'weight', 'LinkStatus', 'length' of links",)


def test_what_is_nearly_ours_in_files_of_others_is_named(tmp_path: Path) -> None:
    nodes = [{"id": name, "ip4": "10.0.0.1", "mac1": "?"} for name in "abs"]
    links = [{"source": name, "target": "s", "relay": "yes", "dealy": 1} for name in "ab"]
    (tmp_path / "n.json").write_text(json.dumps({"nodes": nodes, "links": links}))
    [used, *_] = notes(str(tmp_path / "n.json"))
    assert used == (
        "not used: 'relay' (did you mean 'delay'?), 'dealy' (did you mean 'delay'?) of links; "
        "'ip4' (did you mean 'ipv4'?), 'mac1' (did you mean 'mac'?) of nodes"
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("layout", "spring"),
        ("hosts", 2),
        ("routing", "ecmp"),
        ("shape", "tree"),
        ("machine", "dgx"),
    ],
)
def test_what_others_say_of_a_graph_by_names_of_ours_is_named(
    name: str, value: object, tmp_path: Path
) -> None:
    """NetworkX writes all of `G.graph`."""
    graph = nx.Graph([("a", "s"), ("b", "s")], **{name: value})
    (tmp_path / "n.json").write_text(json.dumps(nx.node_link_data(graph)))
    topo = str(tmp_path / "n.json")
    assert notes(topo)[0] == f"not used: {name!r} of the file"
    assert len(hosts(build(f"{topo},hosts=each"))) == 3


@pytest.mark.parametrize(
    ("about", "message"),
    [
        ({"routing": "shortst"}, "unknown routing, got 'shortst'; did you mean 'shortest'"),
        ({"shape": "4,4"}, "shape: must be sizes like 4x2, got '4,4'"),
        ({"hosts": "eachh"}, "unknown hosts, got 'eachh'; did you mean 'each'"),
    ],
)
def test_values_that_are_nearly_ours_are_refused(
    about: dict[str, object], message: str, tmp_path: Path
) -> None:
    graph = nx.Graph([("a", "s"), ("b", "s")], **about)
    (tmp_path / "n.json").write_text(json.dumps(nx.node_link_data(graph)))
    with pytest.raises(ConfigError, match=message):
        build(str(tmp_path / "n.json"))


def test_coordinates_of_maps_are_no_places_of_drawings() -> None:
    """UTM's northings go to 10^7 m."""
    values = {"x": "465123.5", "y": "5246789.1"}
    rows = NetworkRows((NodeRow("a", FileRow(1, values)),), (), FileRow(1, {}))
    assert translate(rows, "topology n.json").nodes[0].row.values == {}
    values["y"] = "1e6"
    assert translate(rows, "topology n.json").nodes[0].row.values == values


def test_the_speed_of_light_is_said() -> None:
    assert read({"length_km": "3"}).notes == (
        "delays of links are by length_km, at 5 us a kilometre",
    )


def test_several_rates_of_a_link_are_used_once() -> None:
    found = read({"bw": "96Mbps", "max_bw": "97Mbps"})
    assert found.links[0].row.values == {"rate": "96000000"}
    assert found.notes == ("rates of links are by bw", "not used: 'max_bw' of links")


def test_how_many_links_have_no_rate_is_said(tmp_path: Path) -> None:
    graph = nx.Graph([("a", "s"), ("b", "s"), ("c", "s")])
    graph.edges["a", "s"]["capacity"] = "40G"
    (tmp_path / "n.json").write_text(json.dumps(nx.node_link_data(graph)))
    topo = str(tmp_path / "n.json")
    assert notes(topo)[0] == "rates of links are by capacity; 2 of 3 links have none"
    made = build(topo, rate_bps=7)
    assert [link(made, host, "s0").rate_bps for host in hosts(made)] == [40 * 10**9, 7, 7]


@pytest.mark.parametrize(
    ("name", "words", "count"),
    [
        ("type", ("host", "host", "switch"), 2),
        ("node_type", ("Server", "server", "Router"), 2),
        ("role", ("gpu", "gpu", "leaf"), 2),
        ("type", ("switch", "host", "switch"), 1),
        ("type", ("PoP", "University", "switch"), None),  # no words for roles: by links
    ],
)
def test_roles_by_other_names(
    tmp_path: Path, name: str, words: tuple[str, ...], count: int | None
) -> None:
    graph = nx.Graph([("a", "s"), ("b", "s")])
    graph.add_nodes_from(
        [("a", {name: words[0]}), ("b", {name: words[1]}), ("s", {name: words[2]})]
    )
    (tmp_path / "n.json").write_text(json.dumps(nx.node_link_data(graph)))
    topo = str(tmp_path / "n.json")
    if count == 1:
        with pytest.raises(Exception, match="must have two hosts at least, got 1"):
            parse(topo)
        return
    assert len(hosts(build(topo))) == 2
    said = any("no node has a role" in note for note in notes(topo))
    assert said == (count is None)


def test_an_edge_list_has_our_words_only(tmp_path: Path) -> None:
    (tmp_path / "n.edges").write_text("a s capacity=10G\nb s\n")
    with pytest.raises(ConfigError, match="unknown attribute, got 'capacity'"):
        parse(str(tmp_path / "n.edges"))
    (tmp_path / "n.edges").write_text("a s\nb s\n")
    with pytest.raises(ConfigError, match="rate_unit is for files of other programs"):
        parse(f"{tmp_path / 'n.edges'},rate_unit=G")


def test_networkx_edge_lists_have_data(tmp_path: Path) -> None:
    graph: nx.MultiGraph[str] = nx.MultiGraph()
    graph.add_edges_from([("a", "s"), ("b", "s"), ("b", "s")], capacity="10 Gbps")
    for name in ("n.edges", "n.edgelist", "n.txt", "n"):
        nx.write_edgelist(graph, tmp_path / name)
        made = build(str(tmp_path / name))
        assert [link(made, host, "s0").rate_bps // 10**9 for host in hosts(made)] == [10, 20]


def test_networkx_edge_lists_may_have_numbers_of_numpy(tmp_path: Path) -> None:
    """NetworkX writes what Python prints, which is no literal of NumPy's numbers."""
    graph = nx.Graph([("a", "s"), ("b", "s")])
    for name, value in (("a", "np.float64(25e9)"), ("b", "np.float64(nan)")):
        graph.edges[name, "s"]["speed"] = value
    text = "".join(
        f"{a} {b} {{'key': np.int64(0), 'capacity': {data['speed']}, 'cost': inf}}\n"
        for a, b, data in graph.edges(data=True)
    )
    (tmp_path / "n.edgelist").write_text(text)
    made = build(str(tmp_path / "n.edgelist"), rate_bps=7)
    assert [link(made, host, "s0").rate_bps for host in hosts(made)] == [25 * 10**9, 7]
    (tmp_path / "n.edgelist").write_text("a s {'capacity': np.exp(abs(1))}\nb s {}\n")
    with pytest.raises(ConfigError, match="line 1: must be data like"):
        build(str(tmp_path / "n.edgelist"))


def test_networkx_grids_have_lists_as_names(tmp_path: Path) -> None:
    graph = nx.grid_2d_graph(2, 2)
    (tmp_path / "n.json").write_text(json.dumps(nx.node_link_data(graph)))
    made = build(f"{tmp_path / 'n.json'},hosts=each")
    assert [made.nodes[host]["label"] for host in hosts(made)] == ["0,0", "0,1", "1,0", "1,1"]


def test_d3_names_nodes_by_their_place(tmp_path: Path) -> None:
    (tmp_path / "n.json").write_text(
        '{"nodes": [{"name": "x", "group": 1}, {"name": "y"}, {"name": "z"}],'
        ' "links": [{"source": 0, "target": 2}, {"source": 1, "target": 2}]}'
    )
    made = build(str(tmp_path / "n.json"))
    assert [made.nodes[host]["label"] for host in hosts(made)] == ["x", "y"]


def test_yed_keeps_looks_in_elements_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "n.graphml").write_text(
        '<graphml xmlns:y="http://www.yworks.com/xml/graphml">'
        '<key for="node" id="d6" yfiles.type="nodegraphics"/>'
        '<graph edgedefault="directed">'
        + "".join(
            f'<node id="{name}"><data key="d6"><y:ShapeNode><y:Fill color="#FFCC00"/>'
            f"<y:NodeLabel>{name}</y:NodeLabel></y:ShapeNode></data></node>"
            for name in "abs"
        )
        + "".join(f'<edge source="{a}" target="{b}"/>' for a, b in ("as", "sa", "bs", "sb"))
        + "</graph></graphml>"
    )
    assert len(hosts(build(str(tmp_path / "n.graphml")))) == 2
    assert len(notes(str(tmp_path / "n.graphml"))) == 1


@given(st.integers(1, 9999), st.sampled_from("KMG"), st.sampled_from(["capacity", "bw", "Speed"]))
def test_a_rate_is_the_same_in_all_ways_to_say_it(number: int, unit: str, name: str) -> None:
    bps = number * {"K": 10**3, "M": 10**6, "G": 10**9}[unit]
    for values, about in (
        ({name: f"{number}{unit}"}, {}),
        ({name: f"{number} {unit}bit/s"}, {}),
        ({f"{name}_{unit}bps": str(number)}, {}),
        ({name: str(number), f"{name}Units": unit}, {}),
        ({name: str(number)}, {"rate_unit": f"{unit}bps"}),
        ({"LinkSpeedRaw": f"{bps}.0"}, {}),
    ):
        assert link_of(values, about) == {"rate": str(bps)}


def test_a_rate_of_ours_needs_a_unit_as_others_do() -> None:
    """It was 100 bit/s, at which a run takes days."""
    with pytest.raises(ConfigError, match=r"link a-b: rate: a number needs a unit, got '100'"):
        read({"rate": "100"})
    with pytest.raises(ConfigError, match=r"rate_back: a number needs a unit, got '2.5'"):
        read({"rate": "1G", "rate_back": "2.5"})
    assert link_of({"rate": "100", "rate_back": "1e9"}, {"rate_unit": "G"}) == {
        "rate": str(10**11),
        "rate_back": str(10**18),
    }
    assert link_of({"rate": "100000000000"}) == {"rate": str(10**11)}


@pytest.mark.parametrize(
    ("nodes", "links"),
    [
        ([{"id": "a"}, {"id": "b"}, {"id": "c"}], [(0, 1), (1, 2)]),  # NetworkX 1
        ([{"name": "a"}, {"name": "b"}, {"name": "c"}], [("a", "b"), ("b", "c")]),
        ([{"name": "a"}, {"name": "b"}, {"name": "c"}], [(0, 1), (1, 2)]),  # d3
        ([{"id": "a"}, {"id": "b"}, {"id": "c"}], [("a", "b"), ("b", "c")]),
        (
            [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}, {"id": 0, "name": "c"}],
            [(1, 2), (2, 0)],
        ),
        (
            [{"id": "2", "name": "a"}, {"id": "0", "name": "b"}, {"id": "10", "name": "c"}],
            [(2, 0), (0, 10)],
        ),
        (
            [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}, {"id": 0, "name": "c"}],
            [("a", "b"), ("c", "b")],
        ),
    ],
)
def test_ends_of_links_by_id_name_and_place(
    nodes: list[dict[str, object]], links: list[tuple[object, object]], tmp_path: Path
) -> None:
    edges = [{"source": a, "target": b} for a, b in links]
    (tmp_path / "n.json").write_text(json.dumps({"nodes": nodes, "links": edges}))

    graph = build(str(tmp_path / "n.json"))

    labels = nx.get_node_attributes(graph, "label")
    assert {frozenset((labels[a], labels[b])) for a, b in graph.edges} == {
        frozenset("ab"),
        frozenset("bc"),
    }


def test_networks_that_p4_utils_keeps(tmp_path: Path) -> None:
    """Its bandwidths are Mininet's, in Mbit/s, and losses in percent; flags say what nodes are."""
    network = {
        "nodes": [
            {"id": "h1", "isHost": True},
            {"id": "h2", "isHost": True},
            {"id": "s1", "isSwitch": True, "isP4Switch": True},
            {"id": "s2", "isSwitch": True, "isP4Switch": True},
        ],
        "links": [
            {"source": "h1", "target": "s1", "bw": 10, "delay": "2ms", "loss": 1},
            {"source": "h2", "target": "s1", "bw": None, "delay": None, "loss": None},
            {"source": "s1", "target": "s2", "bw": 2.5},  # a switch with one link
        ],
    }
    (tmp_path / "topology.json").write_text(json.dumps(network))

    graph = build(str(tmp_path / "topology.json"))

    assert [graph.nodes[name]["label"] for name in hosts(graph)] == ["h1", "h2"]
    first, last = (link(graph, *ends) for ends in (("h0", "s0"), ("s0", "s1")))
    assert (first.rate_bps, first.delay_ps, first.loss) == (10**7, 2 * 10**9, 0.01)
    assert last.rate_bps == 2_500_000
    last = link(build(f"{tmp_path / 'topology.json'},rate_unit=G"), "s0", "s1")
    assert last.rate_bps == 2_500_000_000


def test_a_flag_of_switches_makes_no_network_p4_utils(tmp_path: Path) -> None:
    """Anyone may write isSwitch: rates are asked about, and losses are shares."""
    nodes = [{"id": name, "isSwitch": name == "s"} for name in "abs"]
    links = [{"source": name, "target": "s", "bw": 100, "loss": 0.01} for name in "ab"]
    (tmp_path / "n.json").write_text(json.dumps({"nodes": nodes, "links": links}))
    with pytest.raises(ConfigError, match="link a-s: bw: a number needs a unit, got '100'"):
        build(str(tmp_path / "n.json"))
    first = link(build(f"{tmp_path / 'n.json'},rate_unit=G"), "h0", "s0")
    assert (first.rate_bps, first.loss) == (10**11, 0.01)


def test_our_own_roles_may_be_in_capitals() -> None:
    nodes = (
        NodeRow("a", FileRow(1, {"role": "Host"})),
        NodeRow("b", FileRow(2, {"role": "SWITCH"})),
    )
    rows = translate(NetworkRows(nodes, (), FileRow(1, {})), "topology n.json")
    assert [each.row.values["role"] for each in rows.nodes] == ["host", "switch"]


STAR = [{"id": "a", "role": "host"}, {"id": "b", "role": "host"}, {"id": "s", "role": "switch"}]
UP = [{"source": end, "target": "s", "rate": "100G"} for end in "ab"]
DOWN = [{"source": "s", "target": end, "rate": "50G"} for end in "ab"]


@pytest.mark.parametrize("value", [True, "true", "True", 1, "yes"])
def test_directed_may_be_a_text(value: object, tmp_path: Path) -> None:
    """Links that are not directed are both ways, so that the two of a pair add up to 150 Gbit/s."""
    network = {"directed": value, "multigraph": True, "nodes": STAR, "links": UP + DOWN}
    (tmp_path / "n.json").write_text(json.dumps(network))
    graph = build(str(tmp_path / "n.json"))
    assert link(graph, "h0", "s0").rate_bps == 10**11
    assert link(graph, "s0", "h0").rate_bps == 5 * 10**10


@pytest.mark.parametrize("value", [False, "false", 0, None])
def test_undirected_may_be_a_text(value: object, tmp_path: Path) -> None:
    (tmp_path / "n.json").write_text(json.dumps({"directed": value, "nodes": STAR, "edges": UP}))
    graph = build(str(tmp_path / "n.json"))
    assert link(graph, "s0", "h0").rate_bps == link(graph, "h0", "s0").rate_bps == 10**11


def test_of_links_and_edges_one_is_filled(tmp_path: Path) -> None:
    file = tmp_path / "n.json"
    file.write_text(json.dumps({"nodes": STAR, "links": [], "edges": UP}))
    assert len(hosts(build(str(file)))) == 2
    file.write_text(json.dumps({"nodes": STAR, "links": UP[:1], "edges": UP[1:]}))
    with pytest.raises(ConfigError, match="line 1: must have edges or links, got both lists"):
        build(str(file))


def test_a_name_is_in_an_object_once(tmp_path: Path) -> None:
    """Python takes the last of two values."""
    file = tmp_path / "n.json"
    text = json.dumps({"nodes": STAR, "links": UP}).replace('"links"', '\n"links"')
    file.write_text(text.replace('"rate": "100G"}]', '\n"rate": "100G", "rate": "10G"}]'))
    message = "line 2: a name must be there once, got 'rate' twice; leave out one"
    with pytest.raises(ConfigError, match=message):
        build(str(file))


def test_lat_of_a_link_is_a_latency_and_of_a_node_a_place() -> None:
    assert link_of({"lat": "10ms"}) == {"delay": "10ms"}
    with pytest.raises(ConfigError, match="link a-b: lat: a number needs a unit, got '10'"):
        read({"lat": "10"})
    nodes = tuple(NodeRow(name, FileRow(1, {"lat": "59.9"})) for name in "ab")
    rows = NetworkRows(nodes, (LinkRow("a", "b", FileRow(2, {})),), FileRow(1, {}))
    assert translate(rows, "topology n.json").notes == ()
