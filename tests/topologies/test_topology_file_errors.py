"""Broken topology files: every error names the file, and the line and node where there are any."""

from __future__ import annotations

import bz2
import gzip
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from ringleaf.errors import RingleafError
from ringleaf.experiments.records.folder import RunFolder
from ringleaf.experiments.records.topology_copy import keep_topology
from ringleaf.topologies.files.export import rows_of
from ringleaf.topologies.files.foreign_files import looks_like
from ringleaf.topologies.files.format import FORMATS, choose_format
from ringleaf.topologies.registry import build, count, parse

NODES = "a role=host\nb role=host\ns role=switch\n"
GRAPHML = '<graphml><graph edgedefault="undirected">{}</graph></graphml>'
PAIR = '<node id="a"/><node id="b"/>'
INFRA = """
devices: [{name: d, components: [{name: xpu, choice: xpu, count: 2}], links: [{name: l}]}]
instances: [{name: i, device: d, count: 2}]
links: [{name: l}]
edges: [{ep1: {instance: "i[0]", component: xpu}, ep2: {instance: "i[1]", component: xpu},
         scheme: many2many, link: l}]
"""
GPU = '<pci busid="0:{0}" link_width="16"><gpu dev="{0}" sm="80">{1}</gpu></pci>'
NVLINK = '<nvlink target="x" tclass="0x03"/>'

BROKEN = {
    # edge lists: structure
    "a s\nb s\nc t\n": "line 3: node 'c': must be connected with 'a'",
    "a s\nb s\nd role=switch\n": "line 3: node 'd': must be connected with 'a'",
    "a a\n": "line 1: link a-a: must join two nodes, got one",
    "a b c\n": "line 1: must have two names and attributes",
    "a,s,{}\nb,s,{}\n": "line 1: must have blanks between two names, got 'a,s,'; write them in",
    "a role=host\nb role=switch\na b\n": "must have two hosts at least, got 1",
    "a b\nb c\nc a\n": "must say which nodes are hosts, got no role",
    # attributes
    "a s rate=100\nb s rat=1G\n": "line 2: link b-s: unknown attribute, got 'rat'.*'rate'",
    "a s rate=100GB/s\nb s\n": "line 1: link a-s: rate: must be in bit/s",
    "a s rate=0\nb s\n": "line 1: link a-s: rate: must be above 0",
    "a s rate=1G rate=2G\nb s\n": "line 1: rate is there twice",
    "a s delay=3\nb s\n": "line 1: link a-s: delay: not understood, got '3'",
    "a s delay=2000s\nb s\n": "line 1: link a-s: delay: must be at most 1000s",
    "a s loss=100%\nb s\n": r"line 1: link a-s: loss: must be in \[0, 1\)",
    "a s buffer=1\nb s\n": "line 1: link a-s: buffer: must be at least 16384",
    "a s buffer_back=1\nb s\n": "line 1: link a-s: buffer: must be at least 16384",
    "a 's\n": "line 1: not understood: No closing quotation",
    f"{NODES}a s\nb s\nsomething=1\n": "unknown attribute, got 'something'",
    "a role=hosts\na s\nb s\n": "line 1: node 'a': unknown role, got 'hosts'",
    "a rank=0\na s\nb s\n": "node 'b': rank: all hosts have one or none has",
    "a rank=0\nb rank=0\na s\nb s\n": "line 2: node 'b': rank: 'a' has it, too",
    "a rank=2\nb rank=0\na s\nb s\n": "line 1: node 'a': rank: must be a whole number from 0 to 1",
    "s rank=0\na s\nb s\n": "line 1: node 's': only a host has rank",
    "s in_grid=0\na s\nb s\n": "line 1: node 's': only a host has in_grid",
    "grid=2x2\na s\nb s\n": "grid: must multiply to 2 hosts, got 2x2",
    "grid=2\na in_grid=0\na s\nb s\n": "places of their own in a grid, from 0 to 1, got 1 place",
    "a in_grid=0\nb in_grid=1\na s\nb s\n": "from 0 to 1, got 2 places and grid=none",
    "a tier=0\na s\nb s\n": "line 1: node 'a': only a switch has a tier",
    "a inner_rate=1G\na s\nb s\n": "line 1: node 'a': only a server has inner_rate",
    "s tier=0\na s\nb s\ns t\nt u\nu s\n": "all switches have a tier or none has, got none of 't'",
    "s tier=99\na s\nb s\n": "line 1: node 's': tier: must be a whole number from 0 to 20",
    "a x=1\na s\nb s\n": "line 1: node 'a': must have both x and y",
    "a x=nan y=0\na s\nb s\n": "line 1: node 'a': x: must be a number",
    "hierarchy=3\na s\nb s\n": "hierarchy: must multiply to 2 hosts, got 3",
    "hierarchy=2y1\na s\nb s\n": "hierarchy: must be sizes like 4x2",
    "routing=best\na s\nb s\n": "unknown routing, got 'best'",
    "layout=tiers\na s\nb s\n": "layout: needs x and y of all nodes",
    "routing=dcell_routing\na s\nb s\n": "shape: must be two numbers with routing=dcell",
    "routing=dimension_order\na s\nb s\n": "dimension_order needs a torus of servers",
    "routing=dimension_order shape=2\na s\nb s\n": "needs a torus of servers, got the host 'a'",
    f"{'x' * 81} s\nb s\n": "line 1: node: must be 1 to 80 letters",
}


