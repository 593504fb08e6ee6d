"""The timeline of a replay, rank by rank: computations, and messages and collectives on the wire.

As a file it is a Chrome trace (the Trace Event Format), which ui.perfetto.dev and chrome://tracing
open: a process per rank, with rows for what it computes and for each kind of traffic.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ringleaf.core.units import PS_PER_US
from ringleaf.experiments.records.tracks import MOST_EVENTS, named
from ringleaf.hosts.workload.replay import WorkReplay

FILE = "timeline.json"
COMPUTE = "compute"


@dataclass(frozen=True, slots=True)
class NodeBar:
    """A node of a rank: a computation, or its part in a meeting; times in picoseconds."""

    rank: int
    kind: str  # COMPUTE, or the label of the traffic
    name: str
    start_ps: int
    end_ps: int
    wait_ps: int = 0  # of a meeting, from the rank's arrival to the start


@dataclass(frozen=True, slots=True)
class Timeline:
    """The bars of some ranks, in the order of ranks and starts."""

    ranks: tuple[int, ...]  # those that are shown
    of: int  # ranks in all
    bars: tuple[NodeBar, ...]

    @classmethod
    def of_replay(cls, replay: WorkReplay, *, most: int = MOST_EVENTS) -> Timeline:
        """Return the timeline of all ranks, or of evenly spaced ones if that is `most` bars."""
        count = len(replay.times)
        total = sum(map(len, replay.times))
        step = max(1, -(-total // most))
        ranks = tuple(range(0, count, step))
        bars = (bar for rank in ranks for bar in sorted(_bars(replay, rank), key=_start))
        return cls(ranks, count, tuple(bars))

    def as_chrome(self) -> str:
        """Return the text of a Chrome trace."""
        rows = {kind: number for number, kind in enumerate(self.kinds, start=1)}
        events: list[dict[str, Any]] = []
        for rank in self.ranks:
            events.append(named("process_name", rank, f"rank {rank}"))
            events += [named("thread_name", rank, kind, row) for kind, row in rows.items()]
        for bar in self.bars:
            events.append(
                {
                    "ph": "X",
                    "name": bar.name or bar.kind,
                    "cat": bar.kind,
                    "pid": bar.rank,
                    "tid": rows[bar.kind],
                    "ts": bar.start_ps / PS_PER_US,
                    "dur": (bar.end_ps - bar.start_ps) / PS_PER_US,
                    "args": {
                        "start_ps": bar.start_ps,
                        "end_ps": bar.end_ps,
                        "wait_ps": bar.wait_ps,
                    },
                }
            )
        about = {"ranks": list(self.ranks), "of": self.of}
        whole = {"displayTimeUnit": "ns", "otherData": about, "traceEvents": events}
        return json.dumps(whole, separators=(",", ":")) + "\n"

    @classmethod
    def from_chrome(cls, text: str) -> Timeline:
        """Return the timeline of a trace that `as_chrome` has made."""
        whole = json.loads(text)
        about = whole["otherData"]
        bars = (
            NodeBar(event["pid"], event["cat"], event["name"], **event["args"])
            for event in whole["traceEvents"]
            if event["ph"] == "X"
        )
        return cls(tuple(about["ranks"]), about["of"], tuple(bars))

    @property
    def kinds(self) -> list[str]:
        """The kinds of bars, computations first."""
        return list(dict.fromkeys((COMPUTE, *(bar.kind for bar in self.bars))))


def _start(bar: NodeBar) -> int:
    return bar.start_ps


def _bars(replay: WorkReplay, rank: int) -> Iterator[NodeBar]:
    matched = replay.matched
    work = matched.graph.ranks[rank]
    rows = zip(work.nodes, matched.meeting_of[rank], replay.times[rank], strict=True)
    for node, number, times in rows:
        if number < 0 and matched.graph.are_flows:
            continue
        kind = COMPUTE if number < 0 else matched.meetings[number].label
        wait_ps = 0 if number < 0 else times.start_ps - times.ready_ps
        yield NodeBar(rank, kind, node.name or kind, times.start_ps, times.end_ps, wait_ps)
