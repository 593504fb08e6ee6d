"""The timeline of a run as a Chrome trace, which ui.perfetto.dev and chrome://tracing open.

A process per rank has rows for the passes of its layers, for its waits, and for the collectives
that it takes part in, from its own call to the end.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from ringleaf.core.units import PS_PER_US
from ringleaf.experiments.records.tracks import Event, named
from ringleaf.experiments.workloads.train.account import CollectiveLine, RankSpan
from ringleaf.experiments.workloads.train.wire import BACKWARD, FORWARD, WAITED

_ROWS = {FORWARD: 1, BACKWARD: 1, WAITED: 2}
_NAMES = {1: "layers", 2: "waits"}
_FIRST_CALL = 10

MOST_EVENTS = 100_000


def as_chrome(
    spans: Sequence[Sequence[RankSpan]], lines: Sequence[CollectiveLine], *, left_out: int = 0
) -> str:
    """Return the text of a trace.

    Args:
        spans: By rank.
        lines: The collectives.
        left_out: Collectives that there was no room to note.
    """
    events: list[Event] = []
    for rank, own in enumerate(spans):
        events.append(named("process_name", rank + 1, f"rank {rank}"))
        events += [named("thread_name", rank + 1, name, row) for row, name in _NAMES.items()]
        events += (_span(rank, span) for span in own)
    events += _collectives(lines)
    kept = events[:MOST_EVENTS]
    about = {"displayTimeUnit": "ns", "otherData": {"left_out": left_out + len(events) - len(kept)}}
    return json.dumps(about | {"traceEvents": kept}, indent=0) + "\n"


def _span(rank: int, span: RankSpan) -> Event:
    return _event(
        span.kind, span.name or span.kind, rank, _ROWS[span.kind], span.start_ps, span.end_ps, {}
    )


def _event(
    kind: str, name: str, rank: int, row: int, start_ps: int, end_ps: int, about: dict[str, Any]
) -> Event:
    return {
        "ph": "X",
        "name": name,
        "cat": kind,
        "pid": rank + 1,
        "tid": row,
        "ts": start_ps / PS_PER_US,
        "dur": (end_ps - start_ps) / PS_PER_US,
        "args": {"start_ps": start_ps, "end_ps": end_ps, **about},
    }


def _collectives(lines: Sequence[CollectiveLine]) -> Iterator[Event]:
    """Yield each collective once for each of its ranks, in a row in which it overlaps with none."""
    free: dict[int, list[int]] = {}  # by rank, the end of the last one in each row
    for number, line in enumerate(lines):
        for rank, called_ps in zip(line.members, line.called_ps, strict=True):
            ends = free.setdefault(rank, [])
            row = next((i for i, end_ps in enumerate(ends) if end_ps <= called_ps), len(ends))
            if row == len(ends):
                ends.append(0)
                yield named("thread_name", rank + 1, f"collectives {row + 1}", _FIRST_CALL + row)
            ends[row] = line.end_ps
            title = f"{line.title}, {line.algorithm}"
            about = {"number": number, **asdict(line)}
            yield _event("call", title, rank, _FIRST_CALL + row, called_ps, line.end_ps, about)


def from_chrome(text: str, ranks: int) -> tuple[list[list[RankSpan]], list[CollectiveLine]]:
    """Return the spans by rank, and the collectives, of a trace that `as_chrome` has made."""
    spans: list[list[RankSpan]] = [[] for _ in range(ranks)]
    lines: dict[int, CollectiveLine] = {}
    for event in json.loads(text)["traceEvents"]:
        if event["ph"] != "X":
            continue
        about = dict(event["args"])
        start_ps = about.pop("start_ps")
        if event["cat"] == "call":
            number = about.pop("number")
            pairs = {name: tuple(about[name]) for name in ("members", "called_ps")}
            lines.setdefault(number, CollectiveLine(**about | pairs | {"end_ps": about["end_ps"]}))
        else:
            span = RankSpan(event["cat"], event["name"], start_ps, about["end_ps"])
            spans[event["pid"] - 1].append(span)
    return spans, [lines[number] for number in sorted(lines)]
