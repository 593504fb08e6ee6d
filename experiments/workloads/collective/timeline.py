"""Timelines of collectives: messages of each rank, queues, and switches' memory.

As a file it is a Chrome trace (the Trace Event Format), which ui.perfetto.dev and chrome://tracing
open: a process per rank, with rows for messages that it sends, for those it receives, and for
sums that it waits for; the network's queues and entries in use are counters.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from heapq import heappush, heapreplace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import networkx as nx
import numpy as np
import numpy.typing as npt

from ringleaf.collectives.schedule import Aggregate, Message, Schedule
from ringleaf.core.faults import NetworkFault
from ringleaf.core.units import PS_PER_US, format_count
from ringleaf.experiments.records.circuit_spells import spells_of
from ringleaf.experiments.records.tracks import FOLDER, MOST_EVENTS, Event, named
from ringleaf.networks.outcome import (
    AGGREGATE,
    RECEIVE,
    SEND,
    Note,
    RunResult,
)
from ringleaf.topologies.graph import hosts

if TYPE_CHECKING:
    from ringleaf.experiments.workloads.collective.communicator import Communicator

MOST_PORTS = 1024
"""Queues are watched over time in networks with at most so many ports, 32 KiB for each."""

_QUEUES, _SWITCHES = 6, 4  # the fullest ones, which are shown
_NETWORK = 0  # the process of the counters; rank r is process r + 1
_FIRST_ROW = {SEND: 100, RECEIVE: 200, AGGREGATE: 300}
_ROW_NAMES = {SEND: "sends", RECEIVE: "receives", AGGREGATE: "in the switches"}

Lanes = dict[tuple[int, str], list[tuple[int, int]]]
"""Per node and kind of message, a heap of its rows: the end of the last message, and the number."""


class TraceText(NamedTuple):
    """The text of a Chrome trace, and the number of events that it had no room for."""

    text: str
    left_out: int


def file_of(algo: str, size_bytes: int) -> Path:
    """Return the path of a row's timeline, below the run directory."""
    return Path(FOLDER) / f"{algo}-{size_bytes}.json"


