"""Flows in the text files of other simulators: HPCC's ns-3, and htsim.

HPCC's `flow.txt` has the number of flows, and a line for each: source, destination, priority group,
perhaps the destination's port, bytes, and the start in seconds. Its forerunner has packets in place
of the port, then the start and the end; such files are refused. htsim's connection matrix (`.cm`):

    Nodes 16
    Connections 2
    0->13 id 1 start 0 size 2000000
    13->0 id 2 start 0 size 2000000

Starts are in picoseconds there. Numbers of nodes are ranks; but those of ns-3 are the numbers that
nodes have in its topology, if that is known.

Source:
    alibaba-edu/High-Precision-Congestion-Control, simulation/scratch/third.cc; Broadcom/csg-htsim,
    sim/datacenter/connection_matrix.cpp.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from ringleaf.core.units import PS_PER_S, format_count, is_whole
from ringleaf.errors import ConfigError
from ringleaf.hosts.workload.flows import FlowFile, TimedFlow
from ringleaf.hosts.workload.formats.framing import read_text
from ringleaf.hosts.workload.graph import check_ranks

_LAST_PORT = 65535
_MOST_SHOWN = 8  # hosts, in a message
_SECONDS = re.compile(r"\d{1,9}(?:\.\d{0,30})?(?:[eE]-\d{1,2})?", re.ASCII)
_ENDS = re.compile(r"(\d{1,9})->(\d{1,9})", re.ASCII)

_HTSIM_UNUSED = ("id", "prio")
_HTSIM_REFUSED = {
    "trigger": "starts by triggers are not read",
    "send_done_trigger": "triggers are not read",
    "recv_done_trigger": "triggers are not read",
    "addon": "triggers are not read",
    "failure": "failures of switches and links are not read",
    "msg": "messages that share a connection are not read",
}


def read_ns3_flows(path: Path, ranks: Mapping[str, int] | None = None) -> FlowFile:
    """Return the flows of a file of HPCC's ns-3, or of one that has no ports.

    Args:
        path: The file.
        ranks: Ranks of hosts by their names in the topology's file. If each has a number there,
            such numbers are meant; else numbers are ranks.

    Raises:
        ConfigError: If it can't be read or a line is wrong; the message names the line.
    """
    lines = [(at, line.split()) for at, line in enumerate(read_text(path).splitlines(), 1)]
    rows = [(at, row) for at, row in lines if row]
    where = f"{path}: line {rows[0][0]}"
    count = _whole(where, "the number of flows", rows[0][1][0])
    if len(rows) - 1 < count:
        raise ConfigError(f"{where}: must be the number of flows, {len(rows) - 1}, got {count}")
    chosen = rows[1 : count + 1]
    numbers = {int(name): rank for name, rank in (ranks or {}).items() if is_whole(name)}
    known = numbers if len(numbers) == len(set((ranks or {}).values())) else {}
    flows = [_ns3_flow(f"{path}: line {at}", row, known) for at, row in chosen]
    notes = []
    if others := rows[count + 1 :]:
        notes.append(
            f"{path}: line {others[0][0]} and what follows are passed over, as line 1 counts "
            f"{format_count(count, 'flow')}"
        )
    if len(groups := sorted({row[2] for _, row in chosen})) > 1:
        notes.append(f"{path}: priority groups {', '.join(groups)} are one class here")
    return FlowFile(_some(path, flows), notes=tuple(notes))


def _ns3_flow(where: str, row: Sequence[str], ranks: Mapping[int, int]) -> TimedFlow:
    if len(row) == 7 or (len(row) == 6 and not (_is_port(row[3]) and is_whole(row[4]))):
        raise ConfigError(
            f"{where}: must be source, destination, group, maybe port, bytes and start, got "
            f"{' '.join(row)!r:.80}; files with sizes in packets, and with a time of their end, "
            "are not read"
        )
    if len(row) not in (5, 6):
        raise ConfigError(
            f"{where}: must be source, destination, group, maybe port, bytes and start, got "
            f"{' '.join(row)!r:.80}"
        )
    if not _SECONDS.fullmatch(row[-1]):
        raise ConfigError(f"{where}: start must be in seconds, got {row[-1]!r:.40}")
    start_ps = round(Fraction(row[-1]) * PS_PER_S)
    flow = _flow(where, row[0], row[1], row[-2], start_ps)
    if not ranks:
        return flow
    for node in (flow.source, flow.target):
        if node not in ranks:
            raise ConfigError(
                f"{where}: must have hosts of the topology's file, got node {node}; hosts are "
                f"{_listed(sorted(ranks))}"
            )
    return replace(flow, source=ranks[flow.source], target=ranks[flow.target])


def _listed(numbers: Sequence[int]) -> str:
    shown = [*map(str, numbers[:_MOST_SHOWN])]
    return ", ".join([*shown, "..."] if len(numbers) > _MOST_SHOWN else shown)


def _is_port(text: str) -> bool:
    """Return whether this is a number of a port, and no size in packets."""
    return is_whole(text) and int(text) <= _LAST_PORT


def _flow(where: str, source: str, target: str, size: str, start_ps: int) -> TimedFlow:
    ends = [_whole(where, "a node", each) for each in (source, target)]
    for end in ends:
        check_ranks(where, end + 1)
    if ends[0] == ends[1]:
        raise ConfigError(f"{where}: target must be another node than source, got {target}")
    size_bytes = _whole(where, "a size", size)
    if not size_bytes:
        raise ConfigError(f"{where}: size must be 1 byte or more, got 0; such a flow never ends")
    return TimedFlow(ends[0], ends[1], size_bytes, start_ps)


def _whole(where: str, what: str, text: str) -> int:
    if not is_whole(text):
        raise ConfigError(f"{where}: must be {what}, a whole number, got {text!r:.60}")
    return int(text)


def _some(path: Path, flows: list[TimedFlow]) -> list[TimedFlow]:
    if not flows:
        raise ConfigError(f"{path}: must have a flow at least, got none")
    return flows


def read_htsim_flows(path: Path) -> FlowFile:
    """Return the flows of a connection matrix.

    Raises:
        ConfigError: If it can't be read, a line is wrong, or it has triggers or failures; the
            message names the line.
    """
    counts: dict[str, int] = {}
    flows: list[TimedFlow] = []
    unused: set[str] = set()
    for at, line in enumerate(read_text(path).splitlines(), 1):
        where, words = f"{path}: line {at}", line.split()
        if not words or words[0].startswith("#"):
            continue
        if words[0] in ("Nodes", "Connections", "Triggers", "Failures"):
            counts[words[0]] = _whole(where, "a number", " ".join(words[1:]))
        elif ends := _ENDS.fullmatch(words[0]):
            flows.append(_htsim_flow(where, ends, words[1:], unused))
        else:
            what = _HTSIM_REFUSED.get(words[0], "what else there may be is unknown")
            raise ConfigError(f"{where}: must be a connection A->B, got {line!r:.60}; {what}")
    if counts.get("Connections", len(flows)) != len(flows):
        raise ConfigError(
            f"{path}: must have {format_count(counts['Connections'], 'connection')}, as it "
            f"says, got {len(flows)}"
        )
    ranks = counts.get("Nodes", 0)
    if ranks <= max((max(flow.source, flow.target) for flow in flows), default=0):
        raise ConfigError(f"{path}: all nodes must be below Nodes, got {ranks}")
    notes = (f"{path}: priorities of connections are not used",) if "prio" in unused else ()
    return FlowFile(_some(path, flows), check_ranks(str(path), ranks), notes)


def _htsim_flow(
    where: str, ends: re.Match[str], words: Sequence[str], unused: set[str]
) -> TimedFlow:
    options: dict[str, str] = {}
    at = 0
    while at < len(words):
        key = words[at]
        if key in _HTSIM_REFUSED:
            raise ConfigError(
                f"{where}: must be a flow that starts at a time, got {key!r}; {_HTSIM_REFUSED[key]}"
            )
        if key not in ("start", "size", *_HTSIM_UNUSED) or at + 1 == len(words):
            raise ConfigError(f"{where}: must have start and size, got {' '.join(words)!r:.80}")
        options[key] = words[at + 1]
        at += 2
    unused.update(options)
    start = options.get("start", "")
    if not is_whole(start) and not re.fullmatch(r"0\.0*", start, re.ASCII):
        raise ConfigError(
            f"{where}: start must be whole picoseconds, got {start!r:.40}; older files, in "
            "microseconds, are read if all start at 0"
        )
    start_ps = int(start) if is_whole(start) else 0
    return _flow(where, ends[1], ends[2], options.get("size", ""), start_ps)
