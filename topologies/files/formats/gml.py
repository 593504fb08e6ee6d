"""GML, as NetworkX, igraph, Gephi and the Internet Topology Zoo have it; it is only read.

Source:
    Himsolt, "GML: A portable Graph File Format", 1996: a list of keys with values, which are
    numbers, texts in quotes, or lists in brackets. `graph` has `node`s with an `id` and `edge`s
    with a `source` and a `target`. yEd's files, as it writes them: a group is a node with
    `isGroup`, and all graphs are called directed, so that arrows alone tell whether an edge is.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from html import unescape
from typing import Any

from ringleaf.errors import ConfigError
from ringleaf.topologies.files.format import TopologyFormat
from ringleaf.topologies.files.rows import (
    FileRow,
    LinkRow,
    NetworkRows,
    NodeRow,
    as_text,
    left_out,
)

DEEPEST = 50
_YES = ("1", "true", "True")
_YED, _GROUP, _NESTED, _ARROWS = "yFiles", "isGroup", "hierarchic", ("sourceArrow", "targetArrow")
"""Words of yEd: its name, and those of a node, a graph and a drawn edge."""
_TOKEN = re.compile(r'\s+|#[^\n]*|("[^"]*")|(\[)|(\])|([^\s\[\]"]+)')

Pairs = list[tuple[str, Any, int]]
"""The keys of a list with their values, which are texts or lists, and their lines."""


def read(text: str, where: str) -> NetworkRows:
    """Return the nodes, edges and attributes of the file's graph.

    Raises:
        ConfigError: If it is no GML, has not one graph, or has edges of groups.
    """
    top = _pairs(_tokens(text, where), where, 0)
    graphs = [each for each in top if each[0] == "graph"]
    if len(graphs) != 1 or isinstance(graphs[0][1], str):
        raise ConfigError(f"{where}: must be a GML file with one graph [...], got {len(graphs)}")
    nodes, links, groups = [], [], set()
    about: Pairs = []
    for key, value, line in graphs[0][1]:
        if key == "node":
            [name], row = _part(value, line, where, "id")
            if row.values.get(_GROUP) in _YES:
                groups.add(name)
            else:
                nodes.append(NodeRow(name, row))
        elif key == "edge":
            [a, b], row = _part(value, line, where, "source", "target")
            links.append(LinkRow(a, b, row))
        else:
            about.append((key, value, line))
    values = {key: value for key, value, _ in about if isinstance(value, str)}
    values.pop(_NESTED, None)
    edges = [value for key, value, _ in graphs[0][1] if key == "edge"]
    is_drawn = any(key == "Creator" and value == _YED for key, value, _ in top)
    is_drawn_both_ways = is_drawn and all(map(_is_drawn_both_ways, edges))
    return NetworkRows(
        tuple(nodes),
        tuple(links),
        FileRow(graphs[0][2], values),
        is_directed=values.get("directed") in _YES and not is_drawn_both_ways,
        may_repeat=values.get("multigraph") not in _YES,
        notes=left_out(groups, links, where),
    )


def _is_drawn_both_ways(edge: Pairs) -> bool:
    """Return whether an editor draws an edge with arrows at both ends or at none."""
    looks = (value for key, value, _ in edge if key == "graphics" and not isinstance(value, str))
    arrows = {key for each in looks for key, value, _ in each if key in _ARROWS and value != "none"}
    return len(arrows) != 1


def _part(value: Any, line: int, where: str, *needed: str) -> tuple[list[str], FileRow]:
    """Return the needed names of a node or edge, and its row."""
    values = {} if isinstance(value, str) else _values(value)
    if isinstance(value, str) or not all(name in values for name in needed):
        raise ConfigError(
            f"{where} line {line}: must be a list with {' and '.join(needed)}, got {value!r:.60}"
        )
    names = [values.pop(name) for name in needed]
    return names, FileRow(line, values)


def _values(pairs: Pairs) -> dict[str, str]:
    """Return the values of a list by key: those of one key, as NetworkX has lists, are joined."""
    values: dict[str, list[str]] = {}
    for key, value, _ in pairs:
        values.setdefault(key, []).append(value if isinstance(value, str) else _shown(value))
    return {key: as_text(every) for key, every in values.items()}


def _shown(pairs: Pairs) -> str:
    """Return the text of a list that is a value; most are about looks, and no other is a number."""
    return f"[{' '.join(key for key, _, _ in pairs)}]"


def _tokens(text: str, where: str) -> Iterator[tuple[str, int]]:
    starts = [match.end() for match in re.finditer("\n", text)]
    place = 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        line = 1 + bisect_right(starts, place)
        if match is None:
            raise ConfigError(f"{where} line {line}: not GML, got {text[place : place + 20]!r}")
        if match.lastindex:
            yield match[0], line
        place = match.end()


def _pairs(tokens: Iterator[tuple[str, int]], where: str, depth: int) -> Pairs:
    """Return the keys and values up to the end of a list, or of the file."""
    if depth > DEEPEST:
        raise ConfigError(f"{where}: at most {DEEPEST} lists deep, got more")
    pairs: Pairs = []
    for key, line in tokens:
        if key == "]" and depth:
            return pairs
        value, _ = next(tokens, ("]", line))
        if key in "[]" or key[0] == '"' or value == "]":
            raise ConfigError(f"{where} line {line}: must be a key and a value, got {key!r:.40}")
        if value == "[":
            pairs.append((key, _pairs(tokens, where, depth + 1), line))
        else:
            pairs.append((key, unescape(value.strip('"')), line))
    if depth:
        raise ConfigError(f"{where}: a list that begins with [ must end with ], got no end")
    return pairs


FORMAT = TopologyFormat(
    "GML, of NetworkX, igraph and others", (".gml",), r"\A[^<{]*?\bgraph\s*\[", read
)
