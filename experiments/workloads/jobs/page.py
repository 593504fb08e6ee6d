"""The part of a page that only jobs have: layers over time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

from ringleaf.core.units import format_count
from ringleaf.experiments.pages.document import figure
from ringleaf.experiments.workloads.jobs.figures import TIMELINE
from ringleaf.experiments.workloads.jobs.timeline import timeline_file

if TYPE_CHECKING:
    from ringleaf.experiments.workloads.jobs.results import JobsCase

_TIMELINE = (
    "A row per layer, the front one on top, in each job's second iteration. A gradient is ready "
    "when its backward pass ends, is queued until the scheduler releases it, and is on the wire "
    "until all ranks have its sum; the layer's next forward pass waits for that."
)


def timelines(cases: Sequence[JobsCase], svgs: Mapping[str, str]) -> Iterator[str]:
    """Yield each case's layers over time, as HTML."""
    named = {f"{TIMELINE}{case.combination.name}": case for case in cases if case.spans}
    if not named:
        return
    yield "<h2>Layers over time</h2>"
    yield f'<p class="soft">{escape(_TIMELINE)}</p>'
    for number, (name, svg) in enumerate(
        (name, svg) for name, svg in svgs.items() if name in named
    ):
        combination = named[name].combination
        title = (
            f"{format_count(combination.count, 'job')}, {combination.algo}, {combination.scheduler}"
        )
        yield f"<details{'' if number else ' open'}><summary>{escape(title)}</summary>"
        yield figure(svg, title, "")
        yield "</details>"
    files = ", ".join(escape(str(timeline_file(case.combination))) for case in named.values())
    yield (
        f'<p class="soft">All iterations, with queues and switch memory, are in {files}: '
        "ui.perfetto.dev and chrome://tracing open them.</p>"
    )
