"""Timelines as Chrome traces (the Trace Event Format), for ui.perfetto.dev and chrome://tracing.

A kind of workload whose results have tracks, a row of bars each, gets such a file by that alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ringleaf.core.units import PS_PER_US

FOLDER = "timelines"
"""The folder of timelines in a run directory."""

MOST_EVENTS = 20_000
"""The most bars, and changes of counters, in a file, which then has about 4 MB."""

Event = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Bar:
    """A stretch of time in a track; picoseconds from the start of the run."""

    name: str
    start_ps: int
    end_ps: int


@dataclass(frozen=True, slots=True)
class Track:
    """A row of a timeline.

    Attributes:
        owner: Whose row it is, for a heading above rows of one owner: `rank 3`.
        name: Its own name: `sends`.
        bars: What is in it, in any order.
    """

    owner: str
    name: str
    bars: Sequence[Bar]


def named(what: str, pid: int, name: str, tid: int = 0) -> Event:
    """Return the event that names a process or a thread."""
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "args": {"name": name}}


def as_chrome(tracks: Iterable[Track], *, most: int = MOST_EVENTS) -> str:
    """Return tracks as the text of a trace; `otherData` says how many bars it has no room for."""
    every = list(tracks)
    events = list(_events(every))
    bars = sorted((each for each in events if each["ph"] == "X"), key=lambda each: each["ts"])
    names = [each for each in events if each["ph"] == "M"]
    about = {"events": min(len(bars), most), "most": most, "left_out": max(len(bars) - most, 0)}
    whole = {"displayTimeUnit": "ns", "otherData": about, "traceEvents": [*names, *bars[:most]]}
    return json.dumps(whole, separators=(",", ":")) + "\n"


def _events(tracks: Sequence[Track]) -> Iterator[Event]:
    owners = {owner: pid for pid, owner in enumerate(dict.fromkeys(t.owner for t in tracks), 1)}
    for owner, pid in owners.items():
        yield named("process_name", pid, owner)
    for tid, track in enumerate(tracks, start=1):
        pid = owners[track.owner]
        yield named("thread_name", pid, track.name, tid)
        for bar in track.bars:
            yield {
                "ph": "X",
                "name": bar.name,
                "pid": pid,
                "tid": tid,
                "ts": bar.start_ps / PS_PER_US,
                "dur": (bar.end_ps - bar.start_ps) / PS_PER_US,
            }


def file_of(kind: str) -> Path:
    """Return the path of a run's timeline, below the run directory."""
    return Path(FOLDER) / f"{kind}.json"
