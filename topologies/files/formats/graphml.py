"""GraphML, which most graph programs write: NetworkX, yEd, Gephi, the Internet Topology Zoo.

Source:
    Brandes et al., "GraphML Progress Report", GD 2001, and the GraphML Primer: `key` elements
    declare attributes, `data` elements have their values, and an undeclared value has the key's
    default; a node may have a graph inside, and an edge its own `directed`. yEd's files, as it
    writes them: names are labels of what it draws, and all are called directed, so that arrows
    alone tell whether an edge is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from ringleaf.errors import ConfigError
from ringleaf.topologies.files.format import TopologyFormat
from ringleaf.topologies.files.markup import Element, needed, quoted, read_xml
from ringleaf.topologies.files.rows import (
    FileRow,
    LinkRow,
    NetworkRows,
    NodeRow,
    left_out,
    with_ways,
)

NAMESPACE = "http://graphml.graphdrawing.org/xmlns"


@dataclass(frozen=True, slots=True)
class _Key:
    name: str
    domain: str
    default: str | None


def read(text: str, where: str) -> NetworkRows:
    """Return the nodes, edges and attributes of the file's graph.

    Raises:
        ConfigError: If it is no GraphML, or has several graphs, hyperedges, or edges of groups.
    """
    root = read_xml(text, where)
    graphs = list(root.all("graph"))
    if root.name != "graphml" or len(graphs) != 1:
        raise ConfigError(
            f"{where} line {root.line}: must be a <graphml> with one <graph>, "
            f"got <{root.name}> with {len(graphs)}"
        )
    keys = {
        each.attributes.get("id", ""): _Key(
            each.attributes.get("attr.name", each.attributes.get("id", "")),
            each.attributes.get("for", "all"),
            next((one.text.strip() for one in each.all("default")), None),
        )
        for each in root.all("key")
    }
    [graph] = graphs
    parts = list(_parts(graph, where))
    groups = {needed(child, "id", where) for child, _ in parts if list(child.all("graph"))}
    nodes, links, are_directed = [], [], []
    for child, is_directed in parts:
        if child.name == "edge":
            ends = (needed(child, "source", where), needed(child, "target", where))
            links.append(LinkRow(*ends, _labelled(_row(child, keys, where), child)))
            are_directed.append(is_directed)
        elif (name := needed(child, "id", where)) not in groups:
            nodes.append(NodeRow(name, _labelled(_row(child, keys, where), child)))
    if all(are_directed) and _is_drawn_both_ways(child for child, _ in parts):
        are_directed = [False] * len(links)
    return NetworkRows(
        tuple(nodes),
        with_ways(links, are_directed),
        _row(graph, keys, where),
        is_directed=any(are_directed),
        may_repeat=True,
        notes=left_out(groups, links, where),
    )


def _parts(graph: Element, where: str) -> Iterator[tuple[Element, bool]]:
    """Yield nodes and edges, also those of graphs in nodes, and whether each is directed."""
    for child in graph.children:
        if child.name in ("hyperedge", "graph"):
            raise ConfigError(
                f"{where} line {child.line}: must have nodes and edges, got <{child.name}> among "
                "them; draw a node that has an edge to each end"
            )
        if child.name not in ("node", "edge"):
            continue
        yield child, child.attributes.get("directed", _default(graph)) == "true"
        for inner in child.all("graph"):
            yield from _parts(inner, where)


def _default(graph: Element) -> str:
    return "true" if graph.attributes.get("edgedefault") == "directed" else "false"


def _is_drawn_both_ways(parts: Iterable[Element]) -> bool:
    """Return whether an editor draws each edge with arrows at both ends or at none."""
    edges = [each for each in parts if each.name == "edge"]
    arrows = [each.attributes for edge in edges for each in _drawn(edge, "Arrows")]
    ends = [(each.get("source"), each.get("target")) for each in arrows]
    return len(ends) == len(edges) and all((a == "none") == (b == "none") for a, b in ends)


def _labelled(row: FileRow, part: Element) -> FileRow:
    """Return a node's or edge's attributes, with the label that an editor draws if they have none.

    An edge may have several labels, a node has the first.
    """
    drawn = (" ".join(each.text.split()) for each in _drawn(part, "NodeLabel", "EdgeLabel"))
    labels = [*filter(None, drawn)]
    if not labels or row.values.get("label"):
        return row
    label = ", ".join(labels) if part.name == "edge" else labels[0]
    return FileRow(row.line, {**row.values, "label": label})


def _drawn(element: Element, *names: str) -> Iterator[Element]:
    """Yield the parts of these names of what an editor draws for a node or an edge."""
    for data in element.all("data"):
        for shape in data.children:
            yield from shape.all(*names)


def _row(element: Element, keys: Mapping[str, _Key], where: str) -> FileRow:
    domains = (element.name, "all")
    values = {
        key.name: key.default
        for key in keys.values()
        if key.default is not None and key.domain in domains
    }
    for data in element.all("data"):
        name = data.attributes.get("key", "")
        if name not in keys:
            raise ConfigError(f"{where} line {data.line}: no <key> has this id, got {name!r}")
        if not data.children:  # those of yEd are about looks
            values[keys[name].name] = data.text.strip()
    return FileRow(element.line, values)


def write(rows: NetworkRows) -> str:
    """Return the text of a file; all attributes are declared as strings."""
    parts = (
        ("graph", [rows.about.values]),
        ("node", [each.row.values for each in rows.nodes]),
        ("edge", [each.row.values for each in rows.links]),
    )
    ids: dict[tuple[str, str], str] = {}
    for domain, sets in parts:
        for name in dict.fromkeys(name for values in sets for name in values):
            ids[domain, name] = f"d{len(ids)}"
    direction = "directed" if rows.is_directed else "undirected"
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f"<graphml xmlns={quoted(NAMESPACE)}>",
        *(
            f'  <key id="{each}" for="{domain}" attr.name={quoted(name)} attr.type="string"/>'
            for (domain, name), each in ids.items()
        ),
        f'  <graph edgedefault="{direction}">',
        *_data(rows.about.values, "graph", ids, "    "),
    ]
    for node in rows.nodes:
        data = _data(node.row.values, "node", ids)
        lines.append(f"    <node id={quoted(node.name)}>{''.join(data)}</node>")
    for link in rows.links:
        ends = f"source={quoted(link.a)} target={quoted(link.b)}"
        lines.append(f"    <edge {ends}>{''.join(_data(link.row.values, 'edge', ids))}</edge>")
    return "\n".join([*lines, "  </graph>", "</graphml>", ""])


def _data(
    values: Mapping[str, str], domain: str, ids: Mapping[tuple[str, str], str], indent: str = ""
) -> Iterable[str]:
    return [
        f'{indent}<data key="{ids[domain, name]}">{quoted(value)[1:-1]}</data>'
        for name, value in values.items()
    ]


FORMAT = TopologyFormat(
    "GraphML, of NetworkX, yEd and others", (".graphml", ".xml"), r"<graphml\b", read, write
)
