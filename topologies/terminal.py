"""Topologies in a terminal: a drawing, tables of switches and links, and key figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from textwrap import fill

import networkx as nx

from ringleaf.core.units import format_count, format_rate, format_size, format_time
from ringleaf.topologies.bisection import bisection
from ringleaf.topologies.graph import Link, Role, hosts, kind, link, switches
from ringleaf.topologies.layout import placed
from ringleaf.topologies.metrics import diameter

WIDTH = 100
"""Number of columns of the drawing."""

MOST_NAMES = 60
"""Number of nodes whose names in a file are printed."""

_LINK_HEAD = ("links", "count", "rate", "delay", "loss", "queue")


def terminal(graph: nx.Graph[str]) -> str:
    """Return a drawing, tables of switches and links, and key figures, as lines of text."""
    graph = placed(graph)
    parts = [
        f"{graph.name}: {format_count(len(hosts(graph)), 'host')}, "
        f"{format_count(len(switches(graph)), 'switch')}",
        _picture(graph),
        _table(("switches", "count", "ports", "names"), _switch_rows(graph)),
        _table(_LINK_HEAD, _link_rows(graph)),
        _figures(graph),
    ]
    if names := _names(graph):
        parts.append(names)
    return "\n\n".join(parts) + "\n"


def _picture(graph: nx.Graph[str]) -> str:
    """Return the names at their `pos`, but only the ends of a row that is too crowded.

    A server's host is left out, having its switch's number.
    """
    servers = graph.graph["servers"]
    shown = [node for node in graph if not (servers and graph.nodes[node]["role"] is Role.HOST)]
    places = {node: graph.nodes[node]["pos"] for node in shown}
    left = min(x for x, _ in places.values())
    span = max(x for x, _ in places.values()) - left
    scale = min(6.0, (WIDTH - 16) / max(span, 1))
    if scale > 2:
        scale = int(scale)  # even gaps
    lines = []
    for height in sorted({y for _, y in places.values()}, reverse=True):
        row = sorted(
            (node for node in shown if places[node][1] == height), key=lambda node: places[node]
        )
        columns = [round((places[node][0] - left) * scale) for node in row]
        title = kind(graph, row[0]) if graph.graph["layout"] == "tiers" else ""
        lines.append(f"{title:10}{_row(row, columns)}".rstrip())
    return "\n".join(lines)


def _row(names: Sequence[str], columns: Sequence[int]) -> str:
    line = ""
    for name, column in zip(names, columns, strict=True):
        if line and len(line) >= column:
            middle = (columns[0] + columns[-1]) // 2
            return f"{names[0]} ... {names[-1]}".rjust(middle)
        line = line.ljust(column) + name
    return line


def _switch_rows(graph: nx.Graph[str]) -> Iterable[tuple[str, ...]]:
    groups: dict[str, list[str]] = {}
    for switch in switches(graph):
        groups.setdefault(kind(graph, switch), []).append(switch)
    for name, members in groups.items():
        ports = _range(graph.degree[switch] for switch in members)
        names = " ... ".join(dict.fromkeys((members[0], members[-1])))
        yield name, str(len(members)), ports, names


def _range(numbers: Iterable[int]) -> str:
    distinct = sorted(set(numbers))
    return str(distinct[0]) if len(distinct) == 1 else f"{distinct[0]} to {distinct[-1]}"


def _link_rows(graph: nx.Graph[str]) -> Iterable[tuple[str, ...]]:
    counts: Counter[tuple[str, Link]] = Counter()
    for a, b in graph.edges:
        low, high = sorted((a, b), key=lambda node: graph.nodes[node].get("tier", -1))
        there, back = link(graph, low, high), link(graph, high, low)
        counts[_ends(graph, low, high, "-" if there == back else ">"), there] += 1
        if back != there:
            counts[_ends(graph, high, low, ">"), back] += 1
    for (ends, way), count in counts.items():
        loss = "" if way.loss is None else f"{100 * way.loss:g} %"
        queue = "" if way.queue_bytes is None else format_size(way.queue_bytes)
        yield ends, str(count), format_rate(way.rate_bps), format_time(way.delay_ps), loss, queue


def _ends(graph: nx.Graph[str], start: str, end: str, sign: str) -> str:
    return f"{kind(graph, start)} {sign} {kind(graph, end)}"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table without empty columns, as wide as necessary, counts aligned to the right."""
    filled = list(rows)
    used = [column for column in range(len(head)) if any(row[column] for row in filled)]
    head = [head[column] for column in used]
    lines = [head, *([row[column] for column in used] for row in filled)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if head[column] == "count" else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def _names(graph: nx.Graph[str]) -> str:
    """Return the names that nodes have in the file that they come from, if they do."""
    if not graph.graph.get("named", False):
        return ""
    names = [
        f"{node} {graph.nodes[node]['label']}"
        for node in (*hosts(graph), *switches(graph))
        if not graph.nodes[node].get("inside", False) and graph.nodes[node]["label"] != node
    ]
    shown = names[:MOST_NAMES]
    more = [f"and {len(names) - len(shown)} more"] if len(names) > len(shown) else []
    return fill(f"names in the file: {', '.join([*shown, *more])}", WIDTH) if names else ""


def _figures(graph: nx.Graph[str]) -> str:
    levels = " x ".join(str(size) for size in graph.graph["hierarchy"])
    half = max(len(hosts(graph)) // 2, 1)
    cut = bisection(graph)
    at_most = "" if cut.is_exact else "at most "
    return (
        f"hierarchy {levels} (innermost first), "
        f"diameter {format_count(diameter(graph), 'link')} between switches,\n"
        f"bisection {at_most}{format_rate(cut.bps)}: "
        f"{at_most}{format_rate(cut.bps / half)} for each host of a half"
    )