@pytest.mark.parametrize(("text", "message"), BROKEN.items())
def test_a_broken_edge_list_is_refused(tmp_path: Path, text: str, message: str) -> None:
    refuse(tmp_path / "net.edges", text, message)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("n.graphml", "<graphml>", "line 1: not XML: no element found"),
        ("n.graphml", "<x/>", "line 1: must be a <graphml> with one <graph>, got <x> with 0"),
        (
            "n.graphml",
            '<!DOCTYPE g [<!ENTITY e "x">]>\n<graphml/>',
            "line 1: must have no document type",
        ),
        ("n.graphml", "<g>" * 60 + "</g>" * 60, "at most 50 elements deep"),
        ("n.graphml", GRAPHML.format("\n<node/>"), "line 2: <node> must have id="),
        (
            "n.graphml",
            GRAPHML.format(f'{PAIR}\n<edge source="a" target="z"/>'),
            "line 2: link a-z: no such node, got 'z'",
        ),
        (
            "n.graphml",
            GRAPHML.format(f"{PAIR}\n<node id='a'/>"),
            "line 2: node 'a': is there already, got another on line 1",
        ),
        (
            "n.graphml",
            GRAPHML.format('<node id="a"><data key="k">1</data></node>'),
            "no <key> has this id, got 'k'",
        ),
        (
            "n.graphml",
            GRAPHML.format("<hyperedge/>"),
            "must have nodes and edges, got <hyperedge> among them; draw a node",
        ),
        (
            "n.graphml",
            GRAPHML.format(
                f'{PAIR}<node id="c"/><edge source="c" target="b"/>'
                '<edge source="a" target="b"/><edge source="b" target="a"/>'
            ).replace("und", "d"),
            "link c-b: must have a link back",
        ),
        ("n.json", '{"nodes": [\n', "line 2: not JSON"),
        ("n.json", "[1]", "must be an object with nodes and edges"),
        ("n.json", '{"nodes": 3}', "line 1: must have a list 'nodes', got 3"),
        ("n.json", "[" * 100_000, "not JSON that can be read"),
        (
            "n.json",
            '{"nodes": [{"id": "a"},\n{"name": "b"}], "edges": []}',
            "line 2: must have 'id', a text or whole number, got None",
        ),
        (
            "n.json",
            '{"nodes": [{"id": 1}, {"id": 2}], "edges": [\n{"source": 1, "target": 2, "loss": 2}]}',
            r"line 2: link 1-2: loss: must be in \[0, 1\)",
        ),
        ("n.yaml", "a: [", "not YAML"),
        ("n.yaml", "3", "must be an infrastructure with instances"),
        (
            "n.yaml",
            "infrastructure: {}\n",
            "must have instances, got 'infrastructure'; models before",
        ),
        ("n.yaml", "devices: 3\n", "line 1: devices must be a list of mappings, got '3'"),
        ("n.yaml", INFRA.replace("i[0]", "j[0]"), "line 5: edge: unknown instance, got 'j'"),
        ("n.yaml", INFRA.replace("i[0]", "i[7]"), "line 5: edge: index must be below 2"),
        ("n.yaml", INFRA.replace("i[0]", "i[a]"), "line 5: edge: must have a slice|be a name"),
        ("n.yaml", INFRA.replace("link: l}]", "link: m}]"), "line 5: edge: unknown link, got 'm'"),
        ("n.yaml", INFRA.replace("device: d", "device: e"), "line 3: .*unknown device, got 'e'"),
        ("n.yaml", INFRA.replace("count: 2}]\nlinks", "count: -1}]\nlinks"), "count must be"),
        ("n.yaml", INFRA.replace("count: 2", "count: 900000"), "at most 100000 components"),
        ("n.yaml", INFRA.replace("choice: xpu", "choice: gpu"), "unknown choice, got 'gpu'"),
        ("n.yaml", INFRA.replace("xpu, count", "memory, count"), "must have an xpu or a nic"),
        ("n.yaml", f"{INFRA}description: ringleaf a='b\n", "not understood: No closing quotation"),
        ("n.yaml", f"{INFRA}description: ringleaf hierarchy=3\n", "hierarchy: must multiply to 4"),
        ("n.xml", "<system/>", "line 1: must have a <gpu>, or a <pci> of class"),
        (
            "n.xml",
            "<cpu/>",
            "line 1: must be a <system> of NCCL, or a <graphml> or <gexf>, got <cpu>",
        ),
        ("n.yaml", "hosts: all\n", "or a network of ASTRA-sim with npus_count, got 'hosts'"),
        (
            "n.json",
            '{"graph": {"nodes": [{"id": "a"}], "edges": []}}',
            "must have a list 'nodes', got None; write what 'graph' has without 'graph' around it",
        ),
        (
            "n.json",
            '{"nodes": [{"key": "a"}], "edges": []}',
            "must have 'id', a text or whole number, got None",
        ),
        (
            "n.xml",
            f"<system><cpu>{GPU.format(1, '')}{GPU.format(1, '')}</cpu></system>",
            "must have a busid of its own, got '0:1'",
        ),
        ("n.xml", f"<system><cpu>{GPU.format(1, NVLINK)}</cpu></system>", "two hosts at least"),
    ],
)
def test_another_broken_file_is_refused(tmp_path: Path, name: str, text: str, message: str) -> None:
    refuse(tmp_path / name, text, message)


