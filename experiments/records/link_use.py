"""The use of links: for the table, the report and `links.csv`.

Each direction of a link has its rate, the bytes that it sent, the share of the time in which it was
busy, the deepest that its queue was, and the packets that found that queue full.
"""

from __future__ import annotations

import csv
import io
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import networkx as nx
import numpy as np

from ringleaf.core.shipped import PAGE
from ringleaf.core.units import PS_PER_S, format_rate
from ringleaf.experiments.records.slow_links import busy_ps, is_slow
from ringleaf.topologies.graph import directions, link, natural

if TYPE_CHECKING:
    from ringleaf.networks.outcome import RunResult

FILE = "links.csv"
MOST = 1000
"""The most directions of a row in the file; those left out are the least busy."""
SHOWN = 200  # of a row in the report

Key = tuple[str, int]
"""The key of a row: its algorithm, and the bytes of each rank's tensor."""

_NAMES = (
    *("algo", "of_bytes", "from", "to", "rate_bps", "sent_bytes", "utilisation_percent"),
    *("peak_queue_bytes", "drops"),
)


class LinkUse(NamedTuple):
    """The use of one direction of a link."""

    source: str
    target: str
    rate_bps: int
    sent_bytes: int  # line time: frame, preamble, FCS and gap
    percent: float  # of the time until the last rank was done in which it was busy
    peak_queue_bytes: int | None  # None: a host's, or not known
    drops: int  # packets that found its queue full

    @property
    def name(self) -> str:
        """Its ends, as the topology's drawing names them."""
        return f"{self.source} to {self.target}"


def uses_of(graph: nx.Graph[str], outcome: RunResult) -> list[LinkUse]:
    """Return the use of all directions of links, the busiest first."""
    drops: Counter[tuple[str, str]] = Counter()
    for drop in outcome.drop_counts:
        drops[drop.switch, drop.peer] += drop.packets
    rates_bps = {(a, b): each.rate_bps for a, b, each in directions(graph)}
    time_ps = max(outcome.time_ps, 1)
    uses = []
    for ends, sent_bytes in outcome.link_bytes.items():
        percent = min(100 * time_busy_ps(graph, outcome, ends) / time_ps, 100.0)
        peak = outcome.queue_peaks.get(ends)
        uses.append(LinkUse(*ends, rates_bps[ends], int(sent_bytes), percent, peak, drops[ends]))
    return sorted(uses, key=lambda use: (-use.percent, natural(use.source), natural(use.target)))


def time_busy_ps(graph: nx.Graph[str], outcome: RunResult, ends: tuple[str, str]) -> float:
    """Return for how long a direction was busy, acknowledgements after the end included."""
    sent_bytes = int(outcome.link_bytes[ends])
    if not is_slow(graph, ends):
        return sent_bytes * 8 * PS_PER_S / link(graph, *ends).rate_bps
    if ends in outcome.link_series:
        return float(busy_ps(graph, ends, outcome.link_series[ends], outcome.bin_ps).sum())
    whole = np.array([sent_bytes])  # live: not known over time
    return float(busy_ps(graph, ends, whole, max(outcome.time_ps, 1)).sum())


def tell(uses: Sequence[LinkUse]) -> str:
    """Return the bottleneck as a phrase: `busiest link: s2 to s0, 100 % of the time`."""
    if not uses or not uses[0].sent_bytes:
        return ""
    percent = _percent(uses[0])
    others = sum(_percent(use) == percent for use in uses) - 1
    least = "at least " if others == MOST - 1 == len(uses) - 1 else ""  # a file has no more
    more = f"; {least}{others} more as busy" if others else ""
    return f"busiest link: {uses[0].name}, {percent} % of the time{more}"


def _percent(use: LinkUse) -> str:
    return f"{use.percent:.1f}".removesuffix(".0")


