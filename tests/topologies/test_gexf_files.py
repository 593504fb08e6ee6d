"""GEXF as its versions and Gephi write it; networks are by hand, after GEXF 1.3's primer."""

from __future__ import annotations

from pathlib import Path

import pytest

from ringleaf.errors import ConfigError
from ringleaf.topologies.files.formats.gexf import read
from ringleaf.topologies.graph import link
from ringleaf.topologies.registry import build, notes

NODES = '<nodes><node id="a"/><node id="s"/><node id="b"/></nodes>'


def edges(*words: str) -> str:
    return f"<edges>{''.join(f'<edge {each}/>' for each in words)}</edges>"


def file(inside: str, graph: str = "") -> str:
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<gexf xmlns="http://www.gexf.net/1.2draft" '
        'xmlns:viz="http://www.gexf.net/1.2draft/viz" version="1.2">\n'
        f"<meta><creator>x</creator></meta><graph {graph}>{inside}</graph></gexf>"
    )


def test_edges_without_a_type_are_of_the_usual_one() -> None:
    both = edges('source="a" target="s"', 'source="s" target="b"')
    assert not read(file(NODES + both), "topology x").is_directed
    assert not read(file(NODES + both, 'defaultedgetype="mutual"'), "topology x").is_directed
    rows = read(file(NODES + both, 'defaultedgetype="directed"'), "topology x")
    assert rows.is_directed
    assert [(each.a, each.b) for each in rows.links] == [("a", "s"), ("s", "b")]


def test_an_undirected_edge_among_directed_ones_goes_both_ways() -> None:
    mixed = edges('source="a" target="s" type="directed"', 'source="s" target="b"')
    rows = read(file(NODES + mixed), "topology x")
    assert [(each.a, each.b) for each in rows.links] == [("a", "s"), ("s", "b"), ("b", "s")]


def test_the_first_version_has_ids_of_values(tmp_path: Path) -> None:
    declared = '<attributes class="edge"><attribute id="7" title="bandwidth_gbps"/></attributes>'
    value = '<attvalue id="7" value="25"/>'
    links = "".join(
        f'<edge source="{end}" target="s"><attvalues>{value}</attvalues></edge>' for end in "ab"
    )
    path = tmp_path / "old.gexf"
    path.write_text(file(f"{declared}{NODES}<edges>{links}</edges>"))
    assert link(build(str(path)), "h0", "s0").rate_bps == 25 * 10**9


def test_weights_are_named_as_not_used(tmp_path: Path) -> None:
    path = tmp_path / "weights.gexf"
    path.write_text(
        file(NODES + edges('source="a" target="s" weight="2.0"', 'source="s" target="b"'))
    )
    assert "not used: 'weight' of links" in notes(str(path))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (file(NODES, 'mode="dynamic"'), "line 3: a network must stay as it is, got mode='dynamic'"),
        (
            file('<nodes><node id="a"><nodes><node id="b"/></nodes></node></nodes>'),
            "line 3: a node must have no nodes inside, got <nodes> in 'a'; write",
        ),
        (file(NODES + edges('source="a"')), "line 3: <edge> must have target="),
        (
            file(
                '<nodes><node id="a"><attvalues><attvalue for="3" value=""/></attvalues></node>'
            ).replace("</node></graph>", "</node></nodes></graph>"),
            "line 3: no <attribute> of a <node> has this id, got '3'",
        ),
        ("<gexf/>", "line 1: must be a <gexf> with one <graph>, got <gexf> with 0"),
        ('<!DOCTYPE gexf SYSTEM "x"><gexf/>', "must have no document type"),
    ],
)
def test_what_is_no_network_is_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=f"topology x {message}|topology x .*{message}"):
        read(text, "topology x")


def test_gephi_has_weights_without_a_declaration(tmp_path: Path) -> None:
    text = NODES + edges('source="a" target="s"', 'source="b" target="s"').replace(
        "/>", '><attvalues><attvalue for="weight" value="2.0"/></attvalues></edge>', 1
    )
    (tmp_path / "n.gexf").write_text(f"<gexf><graph>{text}</graph></gexf>")
    assert "not used: 'weight' of links" in notes(str(tmp_path / "n.gexf"))
