"""GEXF, which Gephi and NetworkX write; it is only read.

Source:
    GEXF 1.3 (gexf.net/schema.html): `attributes` declare titles and defaults by class, `attvalue`
    elements have a node's or an edge's values; an edge has a `type` of its own, or the graph's
    `defaultedgetype`, and a `mutual` one goes both ways. In GEXF 1.0, `attvalue` has an `id`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ringleaf.errors import ConfigError
from ringleaf.topologies.files.format import TopologyFormat
from ringleaf.topologies.files.markup import Element, needed, read_xml
from ringleaf.topologies.files.rows import (
    FileRow,
    LinkRow,
    NetworkRows,
    NodeRow,
    with_ways,
)


@dataclass(frozen=True, slots=True)
class _Declared:
    """An attribute of nodes or edges: its name, and what those have that say nothing."""

    title: str
    default: str | None


def read(text: str, where: str) -> NetworkRows:
    """Return the nodes, edges and attributes of the file's graph.

    Raises:
        ConfigError: If it is no GEXF, has not one graph, or one that changes with time or has
            nodes in nodes.
    """
    root = read_xml(text, where)
    graphs = list(root.all("graph"))
    if root.name != "gexf" or len(graphs) != 1:
        raise ConfigError(
            f"{where} line {root.line}: must be a <gexf> with one <graph>, got <{root.name}> "
            f"with {len(graphs)}"
        )
    [graph] = graphs
    if graph.attributes.get("mode") == "dynamic":
        raise ConfigError(
            f"{where} line {graph.line}: a network must stay as it is, got mode='dynamic'; write "
            "it as of one time"
        )
    of_nodes, of_edges = (_declared(graph, kind, where) for kind in ("node", "edge"))
    nodes = []
    for node in _parts(graph, "nodes", "node"):
        if inner := next(node.all("nodes"), None):
            raise ConfigError(
                f"{where} line {inner.line}: a node must have no nodes inside, got <nodes> in "
                f"{needed(node, 'id', where)!r}; write all side by side"
            )
        row = _row(node, of_nodes, where)
        values = {"label": node.attributes.get("label", ""), **row.values}
        nodes.append(NodeRow(needed(node, "id", where), FileRow(row.line, values)))
    links, are_directed = [], []
    usual = graph.attributes.get("defaultedgetype", "undirected")
    for edge in _parts(graph, "edges", "edge"):
        ends = needed(edge, "source", where), needed(edge, "target", where)
        row = _row(edge, of_edges, where)
        values = {"label": edge.attributes.get("label", ""), **row.values}
        links.append(LinkRow(*ends, FileRow(row.line, values)))
        are_directed.append(edge.attributes.get("type", usual) == "directed")
    return NetworkRows(
        tuple(nodes),
        with_ways(links, are_directed),
        FileRow(graph.line, {}),
        is_directed=any(are_directed),
        may_repeat=True,
    )


def _parts(graph: Element, groups: str, name: str) -> Iterator[Element]:
    return (part for group in graph.all(groups) for part in group.all(name))


def _declared(graph: Element, kind: str, where: str) -> dict[str, _Declared]:
    """Return the attributes that the graph declares of nodes or edges, by their ids."""
    weight = {"weight": _Declared("weight", None)}  # which Gephi uses undeclared
    return (weight if kind == "edge" else {}) | {
        needed(each, "id", where): _Declared(
            each.attributes.get("title", each.attributes["id"]),
            next((one.text.strip() for one in each.all("default")), None),
        )
        for group in graph.all("attributes")
        if group.attributes.get("class") == kind
        for each in group.all("attribute")
    }


def _row(element: Element, declared: dict[str, _Declared], where: str) -> FileRow:
    values = {each.title: each.default for each in declared.values() if each.default is not None}
    for each in _values(element):
        key = each.attributes.get("for", each.attributes.get("id", ""))
        if key not in declared:
            raise ConfigError(
                f"{where} line {each.line}: no <attribute> of a <{element.name}> has this id, got "
                f"{key!r:.60}"
            )
        values[declared[key].title] = needed(each, "value", where).strip()
    if "weight" in element.attributes:
        values.setdefault("weight", element.attributes["weight"])
    return FileRow(element.line, values)


def _values(element: Element) -> Iterable[Element]:
    return (value for group in element.all("attvalues") for value in group.all("attvalue"))


FORMAT = TopologyFormat("GEXF, of Gephi and NetworkX", (".gexf",), r"<gexf\b", read)
