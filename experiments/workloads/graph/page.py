"""Parts of a page that only replays have: messages' times, and flows' slowdowns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING

from ringleaf.core.units import PS_PER_US, format_count, format_size
from ringleaf.experiments.pages.parts import table_as_html
from ringleaf.experiments.records.columns import Column, fixed
from ringleaf.experiments.workloads.graph.messages import PERCENTILES
from ringleaf.experiments.workloads.graph.slowdown import Bin
from ringleaf.experiments.workloads.graph.timeline import FILE

if TYPE_CHECKING:
    from ringleaf.experiments.workloads.graph.results import WorkResults

_SLOWDOWNS = (
    Column("most_bytes", "size up to", on_page=format_size),
    Column("count", "flows"),
    Column("p50", "median", show=fixed(2)),
    Column("p95", "95 %", show=fixed(2)),
    Column("p99", "99 %", show=fixed(2)),
)


def sections(done: WorkResults) -> Iterator[str]:
    """Yield them, as HTML."""
    yield from _messages(done)
    yield from _slowdown(done.slowdown)
    yield (
        f'<p class="soft">{_shown(done)} {escape(FILE)} opens at ui.perfetto.dev and in '
        "chrome://tracing.</p>"
    )


def _shown(done: WorkResults) -> str:
    line = done.timeline
    if len(line.ranks) == line.of:
        return "All ranks' timelines:"
    return f"Timelines of {len(line.ranks)} of {format_count(line.of, 'rank')}:"


def _messages(done: WorkResults) -> Iterator[str]:
    times = done.messages.percentiles_ps()
    if times:
        text = ", ".join(
            f"p{percent:g} {time_ps / PS_PER_US:,.2f} us"
            for percent, time_ps in zip(PERCENTILES, times, strict=True)
        )
        index = done.messages.fairness()
        fairness = ""
        if index is not None:
            fairness = f" Jain's index of the throughputs of the largest: {index:.3f}."
        count = format_count(len(done.messages.table), "message", ",")
        yield f"<p>{count}: {text}.{fairness}</p>"


def _slowdown(bins: Sequence[Bin]) -> Iterator[str]:
    if bins:
        yield "<p>Slowdown: the time of a flow over that of the same flow alone in the network.</p>"
        yield from table_as_html(bins, _SLOWDOWNS)
