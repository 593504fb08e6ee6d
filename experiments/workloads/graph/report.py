"""`report.html` of a replay: a page that opens from disk and asks the network for nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape

from ringleaf.experiments.records import drops, link_use
from ringleaf.experiments.records import pauses as held
from ringleaf.experiments.records.page.document import document, figure
from ringleaf.experiments.workloads.graph.accounts import WorkRow
from ringleaf.experiments.workloads.graph.messages import PERCENTILES
from ringleaf.experiments.workloads.graph.results import KIND, WorkResults
from ringleaf.experiments.workloads.graph.slowdown import Bin
from ringleaf.experiments.workloads.graph.timeline import FILE
from ringleaf.units import PS_PER_MS, PS_PER_US, format_size, format_time

_CAPTIONS = {
    "ranks": (
        "Ranks over time",
        "Each rank's computations, and below them its messages and collectives on the wire.",
    ),
    "spending": (
        "Where ranks' time went",
        "Exposed communication: the rank took part in something on the wire, and computed nothing. "
        "Idle: neither.",
    ),
    "messages": (
        "Times of messages",
        "The share of messages between two ranks that take longer than a time, by size.",
    ),
    "slowdown": (
        "Slowdown of flows",
        "The time of a flow over that of the same flow alone in the network, by size.",
    ),
    "link": ("The busiest link", "Load over time, by kind of traffic."),
}
_COLUMNS = (
    "traffic", "call", "algorithm", "ranks", "size", "count", "time (us)", "longest (us)",
    "wait (us)", "exposed (ms)",
)  # fmt: skip


def render(found: WorkResults, svgs: Mapping[str, str], *, about: Iterable[str], spec: str) -> str:
    """Return the page.

    Args:
        found: The results.
        svgs: Figure name -> SVG.
        about: Sentences on the workload and the network.
        spec: Text of the YAML file, to run it again.
    """
    title, *others = about
    counts = {(KIND, 0): found.drop_counts} if found.drop_counts else {}
    parts = (
        *(f'<p class="soft">{escape(line)}</p>' for line in (title, *others)),
        *_facts(found),
        '<div class="figures">',
        *(figure(svgs[name], *_CAPTIONS[name]) for name in _CAPTIONS if name in svgs),
        "</div>",
        "<h2>Traffic</h2>",
        *_messages(found),
        *_slowdown(found.slowdown),
        *_table(found.rows),
        *drops.as_html(counts),
        *link_use.as_html({(KIND, 0): found.uses}, ["all traffic"], "of"),
        *held.as_html("replay", found),
        f'<p class="soft">{_shown(found)} {escape(FILE)} opens at ui.perfetto.dev and in '
        "chrome://tracing.</p>",
        "<h2>Run it again</h2>",
        "<p>make exp SPEC=spec.yaml, with</p>",
        f"<pre>{escape(spec)}</pre>",
    )
    return document(f"Workload {title.partition(',')[0]}", parts)


def _shown(found: WorkResults) -> str:
    line = found.timeline
    if len(line.ranks) == line.of:
        return "All ranks' timelines:"
    return f"Timelines of {len(line.ranks)} of {line.of} ranks:"


def _facts(found: WorkResults) -> Iterator[str]:
    yield '<ul class="facts">'
    if found.wrong is not None:
        kind = "bad" if found.wrong else "good"
        reason = found.reason or "each result that was checked"
        yield f'<li class="{kind}"><b>{found.wrong:,} wrong</b><span>{escape(reason)}</span></li>'
    yield f"<li><b>{format_time(found.iteration_ps)}</b><span>iteration, {found.clock}</span></li>"
    for name, what in (
        ("compute_ps", "of ranks' time: computing"),
        ("exposed_ps", "exposed communication"),
        ("idle_ps", "idle"),
    ):
        yield f"<li><b>{100 * found.share(name):.1f} %</b><span>{what}</span></li>"
    kind = ' class="bad"' if found.drops else ""
    yield f"<li{kind}><b>{found.drops:,}</b><span>packets dropped by full queues</span></li>"
    yield f"<li><b>{found.retransmissions:,}</b><span>packets sent again</span></li>"
    yield f"<li><b>{format_size(found.peak_queue_bytes)}</b><span>the fullest queue</span></li>"
    yield "</ul>"


def _messages(found: WorkResults) -> Iterator[str]:
    times = found.messages.percentiles_ps()
    if times:
        told = ", ".join(
            f"p{percent:g} {time_ps / PS_PER_US:,.2f} us"
            for percent, time_ps in zip(PERCENTILES, times, strict=True)
        )
        yield (
            f"<p>{len(found.messages.table):,} messages: {told}. Jain's index of the throughputs "
            f"of the largest: {found.messages.fairness():.3f}.</p>"
        )


def _slowdown(bins: Sequence[Bin]) -> Iterator[str]:
    if not bins:
        return
    yield "<p>Slowdown: the time of a flow over that of the same flow alone in the network.</p>"
    heads = ("size up to", "flows", "median", "95 %", "99 %")
    rows = [
        (
            *(format_size(each.most_bytes), f"{each.count:,}"),
            *(f"{value:,.2f}" for value in (each.p50, each.p95, each.p99)),
        )
        for each in bins
    ]
    yield from _as_table(heads, rows)


def _as_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield '<div class="scroll"><table><thead><tr>'
    yield from (f"<th>{escape(name)}</th>" for name in heads)
    yield "</tr></thead><tbody>"
    for cells in rows:
        yield "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"
    yield "</tbody></table></div>"


def _table(rows: Sequence[WorkRow]) -> Iterator[str]:
    cells = [
        (
            row.label, row.call, row.algo, str(row.ranks), format_size(row.size_bytes),
            f"{row.count:,}",
            *(f"{each / PS_PER_US:,.2f}" for each in (row.time_ps, row.longest_ps, row.wait_ps)),
            f"{row.exposed_ps / PS_PER_MS:,.3f}",
        )
        for row in rows
    ]  # fmt: skip
    yield from _as_table(_COLUMNS, cells)
