"""GML, as NetworkX, igraph, Gephi and the Internet Topology Zoo have it; it is only read.

Source:
    Himsolt, "GML: A portable Graph File Format", 1996: a list of keys with values, which are
    numbers, texts in quotes, or lists in brackets. `graph` has `node`s with an `id` and `edge`s
    with a `source` and a `target`.
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
)

DEEPEST = 50
_YES = ("1", "true", "True")
_TOKEN = re.compile(r'\s+|#[^\n]*|("[^"]*")|(\[)|(\])|([^\s\[\]"]+)')

Pairs = list[tuple[str, Any, int]]
"""The keys of a list with their values, which are texts or lists, and their lines."""


def read(text: str, where: str) -> NetworkRows:
    """Return the nodes, edges and attributes of the file's graph.

    Raises:
        ConfigError: If it is no GML, or has not one graph.
    """
    tokens = _tokens(text, where)
    graphs = [each for each in _pairs(tokens, where, 0) if each[0] == "graph"]
    if len(graphs) != 1 or isinstance(graphs[0][1], str):
        raise ConfigError(f"{where}: must be a GML file with one graph [...], got {len(graphs)}")
    nodes, links = [], []
    about: Pairs = []
    for key, value, line in graphs[0][1]:
        if key == "node":
            [name], row = _part(value, line, where, "id")
            nodes.append(NodeRow(name, row))
        elif key == "edge":
            [a, b], row = _part(value, line, where, "source", "target")
            links.append(LinkRow(a, b, row))
        else:
            about.append((key, value, line))
    values = {key: value for key, value, _ in about if isinstance(value, str)}
    return NetworkRows(
        tuple(nodes),
        tuple(links),
        FileRow(graphs[0][2], values),
        is_directed=values.get("directed") in _YES,
        may_repeat=values.get("multigraph") not in _YES,
    )


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
