"""`report.html` of a run of a training script: a page that opens from disk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from statistics import median

from ringleaf.experiments.records.page.document import document, figure
from ringleaf.experiments.workloads.train.results import TIMELINE, TrainRun
from ringleaf.units import PS_PER_US, format_time

_CAPTIONS = {
    "iterations": (
        "Iterations",
        "From one optimizer step to the next, until the last rank's. Exposed communication is the "
        "time that ranks wait for calls: for the network, and for one another.",
    ),
    "calls": (
        "Calls",
        "The time of all calls that are alike, with the algorithm that carried them.",
    ),
    "timeline": (
        "An iteration",
        "Above, what a rank does; below, the collectives that it takes part in.",
    ),
}
_COLUMNS = (
    *("call", "group", "size (B)", "type", "op", "algorithm", "calls", "time (µs)"),
    *("busbw (GB/s)", "total (µs)", "#wrong"),
)


def render(run: TrainRun, svgs: Mapping[str, str]) -> str:
    """Return the page, given SVG by figure."""
    parts = (
        *(f'<p class="soft">{escape(line)}</p>' for line in run.about),
        *_facts(run),
        '<h2>Time</h2>\n<div class="figures">',
        *(figure(svgs[name], *_CAPTIONS[name]) for name in _CAPTIONS if name in svgs),
        "</div>",
        f'<p class="soft">{escape(str(TIMELINE))} has all layers, waits and collectives of every '
        "rank: ui.perfetto.dev and chrome://tracing open it.</p>",
        "<h2>Calls</h2>",
        *_table(run),
        "<h2>Run it again</h2>",
        f"<pre>{escape(run.command)}</pre>",
    )
    return document("A training script on an emulated network", parts)


def _facts(run: TrainRun) -> Iterator[str]:
    yield '<ul class="facts">'
    if run.wrong is not None:
        kind = "bad" if run.wrong else "good"
        said = "each result was checked"
        yield f'<li class="{kind}"><b>{run.wrong:,} wrong</b><span>{said}</span></li>'
    steps = run.steps()
    if steps:
        later = steps[1:] or steps
        time_ps = median(time_ps for time_ps, _ in later)
        wait_ps = median(wait_ps for _, wait_ps in later)
        share = 100 * wait_ps / time_ps if time_ps else 0.0
        yield f"<li><b>{format_time(time_ps)}</b><span>an iteration, the first left out</span></li>"
        yield f"<li><b>{share:.0f} %</b><span>of it, ranks wait: {format_time(wait_ps)}</span></li>"
    if not run.complete:
        yield '<li class="bad"><b>not complete</b><span>the script did not end</span></li>'
    yield "</ul>"


def _table(run: TrainRun) -> Iterator[str]:
    yield '<div class="scroll"><table><thead><tr>'
    yield from (f"<th>{escape(name)}</th>" for name in _COLUMNS)
    yield "</tr></thead><tbody>"
    for row in run.rows:
        cells = (
            *(row.call, row.group, f"{row.size_bytes:,}", row.dtype, row.redop, row.algo),
            *(f"{row.count:,}", f"{row.time_ps / PS_PER_US:,.2f}", f"{row.busbw_gb_s:.2f}"),
            f"{row.total_ps / PS_PER_US:,.2f}",
            "" if row.wrong is None else f"{row.wrong:,}",
        )
        kind = ' class="wrong"' if row.wrong else ""
        yield f"<tr{kind}>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"
    yield "</tbody></table></div>"
