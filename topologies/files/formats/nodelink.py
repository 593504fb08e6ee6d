"""Node-link JSON, as NetworkX's `node_link_data` and d3 have it.

Source:
    NetworkX's reference, "JSON": an object with `nodes` (each with an `id`), `edges` or `links`
    (each with `source` and `target`), `directed` and `graph`. P4-Utils' NetworkAPI, which keeps its
    networks in that form.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ringleaf.errors import ConfigError
from ringleaf.topologies.files.attributes import BACK, IPV4, OUT_PORT, RATE_UNIT
from ringleaf.topologies.files.format import TopologyFormat
from ringleaf.topologies.files.located import Located, read_json
from ringleaf.topologies.files.rows import (
    FileRow,
    LinkRow,
    NetworkRows,
    NodeRow,
    as_text,
)


def read(text: str, where: str) -> NetworkRows:
    """Return the nodes, edges and attributes of the file.

    Links mean nodes by their ids; by their names, if all ends are names; and by their places, if
    links have numbers that are neither, as in d3 and NetworkX 1.

    Raises:
        ConfigError: If it is no JSON of this form.
    """
    data = read_json(text, where)
    if not isinstance(data, Located):
        raise ConfigError(f"{where}: must be an object with nodes and edges, got {data!r:.60}")
    edges = "links" if data.get("links") or "edges" not in data else "edges"
    if edges == "links" and data.get("edges"):
        raise ConfigError(f"{where} line {data.line}: must have edges or links, got both lists")
    items, joins = _list(data, "nodes", where), _list(data, edges, where)
    usual: dict[str, str] = {}
    if _is_of_p4_utils([*items, *joins]):
        usual = {RATE_UNIT: "M"}
        for each in (*items, *joins):
            _take_p4_utils(each)
    key = _key(items, joins)
    if not key:
        items = [_numbered(each, number) for number, each in enumerate(items)]
        key = "id"
    nodes = [_part(each, where, key) for each in items]
    links = [_part(each, where, "source", "target") for each in joins]
    graph = data.get("graph", {})
    about = _row(graph) if isinstance(graph, Located) else FileRow(data.line, {})
    return NetworkRows(
        tuple(NodeRow(name, row) for (name,), row in nodes),
        tuple(LinkRow(a, b, row) for (a, b), row in links),
        FileRow(about.line, {**usual, **about.values}),
        is_directed=_is_true(data, "directed"),
        may_repeat=not _is_true(data, "multigraph"),
    )


def _key(items: Sequence[Any], joins: Sequence[Any]) -> str:
    """Return the attribute of nodes by which links mean them; "" if links have their places."""
    nodes, links = ([e for e in each if isinstance(e, Located)] for each in (items, joins))
    own = {key: [each.get(key) for each in nodes] for key in ("id", "name")}
    ends = [each.get(end) for each in links for end in ("source", "target")]
    for key, values in own.items():
        if None not in values and {*map(str, ends)} <= {*map(str, values)}:
            return key
    has_numbers = bool(ends) and all(isinstance(each, int) for each in ends)
    if has_numbers and not any(isinstance(each, int) for each in own["id"]):
        return ""
    has_names = any(each is not None for each in own["name"])
    return "name" if has_names and all(each is None for each in own["id"]) else "id"


def _is_true(data: Located, name: str) -> bool:
    return as_text(data.get(name, False)).lower() in ("yes", "true", "1")


def _is_of_p4_utils(items: Sequence[Any]) -> bool:
    """Return whether nodes and links are P4-Utils', or Mininet's, whose links name both ends."""
    every = [each for each in items if isinstance(each, Located)]
    return any("isP4Switch" in each or {"node1", "node2"} <= each.keys() for each in every)


def _take_p4_utils(item: Any) -> None:
    """Have what P4-Utils says in our words: losses are in percent."""
    if not isinstance(item, Located):
        return
    if isinstance(item.get("loss"), (int, float)):
        item["loss"] = f"{item['loss']}%"
    if isinstance(item.get("ip"), str):
        item[IPV4] = item.pop("ip")
    ends = ("1", "2") if item.get("node1") == item.get("source") else ("2", "1")
    joined = [item.get("source"), item.get("target")]
    if [item.get("node1"), item.get("node2")] in (joined, joined[::-1]):
        for name, end in zip((OUT_PORT, OUT_PORT + BACK), ends, strict=True):
            if isinstance(item.get(f"port{end}"), int):
                item[name] = item.pop(f"port{end}")


def _numbered(item: Any, number: int) -> Any:
    """Return a node with its number as id, by which links mean it; its own is its name."""
    if not isinstance(item, Located):
        return item
    node = Located(item, id=number)
    if "id" in item:
        node.setdefault("name", item["id"])
    node.line = item.line
    return node


def _list(data: Located, name: str, where: str) -> list[Any]:
    entries = data.get(name)
    if not isinstance(entries, list):
        inner = (key for key, value in data.items() if isinstance(value, Located) and name in value)
        remedy = "".join(f"; write what {key!r} has without {key!r} around it" for key in inner)
        raise ConfigError(
            f"{where} line {data.line}: must have a list {name!r}, got {entries!r:.60}{remedy}"
        )
    return entries


def _part(item: Any, where: str, *needed: str) -> tuple[list[str], FileRow]:
    """Return the needed names of a node or edge, and its row."""
    if not isinstance(item, Located):
        raise ConfigError(f"{where}: a node or edge must be an object, got {item!r:.60}")
    names = []
    for key in needed:
        name = item.get(key)
        if isinstance(name, list) and name:  # of grids, which NetworkX names by tuples
            name = ",".join(map(str, name))
        if not isinstance(name, (str, int)):
            raise ConfigError(
                f"{where} line {item.line}: must have {key!r}, a text or whole number, "
                f"got {item.get(key)!r:.60}"
            )
        names.append(str(name))
    return names, _row(item, *needed)


def _row(item: Located, *without: str) -> FileRow:
    values = {
        name: json.dumps(value) if isinstance(value, dict) else as_text(value)
        for name, value in item.items()
        if name not in without and value is not None
    }
    return FileRow(item.line, values)


def write(rows: NetworkRows) -> str:
    """Return the text of a file, with a line for each node and edge."""
    nodes = [{"id": each.name, **each.row.values} for each in rows.nodes]
    edges = [{"source": each.a, "target": each.b, **each.row.values} for each in rows.links]
    return "".join(
        [
            "{\n",
            f' "directed": {json.dumps(rows.is_directed)},\n "multigraph": false,\n',
            f' "graph": {json.dumps(dict(rows.about.values))},\n',
            f' "nodes": [\n{_lines(nodes)}\n ],\n',
            f' "edges": [\n{_lines(edges)}\n ]\n',
            "}\n",
        ]
    )


def _lines(items: list[dict[str, str]]) -> str:
    return ",\n".join(f"  {json.dumps(each)}" for each in items)


_MARK = (
    r'\A\s*\{(?![\s\S]*"(?:elements"\s*:\s*\{|project_id"))'
    r'(?=[\s\S]*"nodes"\s*:\s*\[)[\s\S]*"(?:links|edges)"\s*:'
)

FORMAT = TopologyFormat("node-link JSON, of NetworkX and d3", (".json",), _MARK, read, write)
