"""Node-link JSON, as NetworkX's `node_link_data` and d3 have it.

Source:
    NetworkX's reference, "JSON": an object with `nodes` (each with an `id`), `edges` or `links`
    (each with `source` and `target`), `directed` and `graph`. P4-Utils' NetworkAPI, which keeps its
    networks in that form.
"""

from __future__ import annotations

import json
from typing import Any

from ringleaf.errors import ConfigError
from ringleaf.topologies.files.attributes import BACK, IPV4, OUT_PORT
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

    Links mean nodes by their ids; by their places, if links have numbers and ids are none, as in d3
    and NetworkX 1; and by their names, if no node has an id.

    Raises:
        ConfigError: If it is no JSON of this form.
    """
    data = read_json(text, where)
    if not isinstance(data, Located):
        raise ConfigError(f"{where}: must be an object with nodes and edges, got {data!r:.60}")
    edges = "links" if data.get("links") or "edges" not in data else "edges"
    if edges == "links" and data.get("edges"):
        raise ConfigError(f"{where} line {data.line}: must have edges or links, got both lists")
    items = _list(data, "nodes", where)
    if any(isinstance(each, Located) and "isSwitch" in each for each in items):
        for each in (*items, *_list(data, edges, where)):
            _take_p4_utils(each)
    ends = [each.get("source") for each in _list(data, edges, where) if isinstance(each, Located)]
    ids = [each.get("id") for each in items if isinstance(each, Located)]
    by_place = not any(isinstance(each, int) for each in ids)
    key = "name" if ids and all(each is None for each in ids) else "id"
    if by_place and ends and all(isinstance(each, int) for each in ends):
        items = [_numbered(each, number, key) for number, each in enumerate(items)]
        key = "id"
    nodes = [_part(each, where, key) for each in items]
    links = [_part(each, where, "source", "target") for each in _list(data, edges, where)]
    about = data.get("graph", {})
    rows = tuple(LinkRow(a, b, row) for (a, b), row in links)
    return NetworkRows(
        tuple(NodeRow(name, row) for (name,), row in nodes),
        rows,
        _row(about) if isinstance(about, Located) else FileRow(data.line, {}),
        is_directed=_is_true(data, "directed"),
        may_repeat=not _is_true(data, "multigraph"),
    )


def _is_true(data: Located, name: str) -> bool:
    return as_text(data.get(name, False)).lower() in ("yes", "true", "1")


def _take_p4_utils(item: Any) -> None:
    """Have what P4-Utils says in our words: rates are in Mbit/s, losses in percent."""
    if not isinstance(item, Located):
        return
    for name, unit in (("bw", "M"), ("loss", "%")):
        if isinstance(item.get(name), (int, float)):
            item[name] = f"{item[name]}{unit}"
    if isinstance(item.get("ip"), str):
        item[IPV4] = item.pop("ip")
    ends = ("1", "2") if item.get("node1") == item.get("source") else ("2", "1")
    joined = [item.get("source"), item.get("target")]
    if [item.get("node1"), item.get("node2")] in (joined, joined[::-1]):
        for name, end in zip((OUT_PORT, OUT_PORT + BACK), ends, strict=True):
            if isinstance(item.get(f"port{end}"), int):
                item[name] = item.pop(f"port{end}")


def _numbered(item: Any, number: int, key: str) -> Any:
    """Return a node with its number as id, by which links mean it; its own is its name."""
    if not isinstance(item, Located):
        return item
    node = Located(item, id=number)
    if key in item:
        node.setdefault("name", item[key])
    node.line = item.line
    return node


def _list(data: Located, name: str, where: str) -> list[Any]:
    entries = data.get(name)
    if not isinstance(entries, list):
        raise ConfigError(
            f"{where} line {data.line}: must have a list {name!r}, got {entries!r:.60}"
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
    r'\A\s*\{(?![\s\S]*"elements"\s*:\s*\{)(?=[\s\S]*"nodes"\s*:\s*\[)[\s\S]*"(?:links|edges)"\s*:'
)

FORMAT = TopologyFormat("node-link JSON, of NetworkX and d3", (".json",), _MARK, read, write)
