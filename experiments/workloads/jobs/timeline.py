"""Timelines of jobs, layer by layer: passes, waits, gradients in queues and on the wire.

As a file it is a Chrome trace (the Trace Event Format), which ui.perfetto.dev and chrome://tracing
open: a process per job, and rows for its computing, for gradients that wait for their turn, and for
those on the wire; queue and switch memory are counters.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ringleaf.core.units import FOREVER_PS, PS_PER_US
from ringleaf.experiments.records.tracks import named

if TYPE_CHECKING:
    from ringleaf.experiments.workloads.jobs.results import Combination, JobsCase
    from ringleaf.hosts.training.job import JobIteration, TrainingJob
    from ringleaf.networks.endpoints.training import PieceTimes

TIMELINES = "timelines"  # folder of a Chrome trace per case

FORWARD = "forward"
BACKWARD = "backward"
WAIT = "wait"  # of a forward pass, for the layer's sum of the iteration before
QUEUED = "queued"  # a gradient is ready, and not released yet
WIRE = "wire"  # from its release until all ranks have the sum
KINDS = (FORWARD, BACKWARD, WAIT, QUEUED, WIRE)

_COMPUTE, _FIRST_QUEUED, _FIRST_WIRE = 1, 100, 200  # rows of a job in the trace


@dataclass(frozen=True, slots=True)
class JobSpan:
    """A span of a job's computing, or of a piece of its gradient; times in picoseconds."""

    job: int  # from 1
    iteration: int  # from 1
    kind: str
    layers: tuple[int, ...]  # from 0, the front layer
    start_ps: int
    end_ps: int
    priority: int = 0  # of packets


def spans_of(jobs: Sequence[TrainingJob], stretches: Iterable[PieceTimes]) -> list[JobSpan]:
    """Return all spans in the order of their starts, without those of no length."""
    spans = [
        span
        for number, job in enumerate(jobs, start=1)
        for count, iteration in enumerate(job.history, start=1)
        for span in _passes(job, number, count, iteration)
    ]
    for each in stretches:
        about = each.job + 1, each.iteration + 1
        layers, priority = each.piece.layers, each.priority
        spans.append(JobSpan(*about, QUEUED, layers, each.ready_ps, each.start_ps, priority))
        spans.append(JobSpan(*about, WIRE, layers, each.start_ps, each.end_ps, priority))
    return sorted(
        (span for span in spans if span.end_ps > span.start_ps),
        key=lambda span: (span.start_ps, span.job, span.kind, span.layers),
    )


def _passes(
    job: TrainingJob, number: int, count: int, iteration: JobIteration
) -> Iterator[JobSpan]:
    """Yield an iteration's passes and waits, without those that are not over yet."""
    now_ps = iteration.start_ps
    layers, starts = job.model.layers, iteration.starts_ps
    for layer, (wait_ps, start_ps) in enumerate(zip(iteration.waits_ps, starts, strict=False)):
        yield JobSpan(number, count, WAIT, (layer,), now_ps, now_ps + wait_ps)
        now_ps = start_ps + layers[layer].forward_ps
        yield JobSpan(number, count, FORWARD, (layer,), start_ps, now_ps)
    if iteration.backward_ps == FOREVER_PS:
        return
    for step, start_ps in zip(job.steps, starts[len(layers) :], strict=True):
        yield JobSpan(number, count, BACKWARD, (step.layer,), start_ps, start_ps + step.time_ps)


def as_chrome(case: JobsCase) -> str:
    """Return a case's timeline as the text of a Chrome trace."""
    events: list[dict[str, Any]] = []
    for row in case.rows:
        events.append(named("process_name", row.job, f"job {row.job}: {row.model}"))
        events.append(named("thread_name", row.job, "compute", _COMPUTE))
    rows: dict[tuple[int, int], list[int]] = {}
    for span in case.spans:
        first = {QUEUED: _FIRST_QUEUED, WIRE: _FIRST_WIRE}.get(span.kind)
        thread = _COMPUTE if first is None else first + _free_row(rows, span, first)
        events.append(
            {
                "ph": "X",
                "name": f"{span.kind} {_layers(span.layers)}",
                "cat": span.kind,
                "pid": span.job,
                "tid": thread,
                "ts": span.start_ps / PS_PER_US,
                "dur": (span.end_ps - span.start_ps) / PS_PER_US,
                "args": asdict(span),
            }
        )
    for (job, first), ends in rows.items():
        name = "queued" if first == _FIRST_QUEUED else "on the wire"
        events += [named("thread_name", job, name, first + i) for i in range(len(ends))]
    events += _counters(case)
    return json.dumps({"displayTimeUnit": "ns", "traceEvents": events}, indent=0) + "\n"


def _free_row(rows: dict[tuple[int, int], list[int]], span: JobSpan, first: int) -> int:
    """Return a row of the job in which nothing overlaps with a span."""
    ends = rows.setdefault((span.job, first), [])
    for row, end_ps in enumerate(ends):
        if end_ps <= span.start_ps:
            ends[row] = span.end_ps
            return row
    ends.append(span.end_ps)
    return len(ends) - 1


def _layers(layers: Sequence[int]) -> str:
    first, last = min(layers) + 1, max(layers) + 1
    return f"layer {first}" if first == last else f"layers {first} to {last}"


def _counters(case: JobsCase) -> Iterator[dict[str, Any]]:
    """Yield the fullest queue's bytes and the fullest switch's entries, where they change."""
    series = (
        (f"queue {case.queue} (B)", case.queue_bin_ps, case.queue_series),
        (f"entries in {case.memory_switch}", case.memory_interval_ps, case.memory_series),
    )
    for name, step_ps, values in series:
        if values is None:
            continue
        before = None
        for place, value in enumerate(values.sum(axis=0).tolist()):
            if value != before:
                at_us = place * step_ps / PS_PER_US
                yield {"ph": "C", "name": name, "pid": 0, "ts": at_us, "args": {"value": value}}
            before = value


def from_chrome(text: str) -> list[JobSpan]:
    """Return the spans of a trace that `as_chrome` has made."""
    events = json.loads(text)["traceEvents"]
    arguments = (event["args"] for event in events if event["ph"] == "X")
    return [JobSpan(**each | {"layers": tuple(each["layers"])}) for each in arguments]


def timeline_file(combination: Combination) -> Path:
    """Return the path of a case's Chrome trace, below the run directory."""
    return Path(TIMELINES) / f"{combination.name}.json"
