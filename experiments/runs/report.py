"""`report.html`: one page that opens from disk and asks the network for nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from html import escape
from itertools import groupby
from typing import Any

from ringleaf.experiments.records import drops
from ringleaf.experiments.records import pauses as held
from ringleaf.experiments.records import link_use
from ringleaf.experiments.explain import section as why
from ringleaf.experiments.records.page.document import document, figure
from ringleaf.experiments.runs.results import CollectiveRow, Run, is_one_size
from ringleaf.experiments.runs.table import bandwidth, reasons
from ringleaf.shipped import PAGE
from ringleaf.topologies.kinds import describe
from ringleaf.units import PS_PER_US, format_size, format_time

_CAPTIONS = {
    "time": (
        "Time against size",
        "Lower is better. Dashed: the least time each algorithm could take here; thin: that any "
        "could take in which the same add.",
    ),
    "busbw": (
        "Bus bandwidth against size",
        "Higher is better. Aggregation in switches may exceed the link rate: see busbw below.",
    ),
    "links": (
        "Link utilisation over time",
        "At the largest size. One row per direction of each link, from hosts up, then down; "
        "the dotted line is the end.",
    ),
    "utilisation": (
        "Utilisation of links",
        "At the largest size, by kind of link: this topology has too many to draw each.",
    ),
}

_ONE_SIZE = {
    "time": ("Time", "Lower is better. The line across a bar: the least time it could take here."),
    "busbw": (
        "Bus bandwidth",
        "Higher is better. Aggregation in switches may exceed the link rate: see busbw below.",
    ),
}

_COLUMNS = (
    "algorithm", "size", "time (µs)", "algbw (GB/s)", "busbw (GB/s)", "#wrong", "retx",
    "wire B/rank", "bound (µs)", "% bound", "floor (µs)", "% floor",
)  # fmt: skip


def render(
    run: Run,
    *,
    command: str,
    svgs: Mapping[str, str],
    topologies: Mapping[str, str],
) -> str:
    """Return the page.

    Args:
        run: The results.
        command: The command that gives the same results again.
        svgs: Figure name -> SVG.
        topologies: Algorithm -> SVG of each link's utilisation.
    """
    title = f"{run.collective.capitalize()} of {run.ranks} ranks on {run.topology}"
    parts = (
        f'<p class="soft">{escape(_subtitle(run))}</p>',
        *_facts(run),
        '<h2>Speed</h2>\n<div class="figures">',
        *_figures(svgs, ("time", "busbw"), _CAPTIONS | (_ONE_SIZE if is_one_size(run) else {})),
        "</div>",
        "<h2>Results</h2>",
        *_table(run.rows),
        *drops.as_html(run.drops),
        *_links(run),
        *(line for row in run.rows for line in held.as_html(_place(row), row)),
        *why.as_html(run, svgs),
        *_inside(run, svgs, topologies),
        "<h2>How to read this</h2>",
        (PAGE / "glossary.html").read_text(encoding="utf-8"),
        "<h2>Run it again</h2>",
        f"<pre>{escape(command)}</pre>",
        *_details(run),
    )
    return document(title, parts)


def _links(run: Run) -> Iterator[str]:
    """Yield the table of links, at the largest size of each algorithm."""
    size = max((row.size_bytes for row in run.rows), default=0)
    found = {key: uses for key, uses in run.uses.items() if key[1] == size}
    yield from link_use.as_html(found, [algo for algo, _ in found], "algorithm")


def _place(row: CollectiveRow) -> str:
    return f"{row.algo} at {format_size(row.size_bytes)}"


def _subtitle(run: Run) -> str:
    options = run.options
    text = (
        f"{describe(run.links).replace(' us ', ' µs ')}, "
        f"{run.switches} P4 switches, in {run.conduct}"
    )
    for name in ("loss", "duplicate", "reorder"):
        if options[name]:
            text += f", {name} {100 * options[name]:g} %"
    nodes = run.inside_nodes.replace(" us", " µs")
    return text + (
        f". {nodes[0].upper()}{nodes[1:]}; {run.injection}, all ports together. "
        f"Seed {options['seed']}."
    )


def _time(time_ps: int) -> str:
    return format_time(time_ps).replace("us", "µs")


def _facts(run: Run) -> Iterator[str]:
    wrong = run.wrong
    values = sum(row.count for row in run.rows) * run.ranks
    yield '<ul class="facts">'
    if not run.complete:
        yield '<li class="bad"><b>incomplete</b><span>the run was interrupted</span></li>'
    if wrong:
        said = next(reasons(run), "")
        yield (
            f'<li class="bad"><b>{wrong:,} wrong</b><span>of {values:,} values. '
            f"{escape(said)}</span></li>"
        )
    elif wrong is None:
        yield "<li><b>not checked</b><span>there was no data: data=none</span></li>"
    else:
        yield f'<li class="good"><b>0 wrong</b><span>of {values:,} values, each checked</span></li>'
    if run.cpu_bound:
        yield f'<li class="bad"><b>CPU-bound</b><span>{escape(run.cpu_bound)}</span></li>'
    if run.rows:
        fastest, others = _fastest(run.rows)
        size = format_size(fastest.size_bytes)
        yield (
            f"<li><b>{escape(fastest.algo)}</b><span>fastest at {size}, "
            f"{_time(fastest.time_ps)}</span></li>"
        )
        for other in others[:1]:
            yield (
                f"<li><b>{other.time_ps / fastest.time_ps:.2f} &times;</b>"
                f"<span>as fast as {escape(other.algo)}, the next</span></li>"
            )
        yield (
            f"<li><b>{sum(row.packet_hops for row in run.rows):,}</b>"
            "<span>packets carried over links, one by one</span></li>"
        )
    yield "</ul>"


def _fastest(rows: Iterable[CollectiveRow]) -> tuple[CollectiveRow, list[CollectiveRow]]:
    """Return the fastest row at the largest size, and the others, fastest first."""
    rows = list(rows)
    largest = max(row.size_bytes for row in rows)
    first, *others = sorted(
        (row for row in rows if row.size_bytes == largest), key=lambda row: row.time_ps
    )
    return first, others


def _figures(
    svgs: Mapping[str, str], names: Iterable[str], captions: Mapping[str, tuple[str, str]]
) -> Iterator[str]:
    for name in names:
        if name in svgs:
            yield figure(svgs[name], *captions[name])


def _inside(run: Run, svgs: Mapping[str, str], topologies: Mapping[str, str]) -> Iterator[str]:
    """Yield the section on how busy links were, over time and on the topology."""
    if "links" not in svgs:
        return
    size = format_size(max(row.size_bytes for row in run.rows))
    yield f"<h2>Inside the network, at {size}</h2>"
    yield from _figures(svgs, ("links", "utilisation"), _CAPTIONS)
    if not topologies:
        return
    yield (
        '<p class="soft">How busy each direction of each link was, until the end: a picture grows '
        "when you click it.</p>"
    )
    yield '<div class="figures">'
    for algo, svg in topologies.items():
        alt = f"{run.topology}, each link coloured by its utilisation by {algo}"
        svg = svg.replace("<svg", f'<svg role="img" aria-label="{escape(alt)}"', 1)
        yield (
            '<figure class="map" onclick="this.classList.toggle(\'wide\')">'
            f"{svg}<figcaption>{escape(algo)}</figcaption></figure>"
        )
    yield "</div>"


def _table(rows: list[CollectiveRow]) -> Iterator[str]:
    yield '<div class="scroll"><table><thead><tr>'
    yield from (f"<th>{escape(name)}</th>" for name in _COLUMNS)
    yield "</tr></thead>"
    for _, same_size in groupby(rows, key=lambda row: row.size_bytes):
        group = list(same_size)
        best = min(row.time_ps for row in group) if len(group) > 1 else -1
        yield "<tbody>"
        yield from (_table_row(row, best=row.time_ps == best) for row in group)
        yield "</tbody>"
    yield "</table></div>"
    yield '<p class="soft">Shaded: the fastest at each size.</p>'


def _table_row(row: CollectiveRow, *, best: bool) -> str:
    kind = ' class="wrong"' if row.wrong else ' class="best"' if best else ""
    cells = (
        escape(row.algo), format_size(row.size_bytes), f"{row.time_ps / PS_PER_US:,.2f}",
        bandwidth(row.algbw_gb_s), bandwidth(row.busbw_gb_s),
        "-" if row.wrong is None else f"{row.wrong}", f"{row.retransmissions:,}",
        f"{row.wire_bytes:,}", f"{row.bound_ps / PS_PER_US:,.2f}",
    )  # fmt: skip
    floor = (f"{row.floor_ps / PS_PER_US:,.2f}",)
    shares = _share(row.bound_percent) + _cells(floor) + _share(row.floor_percent)
    return f"<tr{kind}>{_cells(cells)}{shares}</tr>"


def _share(percent: float) -> str:
    return f'<td class="share" style="--share:{percent:.1f}%">{percent:.1f}</td>'


def _cells(texts: Iterable[str]) -> str:
    return "".join(f"<td>{text}</td>" for text in texts)


def _details(run: Run) -> Iterator[str]:
    yield "<details><summary>All options and versions</summary><dl>"
    pairs: dict[str, Any] = {**run.options, **{f"{k} version": v for k, v in run.versions.items()}}
    for key, value in pairs.items():
        text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        yield f"<dt>{escape(key)}</dt><dd>{escape(text)}</dd>"
    yield "</dl></details>"
