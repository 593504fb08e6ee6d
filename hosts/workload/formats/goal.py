"""GOAL schedules, read into graphs of work and written from them.

    num_ranks 2
    rank 0 {
      l1: calc 1000
      l2: send 4096b to 1 tag 7
      l2 requires l1
    }
    rank 1 {
      l1: recv 4096b from 0 tag 7
    }

Times are in nanoseconds. `requires` waits for the end of a node, `irequires` for its begin.
Messages meet by sender, receiver and tag; a receive from any sender, or of any tag, is refused, as
its sender would depend on the network. `cpu` is a stream of computations; `nic` is not used.

Source:
    Hoefler, Schneider and Lumsdaine, "LogGOPSim", LSAP 2010; the grammar is that of its txt2bin.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path

from ringleaf.core.units import PS_PER_NS
from ringleaf.errors import ConfigError
from ringleaf.hosts.workload.formats.framing import read_text
from ringleaf.hosts.workload.graph import Graph, NodeKind, RankWork, WorkNode, check_ranks

_NUMBER = r"\d{1,15}"
_LABEL = r"[A-Za-z_]\w*"
_ENDS = rf"(?:\s+(?:cpu\s+(?P<cpu>{_NUMBER})|nic\s+{_NUMBER})){{0,2}}"
_OPERATION = re.compile(
    rf"(?:(?P<label>{_LABEL})\s*:\s*)?"
    rf"(?:calc\s+(?P<calc>{_NUMBER})"
    rf"|(?P<way>send|recv)\s+(?P<size>{_NUMBER})\s*[bB]\s+(?P<to>to|from)\s+(?P<peer>-1|{_NUMBER})"
    rf"(?:\s+tag\s+(?P<tag>-1|{_NUMBER}))?)"
    rf"{_ENDS}",
    re.ASCII,
)
_DEPENDENCY = re.compile(rf"({_LABEL})\s+(i?requires)\s+({_LABEL})", re.ASCII)
_RANKS = re.compile(rf"num_ranks\s+({_NUMBER})", re.ASCII)
_BEGIN = re.compile(rf"rank\s+({_NUMBER})\s*({{?)", re.ASCII)
_NIC = re.compile(rf"\snic\s+(?!0\b){_NUMBER}", re.ASCII)
_COMMENT = re.compile(r"(?://|#)[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_PIECES = re.compile(r"(?<={)|(?=})|(?<=})")


def read_goal(path: Path) -> Graph:
    """Return the graph of a file.

    Raises:
        ConfigError: If it can't be read or is not understood; the message names the line.
    """
    text = read_text(path).replace("\r\n", "\n").replace("\r", "\n")
    bare = _COMMENT.sub(lambda comment: "\n" * comment[0].count("\n") or " ", text)
    lines = (
        (number, piece.strip())
        for number, line in enumerate(bare.split("\n"), 1)
        for piece in _PIECES.split(line)
        if piece.strip()
    )
    number, first = next(lines, (1, ""))
    header = _RANKS.fullmatch(first)
    if header is None:
        raise ConfigError(f"{path}: line {number}: must be num_ranks N, got {first!r:.80}")
    ranks = check_ranks(f"{path}: line {number}", int(header[1]))
    works: dict[int, RankWork] = {}
    for number, line in lines:
        begin = _BEGIN.fullmatch(line)
        if begin is None or int(begin[1]) >= ranks or int(begin[1]) in works:
            raise ConfigError(
                f"{path}: line {number}: must begin another rank below {ranks}, as rank 0 {{, got "
                f"{line!r:.80}"
            )
        if not begin[2] and next(lines, (0, ""))[1] != "{":
            raise ConfigError(f"{path}: line {number}: {{ must follow, got {line!r:.80} alone")
        works[int(begin[1])] = _read_rank(path, number, lines)
    empty = RankWork((), str(path))
    notes = (f"{path}: numbers of NICs are not used",) if _NIC.search(bare) else ()
    every = tuple(works.get(rank, empty) for rank in range(ranks))
    return Graph(path.stem, every, notes=notes)


def _read_rank(path: Path, start: int, lines: Iterator[tuple[int, str]]) -> RankWork:
    """Return the nodes of a rank, up to its closing bracket."""
    nodes: list[WorkNode] = []
    labels: dict[str, int] = {}
    needs: list[tuple[int, str, str, str]] = []  # line, label, way, label
    for number, line in lines:
        if line == "}":
            return RankWork(_depending(path, nodes, labels, needs), str(path))
        if dependency := _DEPENDENCY.fullmatch(line):
            needs.append((number, dependency[1], dependency[2], dependency[3]))
            continue
        operation = _OPERATION.fullmatch(line)
        if operation is None:
            raise ConfigError(
                f"{path}: line {number}: must be calc N, send Nb to R, recv Nb from R, A requires "
                f"B or }}, got {line!r:.80}"
            )
        node = _node(f"{path}: line {number}", len(nodes), operation)
        if node.name in labels:
            raise ConfigError(f"{path}: line {number}: label must be new, got {node.name!r}")
        if node.name:
            labels[node.name] = node.id
        nodes.append(node)
    raise ConfigError(f"{path}: line {start}: the rank must end with }}, got the file's end")


def _node(where: str, number: int, operation: re.Match[str]) -> WorkNode:
    name, stream = operation["label"] or "", int(operation["cpu"] or 0)
    if operation["calc"]:
        time_ps = int(operation["calc"]) * PS_PER_NS
        return WorkNode(number, NodeKind.COMPUTE, name, time_ps, stream=stream)
    is_send = operation["way"] == "send"
    if operation["to"] != ("to" if is_send else "from"):
        raise ConfigError(f"{where}: must be send to or recv from, got {operation[0]!r:.80}")
    if "-1" in (operation["peer"], operation["tag"]):
        raise ConfigError(
            f"{where}: must name its peer and tag, got {operation[0]!r:.80}; any sender or tag is "
            "not supported"
        )
    return WorkNode(
        number,
        NodeKind.SEND if is_send else NodeKind.RECEIVE,
        name,
        size_bytes=int(operation["size"]),
        peer=int(operation["peer"]),
        tag=int(operation["tag"] or 0),
        stream=stream,
    )


def _depending(
    path: Path,
    nodes: list[WorkNode],
    labels: dict[str, int],
    needs: list[tuple[int, str, str, str]],
) -> tuple[WorkNode, ...]:
    """Return the nodes with what they wait for."""
    after: dict[int, list[int]] = {}
    begun: dict[int, list[int]] = {}
    for number, one, way, other in needs:
        for label in (one, other):
            if label not in labels:
                raise ConfigError(f"{path}: line {number}: no such label, got {label!r}")
        (after if way == "requires" else begun).setdefault(labels[one], []).append(labels[other])
    return tuple(
        replace(node, after=tuple(after.get(node.id, ())), begun=tuple(begun.get(node.id, ())))
        for node in nodes
    )


def write_goal(graph: Graph) -> Iterator[str]:
    """Yield the lines of a file; times are rounded to nanoseconds.

    The graph must not have collectives (`lower` replaces them by messages).

    Raises:
        ConfigError: If it has one.
    """
    least_tag = min((node.tag for _, node in graph.nodes()), default=0)
    yield f"num_ranks {len(graph.ranks)}"
    for rank, work in enumerate(graph.ranks):
        cpus = _cpus(work)
        yield f"rank {rank} {{"
        for node in work.nodes:
            tag = node.tag - min(least_tag, 0)  # -1 would be any tag
            yield f"l{node.id}: {_operation(graph, rank, node, tag, cpus[node.stream])}"
        for node in work.nodes:
            yield from (f"l{node.id} requires l{each}" for each in node.after)
            yield from (f"l{node.id} irequires l{each}" for each in node.begun)
        yield "}"


def _cpus(work: RankWork) -> dict[int, int]:
    """Return the number of each stream's `cpu`: those below 0 have numbers that are free."""
    streams = {node.stream for node in work.nodes}
    free = (number for number in count(1) if number not in streams)
    return {
        stream: stream if stream >= 0 else next(free) for stream in sorted(streams, reverse=True)
    }


def _operation(graph: Graph, rank: int, node: WorkNode, tag: int, own_cpu: int) -> str:
    cpu = f" cpu {own_cpu}" if own_cpu else ""
    if node.kind is NodeKind.COMPUTE:
        return f"calc {round(node.duration_ps / PS_PER_NS)}{cpu}"
    if node.kind is NodeKind.COLLECTIVE:
        raise ConfigError(
            f"{graph.place(rank, node)}: GOAL has messages only, got a collective; lower it first"
        )
    way, to = ("send", "to") if node.kind is NodeKind.SEND else ("recv", "from")
    return f"{way} {node.size_bytes}b {to} {node.peer} tag {tag}{cpu}"
