"""Formats of topology files: small files whose networks are known by hand."""

from __future__ import annotations

from pathlib import Path

from ringleaf.topologies.graph import hosts, link
from ringleaf.topologies.registry import build

EDGES = """# a comment
b role=host rank=1
a role=host rank=0
a s rate=10G delay=2us
s b rate=40G rate_back=20G loss=1%  # another
"""
GML = """graph [
  node [ id 3 label "a" role "host" ]
  node [ id 5 label "b" role "host" ]
  node [ id 4 label "s" role "switch" ]
  edge [ source 3 target 4 rate "10G" delay "2us" ]
  edge [ source 4 target 5 rate "40G" rate_back "20G" loss "1%" ]
]
"""
GEXF = """<gexf xmlns="http://gexf.net/1.3" version="1.3"><graph>
 <attributes class="node"><attribute id="0" title="role"><default>host</default></attribute>
 </attributes>
 <attributes class="edge"><attribute id="0" title="rate"><default>40G</default></attribute>
  <attribute id="1" title="delay"/>
  <attribute id="2" title="rate_back"/><attribute id="3" title="loss"/></attributes>
 <nodes><node id="x" label="a"/><node id="y" label="b"/>
  <node id="z" label="s"><attvalues><attvalue for="0" value="switch"/></attvalues></node></nodes>
 <edges>
  <edge source="x" target="z"><attvalues>
   <attvalue for="0" value="10G"/><attvalue for="1" value="2us"/></attvalues></edge>
  <edge source="z" target="y"><attvalues>
   <attvalue for="2" value="20G"/><attvalue for="3" value="1%"/></attvalues></edge>
 </edges></graph></gexf>
"""
NODE_LINK = """{"nodes": [{"label": "a", "role": "host"}, {"label": "b", "role": "host"},
 {"label": "s", "role": "switch"}],
 "links": [{"source": 0, "target": 2, "rate": "10G", "delay": "2us"},
           {"source": 2, "target": 1, "rate": "40G", "rate_back": "20G", "loss": "1%"}]}
"""


def check(path: Path, name: str, text: str) -> None:
    (path / name).write_text(text)
    graph = build(str(path / name))
    assert len(hosts(graph)) == 2
    first, second, back = (
        link(graph, *ends) for ends in (("h0", "s0"), ("s0", "h1"), ("h1", "s0"))
    )
    assert (first.rate_bps, first.delay_ps, first.loss) == (10**10, 2_000_000, None)
    assert (second.rate_bps, back.rate_bps, second.loss) == (4 * 10**10, 2 * 10**10, 0.01)


def test_edgelist(tmp_path: Path) -> None:
    check(tmp_path, "n.edges", EDGES)


def test_gml(tmp_path: Path) -> None:
    check(tmp_path, "n.gml", GML)


def test_gexf(tmp_path: Path) -> None:
    check(tmp_path, "n.gexf", GEXF)


def test_nodelink(tmp_path: Path) -> None:
    """Without ids, nodes are meant by their place."""
    check(tmp_path, "n.json", NODE_LINK)