def refuse(path: Path, text: str, message: str) -> None:
    path.write_text(text)
    with pytest.raises(RingleafError, match=message) as caught:
        parse(str(path))  # all is checked before networkx is loaded
    assert path.name in str(caught.value)


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RingleafError, match=r"can't read, got .*none.edges.*No such file"):
        parse(str(tmp_path / "none.edges"))
    (tmp_path / "net.txt").write_text("a s\nb s\n")
    with pytest.raises(
        RingleafError, match=r"nor the ending says the format, got '.txt'; these are read"
    ):
        parse(str(tmp_path / "net.txt"))
    (tmp_path / "net.edges").write_bytes(b"a s\n\xff s\n")
    with pytest.raises(RingleafError, match=r"line 2: must be UTF-8"):
        parse(str(tmp_path / "net.edges"))
    (tmp_path / "net.edges").write_bytes("a s\nb s\n".encode("utf-16"))
    with pytest.raises(RingleafError, match=r"must be UTF-8, got UTF-16; write it anew"):
        parse(str(tmp_path / "net.edges"))
    os.mkfifo(tmp_path / "pipe.edges")
    with pytest.raises(RingleafError, match=r"must be a plain file"):
        parse(str(tmp_path / "pipe.edges"))


@pytest.mark.parametrize(("ending", "compress"), [(".gz", gzip.compress), (".bz2", bz2.compress)])
def test_a_compressed_file_is_what_it_holds(
    tmp_path: Path, ending: str, compress: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / f"net.edges{ending}"
    path.write_bytes(compress(b"a s\nb s\nc s\n"))
    assert count(str(path)).hosts == 3
    with RunFolder(tmp_path / "out", print) as folder:
        keep_topology(str(path), folder)
    assert (tmp_path / "out" / "topology.edges").read_bytes() == b"a s\nb s\nc s\n"
    path.write_bytes(b"\x28\xb5\x2f\xfd" + bytes(9))
    with pytest.raises(RingleafError, match=r"must not be compressed, got zstd; unpack it first"):
        parse(str(path))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.gv", "/* made\n */\n# by hand\nstrict digraph {\n a -> b }", "Graphviz; gv2gml writes"),
        ("a.mn", '{"application": {\n"dpctl": ""}, "hosts": []}', "MiniEdit; write each link"),
        ("a.mn", '{"hosts": [{"opts": {"hostname": "h1", "nodeNum": 1}}]}', "MiniEdit; write"),
        ("a.json", '{"elements": [{"data": {"id": "a"}}]}', "Cytoscape; write it as GraphML"),
        ("a.json", '{"id": 1, "children": [{"id": 2}]}', "NetworkX's tree JSON; write nx.node_"),
        ("a.csv", "Source,Target,Weight\na,b,1\n", "a table of links; write each link"),
        ("topology.conf", "# racks\nSwitchName=s0 Nodes=n[0-3]\n", "SLURM's topology; write each"),
        ("topology.conf", "switchname=s0 nodes=n[0-3]\n", "SLURM's topology; write each"),
        ("topology.conf", "BlockName=b0 Nodes=n[0-3]\n", "SLURM's topology; write each"),
        ("topology.yaml", "---\n- topology: t\n  flat: true\n", "SLURM's topology; write each"),
        ("a.json", '{"gpus": [{"threadblocks": []}]}', r"an execution plan of MSCCL\+\+, which"),
        ("a.topo", 'vendid=0x2c9\nSwitch 36 "S-1"\n', "ibnetdiscover's list; write each link"),
        ("a.txt", "router 0 node 0 router 1 10\n", "BookSim's anynet; write each link"),
        ("a.txt", "h1-eth0<->s1-eth1 (OK OK)\n", "links as Mininet prints them; write each"),
        ("a.txt", "mininet> net\nh1 h1-eth0:s1-eth1\n", "links as Mininet prints them; write"),
        ("a.json", '{"devices": [{"id": "of:1"}], "links": []}', "a network of ONOS; write each"),
        ("a.ned", "// x\npackage a.b;\nnetwork N {}", r"a network of OMNeT\+\+; write each link"),
        (
            "a.xml",
            '<!DOCTYPE topology SYSTEM "hwloc2.dtd">\n<topology/>',
            "a machine of hwloc; NCCL",
        ),
        ("a.alt", "GRAPH (#nodes #edges):\n9 20 geo:{3,2}\n", "a graph of GT-ITM; write each link"),
        (
            "a.yaml",
            "nodes:\n  - id: n0\n    node_definition: iosv\nlinks: []\n",
            "lab of Cisco's CML",
        ),
        ("a.yml", "topology:\n\n  # x\n  nodes: {a: {}}\n", "a lab of Containerlab; write each"),
        ("a.yaml", "topology: {nodes: {a: {}}}\n", "a lab of Containerlab; write each link"),
        (
            "a.gns3",
            '{"project_id": "1", "topology": {"links": [], "nodes": []}}',
            "a project of GNS3; write each link",
        ),
        (
            "a.unl",
            '<lab name="x">\n<topology><nodes/></topology></lab>',
            "a lab of EVE-NG; write each",
        ),
        ("lab.conf", 'LAB_VERSION=1\n\n# x\nas1-r1[0]="A"\n', "a lab of Kathara; write each link"),
        ("a.xml", '<mxfile host="a"><diagram/></mxfile>', "a drawing of draw.io; write each link"),
        ("a.net", "% x\n*Network y\n*Vertices 1\n", "a graph of Pajek; write it as GraphML"),
        ("a.ned", "network N\n{\n  submodules:\n    a: Node;\n}", r"a network of OMNeT\+\+; write"),
        (
            "a.txt",
            "$ nvidia-smi topo -m\n\tGPU0\tGPU1\nGPU0\t X \tNV18\n",
            "nvidia-smi topo -m; NCCL",
        ),
        ("a.txt", "==== Weight between two GPUs ====\n", "tables of rocm-smi or amd-smi; NCCL"),
        (
            "net.py",
            "import sys\nfrom p4utils.x import NetworkAPI\n",
            "the topology.json that it saves",
        ),
        ("net.py", "import networkx as nx\n", "a script; have it call nx.write_graphml"),
        ("a.xml", '<platform_description version="1"/>', "SimGrid before 3.0; simgrid_update_xml"),
    ],
)
def test_files_of_others_are_named_and_what_to_do(
    tmp_path: Path, name: str, text: str, message: str
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(RingleafError, match=rf"must be a topology, got .*{message}.*these are"):
        parse(str(tmp_path / name))


def test_names_of_files_are_matched_in_linear_time() -> None:
    for text in ("#\n" * 100_000, "/**/" * 100_000, "//\n" * 100_000 + "x", "{" * 100_000):
        assert not looks_like(text)
    for text in ("\n" * 200_000, "topology:\n" * 50_000, '{"project_id":' * 50_000):
        assert not looks_like(text)
    for text in ("h" * 200_000, "h h-eth1:" * 50_000, '{"devices":[' * 50_000):
        assert not looks_like(text)


def test_networks_are_bounded(tmp_path: Path) -> None:
    path = tmp_path / "net.edges"
    path.write_text("".join(f"h{i} s\n" for i in range(255)))
    with pytest.raises(RingleafError, match=r"line 255: node 's': hosts must be among its first"):
        parse(str(path))
    path.write_text("".join(f"h{i} s{i}\ns{i} t\n" for i in range(511)))
    with pytest.raises(RingleafError, match=r"node 't': at most 510 links, got 511"):
        parse(str(path))
    path.write_text("".join(f"h{i} h{i + 1}\n" for i in range(20_000)))
    with pytest.raises(RingleafError, match=r"at most 20000 nodes, got 20001"):
        parse(str(path))
    path.write_bytes(b"#" * (16 << 20) + b"#")
    with pytest.raises(RingleafError, match=r"at most 16777216 bytes"):
        parse(str(path))


def test_too_few_hosts_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "net.edges"
    path.write_text("a s\nb s\n")
    for make in (build, count):
        with pytest.raises(RingleafError, match=r"has 2 hosts, 3 are wanted"):
            make(str(path), hosts=3)


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "net.edges"
    path.write_text("a s\nb s\n")
    assert count(str(path)).hosts == 2
    path.write_text("a s\nb s\nc s\n")
    assert count(str(path)).hosts == 3


def test_formats_are_chosen_by_name_or_ending() -> None:
    assert choose_format("", Path("x.edges")) is FORMATS["edgelist"]
    assert choose_format("nccl", None) is FORMATS["nccl"]
    with pytest.raises(RingleafError, match=re.escape("format: needs a name, got none")):
        choose_format("", None)


def test_an_edge_list_can_not_say_every_name(tmp_path: Path) -> None:
    path = tmp_path / "net.json"
    nodes = '[{"id": "a=b", "role": "host"}, {"id": "c", "role": "host"}]'
    path.write_text(f'{{"nodes": {nodes}, "edges": [{{"source": "a=b", "target": "c"}}]}}')
    rows = rows_of(build(str(path)))  # whose names are ours again
    assert [node.name for node in rows.nodes] == ["h0", "h1"]