def as_csv(uses: Mapping[Key, Sequence[LinkUse]]) -> str:
    """Return the text of `links.csv`."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_NAMES)
    for key, run_uses in uses.items():
        for use in run_uses[:MOST]:
            peak = "" if use.peak_queue_bytes is None else use.peak_queue_bytes
            row = (*key, use.source, use.target, use.rate_bps, use.sent_bytes)
            writer.writerow((*row, f"{use.percent:.4f}", peak, use.drops))
    return text.getvalue()


def from_csv(text: str) -> dict[Key, list[LinkUse]]:
    """Return the uses from the text of `links.csv`."""
    by_run: dict[Key, list[LinkUse]] = defaultdict(list)
    for row in csv.DictReader(io.StringIO(text)):
        algo, of_bytes, source, target, rate, sent, percent, peak, drops = map(row.get, _NAMES)
        use = LinkUse(
            *(str(source), str(target), int(str(rate)), int(str(sent)), float(str(percent))),
            *(int(peak) if peak else None, int(str(drops))),
        )
        by_run[str(algo), int(str(of_bytes))].append(use)
    return dict(by_run)


def read(folder: Path) -> dict[Key, list[LinkUse]]:
    """Return the uses that a run has left in its directory; an older one has none."""
    path = folder / FILE
    return from_csv(path.read_text(encoding="utf-8")) if path.exists() else {}


def as_html(
    uses: Mapping[Key, Sequence[LinkUse]], titles: Iterable[str], what: str
) -> Iterator[str]:
    """Yield the report's table of links, which a click on a column's name sorts.

    Args:
        uses: The uses of some rows.
        titles: What each row is called; all "": there is only one, without a name.
        what: The name of the column of titles.
    """
    if not any(uses.values()):
        return
    rows = list(zip(titles, uses.values(), strict=True))
    yield "<h2>Links</h2>"
    for title, run_uses in rows:
        if phrase := tell(run_uses):
            sentence = f"{title}: {phrase}" if title else phrase[0].upper() + phrase[1:]
            yield f"<p>{escape(sentence)}.</p>"
    yield '<div class="scroll tall"><table class="sortable"><thead><tr>'
    columns = ["from", "to", "rate", "bytes sent", "utilisation (%)", "queue (B)", "drops"]
    if any(title for title, _ in rows):
        columns.insert(0, what)
    yield "".join(f'<th><button type="button">{name}</button></th>' for name in columns)
    yield "</tr></thead><tbody>"
    for title, run_uses in rows:
        for use in run_uses[:SHOWN]:
            yield _as_row(title, use)
    yield "</tbody></table></div>"
    yield (
        '<p class="soft">Both directions of each link, busiest first: a click on a column sorts by '
        "it. Bytes are line time: with headers, preambles and gaps. Queue: the most in it. "
        f"{_where([len(run_uses) for _, run_uses in rows])} in {FILE}.</p>"
    )
    script = (PAGE / "sort.js").read_text(encoding="utf-8")
    yield f"<script>{script}</script>"


def _where(counts: Sequence[int]) -> str:
    """Return what the file has of rows of so many directions, as a sentence's beginning."""
    if max(counts) >= MOST:
        return f"The {MOST:,} busiest are"
    return "The rest is" if max(counts) > SHOWN else "They are"


def _as_row(title: str, use: LinkUse) -> str:
    peak = use.peak_queue_bytes
    cells = (
        *(((title, title),) if title else ()),
        (use.source, use.source), (use.target, use.target),
        (use.rate_bps, format_rate(use.rate_bps)), (use.sent_bytes, f"{use.sent_bytes:,}"),
    )  # fmt: skip
    head = "".join(f'<td data-of="{escape(str(of))}">{escape(text)}</td>' for of, text in cells)
    share = f'<td class="share" style="--share:{use.percent:.1f}%" data-of="{use.percent:.4f}">'
    tail = "".join(
        f'<td data-of="{-1 if of is None else of}">{"" if of is None else f"{of:,}"}</td>'
        for of in (peak, use.drops)
    )
    return f"<tr>{head}{share}{use.percent:.1f}</td>{tail}</tr>"