def as_chrome(
    graph: nx.Graph[str],
    schedule: Schedule,
    outcome: RunResult,
    *,
    most: int = MOST_EVENTS,
    faults: Sequence[NetworkFault] = (),
    communicators: Sequence[Communicator] = (),
) -> TraceText:
    """Return the timeline of a collective as a Chrome trace.

    Args:
        graph: The topology, whose i-th host is the schedule's node i, if all are ranks or servers.
        schedule: The schedule that ran.
        outcome: Its result, with notes of messages.
        most: Events at most, apart from names. Counters come first; then messages, in the order
            in which they were done. `otherData` says how many there was no room for.
        faults: The faults of the network in the run.
        communicators: Those that did it, one after the other, if it is known; the last one had
            results.
    """
    changes = list(_counters(outcome))
    counters = changes[: most // 2]
    notes = outcome.notes[: most - len(counters)]
    left_out = outcome.left_out + len(outcome.notes) - len(notes) + len(changes) - len(counters)
    known = _rows_of(schedule, notes)
    lanes: Lanes = {}
    spans = [
        _span(note, known[note.row], lanes)
        for note in sorted(notes, key=lambda note: (note.start_ps, note.end_ps))
    ]
    broken = [
        *_faults(faults, outcome.time_ps),
        *_rebuilt(outcome, len(faults) + 1),
        *_circuits(outcome, len(faults) + 1 + bool(outcome.rebuilt)),
        *_shrunk(outcome, communicators, len(faults) + 1 + bool(outcome.rebuilt)),
    ]
    nodes = communicators[-1].nodes if communicators else hosts(graph)
    events = chain(_names(nodes, schedule, lanes), broken, spans, counters)
    about = {"events": len(spans) + len(counters), "most": most, "left_out": left_out}
    whole = {"displayTimeUnit": "ns", "otherData": about, "traceEvents": list(events)}
    return TraceText(json.dumps(whole, separators=(",", ":")) + "\n", left_out)


def _rows_of(schedule: Schedule, notes: Sequence[Note]) -> dict[int, Message | Aggregate]:
    numbers = sorted({note.row for note in notes})
    rows = schedule.as_rows.at(np.array(numbers, np.int64)).messages()
    return dict(zip(numbers, rows, strict=True))


def _take_lane(lanes: Lanes, note: Note) -> int:
    """Return a lane that is free at a message's start: there may be a hundred, so by a heap."""
    ends = lanes.setdefault((note.node, note.kind), [])
    if ends and ends[0][0] <= note.start_ps:
        lane = ends[0][1]
        heapreplace(ends, (note.end_ps, lane))
    else:
        lane = len(ends)
        heappush(ends, (note.end_ps, lane))
    return lane


def _span(note: Note, row: Message | Aggregate, lanes: Lanes) -> Event:
    lane = _take_lane(lanes, note)
    about: Event = {"step": row.step}
    if isinstance(row, Message):
        chunks = _chunks(row.start, row.stop)
        towards = "to" if note.kind == SEND else "from"
        name = f"{chunks} {towards} {note.peer}"
        about |= {"peer": note.peer, "chunk": row.start, "chunks": row.stop - row.start}
        about["op"] = str(row.op)
    else:
        name = f"sum of {_chunks(row.chunk, row.chunk + 1)}"
        about |= {"chunk": row.chunk, "chunks": 1}
    return {
        "ph": "X",
        "name": name,
        "cat": note.kind,
        "pid": note.node + 1,
        "tid": _FIRST_ROW[note.kind] + lane,
        "ts": note.start_ps / PS_PER_US,
        "dur": (note.end_ps - note.start_ps) / PS_PER_US,
        "args": about,
    }


def _chunks(start: int, stop: int) -> str:
    return f"chunk {start}" if stop == start + 1 else f"chunks {start} to {stop - 1}"


def _names(nodes: Sequence[str], schedule: Schedule, lanes: Lanes) -> Iterator[Event]:
    """Yield the names of processes and rows."""
    yield named("process_name", _NETWORK, "network")
    for node in sorted({node for node, _ in lanes}):
        part = "rank" if node < schedule.ranks else "server"
        yield named("process_name", node + 1, f"{part} {node} on {nodes[node]}")
    for (node, kind), ends in sorted(lanes.items()):
        for lane in range(len(ends)):
            yield named("thread_name", node + 1, _ROW_NAMES[kind], _FIRST_ROW[kind] + lane)


def _faults(faults: Sequence[NetworkFault], time_ps: int) -> Iterator[Event]:
    """Yield the row of each fault, and when it was there."""
    for tid, fault in enumerate(faults, start=1):
        yield named("thread_name", _NETWORK, f"fault at {fault.place}", tid)
        for start_ps, end_ps in fault.spans():
            stop_ps = time_ps if end_ps is None else min(end_ps, time_ps)
            if start_ps < stop_ps:
                yield {
                    "ph": "X",
                    "name": fault.kind,
                    "cat": "fault",
                    "pid": _NETWORK,
                    "tid": tid,
                    "ts": start_ps / PS_PER_US,
                    "dur": (stop_ps - start_ps) / PS_PER_US,
                    "args": {"fault": str(fault)},
                }


def _rebuilt(outcome: RunResult, tid: int) -> Iterator[Event]:
    """Yield the row of aggregation trees that were built again, until all workers had a result."""
    if outcome.rebuilt:
        yield named("thread_name", _NETWORK, "aggregation trees", tid)
    for each in outcome.rebuilt:
        end_ps = outcome.time_ps if each.resumed_ps is None else each.resumed_ps
        yield from _bar("rebuilt", tid, each.at_ps, end_ps, outcome.time_ps, "tree")


def _shrunk(outcome: RunResult, communicators: Sequence[Communicator], tid: int) -> Iterator[Event]:
    """Yield the row of communicators, if the first one has given up."""
    if len(communicators) > 1:
        yield named("thread_name", _NETWORK, "communicators", tid)
        ends_ps = [*(each.begins_ps for each in communicators[1:]), outcome.time_ps]
        for each, end_ps in zip(communicators, ends_ps, strict=True):
            name = format_count(each.ranks, "rank")
            ends = (each.begins_ps, end_ps, outcome.time_ps)
            yield from _bar(name, tid, *ends, "communicator")


def _circuits(outcome: RunResult, first: int) -> Iterator[Event]:
    """Yield the row of changes of circuits, if a controller sets some up, and a row for each one.

    A change is drained, then dark; a circuit is a bar while it is up.
    """
    use = outcome.circuits
    if use is None:
        return
    yield named("thread_name", _NETWORK, "circuits", first)
    rows: dict[str, int] = {}
    for spell in spells_of(use):
        tid = first
        if spell.circuit:
            if spell.circuit not in rows:
                rows[spell.circuit] = first + 1 + len(rows)
                name = f"circuit {spell.circuit}"
                yield named("thread_name", _NETWORK, name, rows[spell.circuit])
            tid = rows[spell.circuit]
        yield from _bar(spell.state, tid, spell.start_ps, spell.end_ps, use.time_ps)


def _bar(
    name: str, tid: int, start_ps: int, end_ps: int, last_ps: int, category: str = "circuit"
) -> Iterator[Event]:
    """Yield a bar of the network's, if any of it is within the run."""
    stop_ps = min(end_ps, last_ps)
    if start_ps < stop_ps:
        yield {
            "ph": "X",
            "name": name,
            "cat": category,
            "pid": _NETWORK,
            "tid": tid,
            "ts": start_ps / PS_PER_US,
            "dur": (stop_ps - start_ps) / PS_PER_US,
        }


def _counters(outcome: RunResult) -> Iterator[Event]:
    """Yield the fullest queues' bytes and the fullest switches' entries, where they change."""
    queues = {
        f"queue {node} to {peer} (B)": series.sum(axis=0)
        for (node, peer), series in outcome.queue_series.items()
    }
    entries = {
        f"entries in {switch}": series.sum(axis=0)
        for switch, series in outcome.memory_series.items()
    }
    yield from _changes(_fullest(queues, _QUEUES), outcome.queue_bin_ps)
    yield from _changes(_fullest(entries, _SWITCHES), outcome.memory_interval_ps)


def _fullest(
    series: Mapping[str, npt.NDArray[np.int64]], most: int
) -> dict[str, npt.NDArray[np.int64]]:
    """Return the series with the highest peaks, those that were not always zero."""
    peaks = {name: int(values.max(initial=0)) for name, values in series.items()}
    chosen = sorted((name for name in series if peaks[name]), key=lambda name: -peaks[name])
    return {name: series[name] for name in chosen[:most]}


def _changes(series: Mapping[str, npt.NDArray[np.int64]], step_ps: int) -> Iterator[Event]:
    for name, values in series.items():
        for place in np.flatnonzero(np.diff(values, prepend=-1)).tolist():
            yield {
                "ph": "C",
                "name": name,
                "pid": _NETWORK,
                "tid": 0,
                "ts": place * step_ps / PS_PER_US,
                "args": {"value": int(values[place])},
            }
