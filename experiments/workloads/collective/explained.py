"""The report's section on why rows took longer than their bounds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

from ringleaf.core.units import PS_PER_US, format_size
from ringleaf.experiments.explain.findings import (
    ANSWERS,
    HOSTS,
    LINE,
    LINKS,
    OTHER,
    PARTS,
    PROCESSORS,
    RATE,
    RESENDS,
    SLOW,
    SWITCHES,
    TITLES,
    Explained,
)
from ringleaf.experiments.pages.document import figure

if TYPE_CHECKING:
    from ringleaf.experiments.workloads.collective.results import CollectiveResults

_SPENT = {
    "data on lines": LINE,
    "slower links": SLOW,
    "links' delays": LINKS,
    "switches": SWITCHES,
    "hosts": HOSTS,
    "processors": PROCESSORS,
    "acknowledgements": ANSWERS,
    "resends": RESENDS,
    "rate control": RATE,
    "other": OTHER,
}
_MEANING = """<p class="soft">Both tables are of the path of causes: from the last result back to
the start, each packet is followed to the packet before it on its line, or to the one whose arrival
let it go, so all of the time is on it. The first one has its time beyond the bound, and adds up to
time minus bound; the second one all of its time, of which headers, and data of other messages that
it waited behind, are parts.</p>"""


def as_html(run: CollectiveResults, svgs: Mapping[str, str]) -> Iterator[str]:
    """Yield the section; nothing, if no row was explained."""
    if not run.explained:
        return
    rows = list(run.explained.values())
    yield "<h2>Why not the bound</h2>"
    if "waterfall" in svgs:
        yield '<div class="figures">'
        yield figure(
            svgs["waterfall"],
            "From the bound to the measured time",
            "At the largest size. Each step is time that the run took beyond the bound.",
        )
        yield "</div>"
    names = [name for name in PARTS if any(row.lost_ps[name] for row in rows)]
    yield from _table(
        ("algorithm", "size", "bound (µs)", *(f"+ {TITLES[name]}" for name in names), "= time"),
        [[row.bound.time_ps, *(row.lost_ps[name] for name in names), row.time_ps] for row in rows],
        rows,
    )
    spent = {title: kind for title, kind in _SPENT.items() if any(r.spent_ps[kind] for r in rows)}
    yield from _table(
        ("algorithm", "size", "time (µs)", *spent, "of it headers", "of it behind others"),
        [
            [
                row.time_ps,
                *(row.spent_ps[kind] for kind in spent.values()),
                row.headers_ps,
                row.behind_ps,
            ]
            for row in rows
        ],
        rows,
    )
    yield _MEANING
    yield '<div class="figures">'
    for name, svg in svgs.items():
        if name.startswith("timespace-"):
            yield figure(
                svg,
                f"Messages over time, {name.removeprefix('timespace-')}",
                "A lane per rank; each line begins when a message is put on the line, and ends "
                "when all of it is there. Dashed: the path of causes.",
            )
    yield "</div>"


def _table(
    head: Iterable[str], cells: Sequence[Sequence[int]], rows: Sequence[Explained]
) -> Iterator[str]:
    yield '<div class="scroll"><table><thead><tr>'
    yield from (f"<th>{escape(name)}</th>" for name in head)
    yield "</tr></thead><tbody>"
    for row, values in zip(rows, cells, strict=True):
        times = "".join(f"<td>{value / PS_PER_US:,.2f}</td>" for value in values)
        yield f"<tr><td>{escape(row.algo)}</td><td>{format_size(row.size_bytes)}</td>{times}</tr>"
    yield "</tbody></table></div>"
