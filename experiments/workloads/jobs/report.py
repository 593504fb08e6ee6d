"""`report.html` of a run of jobs: a page that opens from disk and asks the network for nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape

from ringleaf.experiments.records import drops, link_use
from ringleaf.experiments.records import pauses as held
from ringleaf.experiments.records.page.document import document, figure
from ringleaf.experiments.workloads.jobs.figures import TIMELINE
from ringleaf.experiments.workloads.jobs.results import JobRow, JobsCase, timeline_file
from ringleaf.units import PS_PER_MS, format_size

_CAPTIONS = {
    "jct": ("Job completion time", "From a job's start to its last sum. Lower is better."),
    "wait": (
        "Waiting for the front layers",
        "What forward passes wait, per iteration, for the sums of the first quarter of the layers.",
    ),
    "links": ("A shared link", "Load over time, by job: one link in all panels of as many jobs."),
    "queues": ("The fullest queue", "Bytes over time, by priority."),
    "memory": ("Switch memory", "Slots or aggregators in use in the fullest switch, by job."),
}
_TIMELINE = (
    "A row per layer, the front one on top, in each job's second iteration. A gradient is ready "
    "when its backward pass ends, is queued until the scheduler releases it, and is on the wire "
    "until all ranks have its sum; the layer's next forward pass waits for that."
)
_COLUMNS = (
    "jobs", "algorithm", "order", "entries", "job", "model", "JCT (ms)", "#wrong", "retx", "drops",
    "iteration (ms)", "compute (ms)", "wait (ms)", "front (ms)", "fairness", "busiest link (%)",
    "queue", "memory", "ranks",
)  # fmt: skip


def render(
    cases: Sequence[JobsCase],
    svgs: Mapping[str, str],
    *,
    title: str,
    about: Iterable[str],
    spec: str,
) -> str:
    """Return the page.

    Args:
        cases: The measured cases.
        svgs: Figure name -> SVG.
        title: Title of the page.
        about: Sentences on the network that the jobs ran on.
        spec: Text of the YAML file, to run it again.
    """
    rows = [row for case in cases for row in case.rows]
    timelines = {name: svg for name, svg in svgs.items() if name.startswith(TIMELINE)}
    parts = (
        *(f'<p class="soft">{escape(line)}</p>' for line in about),
        *_facts(rows),
        '<h2>Jobs</h2>\n<div class="figures">',
        *(figure(svgs[name], *_CAPTIONS[name]) for name in _CAPTIONS if name in svgs),
        "</div>",
        "<h2>Results</h2>",
        *_table(rows),
        *drops.as_html({(case.combination.name, 0): case.drops for case in cases if case.drops}),
        *link_use.as_html(
            {(case.combination.name, 0): case.uses for case in cases},
            [case.combination.name for case in cases],
            "case",
        ),
        *(line for case in cases for line in held.as_html(case.combination.name, case.rows[0])),
        *_timelines(cases, timelines),
        "<h2>Run it again</h2>",
        "<p>make exp SPEC=spec.yaml, with</p>",
        f"<pre>{escape(spec)}</pre>",
    )
    return document(title, parts)


def _facts(rows: Sequence[JobRow]) -> Iterator[str]:
    wrong = sum(row.wrong for row in rows)
    kind = "bad" if wrong else "good"
    reason = next((row.reason for row in rows if row.reason), "each sum that was checked")
    yield '<ul class="facts">'
    yield f'<li class="{kind}"><b>{wrong:,} wrong</b><span>{escape(reason)}</span></li>'
    most = max(row.jobs for row in rows)
    crowded = [row for row in rows if row.jobs == most]
    best = min(crowded, key=lambda row: _mean_jct(crowded, row))
    name = f"{best.algo}, {best.order}"
    jct_ms = _mean_jct(crowded, best) / PS_PER_MS
    yield f"<li><b>{escape(name)}</b><span>fastest of {most} jobs: {jct_ms:,.3f} ms</span></li>"
    yield "</ul>"


def _mean_jct(rows: Sequence[JobRow], of: JobRow) -> float:
    """Return the mean completion time of all jobs in the case of a given one."""
    case = (of.algo, of.order, of.entries)
    times = [row.jct_ps for row in rows if (row.algo, row.order, row.entries) == case]
    return sum(times) / len(times)


def _table(rows: Sequence[JobRow]) -> Iterator[str]:
    yield '<div class="scroll"><table><thead><tr>'
    yield from (f"<th>{escape(name)}</th>" for name in _COLUMNS)
    yield "</tr></thead><tbody>"
    for row in rows:
        times = (row.iteration_ps, row.compute_ps, row.wait_ps, row.front_wait_ps)
        cells = (
            str(row.jobs), row.algo, row.order,
            "all" if row.entries is None else str(row.entries),
            str(row.job), row.model, f"{row.jct_ps / PS_PER_MS:,.3f}",
            str(row.wrong), f"{row.retransmissions:,}", f"{row.drops:,}",
            *(f"{time_ps / PS_PER_MS:,.3f}" for time_ps in times),
            f"{row.fairness:.3f}", f"{row.busiest_percent:.1f}",
            "-" if row.peak_queue_bytes is None else format_size(row.peak_queue_bytes),
            "-" if row.memory_peak is None else str(row.memory_peak), str(row.ranks),
        )  # fmt: skip
        kind = ' class="wrong"' if row.wrong else ""
        yield f"<tr{kind}>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"
    yield "</tbody></table></div>"


def _timelines(cases: Sequence[JobsCase], svgs: Mapping[str, str]) -> Iterator[str]:
    named = {f"{TIMELINE}{case.combination.name}": case for case in cases if case.spans}
    if not named:
        return
    yield "<h2>Layers over time</h2>"
    yield f'<p class="soft">{escape(_TIMELINE)}</p>'
    for number, (name, svg) in enumerate(svgs.items()):
        combination = named[name].combination
        title = f"{combination.count} jobs, {combination.algo}, {combination.order}"
        yield f"<details{'' if number else ' open'}><summary>{escape(title)}</summary>"
        yield figure(svg, title, "")
        yield "</details>"
    files = ", ".join(escape(str(timeline_file(case.combination))) for case in named.values())
    yield (
        f'<p class="soft">All iterations, with queues and switch memory, are in {files}: '
        "ui.perfetto.dev and chrome://tracing open them.</p>"
    )
