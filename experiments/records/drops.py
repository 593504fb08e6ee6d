"""Packets that queues dropped, and their senders: for the table, the report and `drops.csv`."""

from __future__ import annotations

import csv
import io
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path

from ringleaf.core.units import format_count, format_size, format_time
from ringleaf.networks.outcome import Drop

FILE = "drops.csv"
SHOWN = 8  # rows of the table whose drops are described in its last lines


@dataclass(frozen=True, slots=True)
class Queue:
    """The drops of one queue, from all sources."""

    place: str  # `s3 port 2 class 0 (to h4)`
    packets: int
    size_bytes: int
    when: str  # `12.3 us to 45.6 us`, "" if it is not known
    sources: tuple[tuple[str, int], ...]  # host and packets, most first


def by_queue(drops: Iterable[Drop]) -> list[Queue]:
    """Return the queues that dropped packets, the worst first."""
    groups: dict[str, list[Drop]] = defaultdict(list)
    for drop in drops:
        groups[_place(drop)].append(drop)
    queues = [_queue(place, group) for place, group in groups.items()]
    return sorted(queues, key=lambda queue: -queue.packets)


def _place(drop: Drop) -> str:
    if not drop.switch:
        return "other queues"
    level = "" if drop.level is None else f" class {drop.level}"
    return f"{drop.switch} port {drop.port}{level} (to {drop.peer})"


def _queue(place: str, drops: Sequence[Drop]) -> Queue:
    sources: Counter[str] = Counter()
    for drop in drops:
        if drop.source:
            sources[drop.source] += drop.packets
    firsts = [drop.first_ps for drop in drops if drop.first_ps is not None]
    lasts = [drop.last_ps for drop in drops if drop.last_ps is not None]
    when = f"{format_time(min(firsts))} to {format_time(max(lasts))}" if firsts and lasts else ""
    return Queue(
        place,
        sum(drop.packets for drop in drops),
        sum(drop.size_bytes or 0 for drop in drops),
        when,
        tuple(sources.most_common()),
    )


def tell(name: str, total: int, drops: Sequence[Drop]) -> str:
    """Return a line about one row's drops: their number, the worst queue, times and senders."""
    text = f"drops: {name}: {total}"
    queues = by_queue(drops)
    if not queues:
        return f"{text}, not in switches' queues"
    worst = queues[0]
    text += (
        f", {worst.packets} of them at {worst.place}" if len(queues) > 1 else f" at {worst.place}"
    )
    text += f", {worst.when}" if worst.when else ""
    if worst.sources:
        named = ", ".join(f"{host} {packets}" for host, packets in worst.sources[:3])
        more = len(worst.sources) - 3
        text += f", from {named}" + (f" and {format_count(more, 'more host')}" if more > 0 else "")
    if len(queues) > 1:
        text += f"; {format_count(len(queues) - 1, 'more queue')} in {FILE}"
    return text


Key = tuple[str, int]
"""The key of a row: its algorithm, and the bytes of each rank's tensor."""


def as_csv(drops: Mapping[Key, Sequence[Drop]]) -> str:
    """Return all drops as the text of `drops.csv`."""
    names = ["algo", "of_bytes", *Drop.__dataclass_fields__]
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    for (algo, size_bytes), run_drops in drops.items():
        for drop in run_drops:
            writer.writerow({"algo": algo, "of_bytes": size_bytes, **asdict(drop)})
    return text.getvalue()


def from_csv(text: str) -> dict[Key, list[Drop]]:
    """Return the drops from the text of `drops.csv`."""
    by_run: dict[Key, list[Drop]] = defaultdict(list)
    for row in csv.DictReader(io.StringIO(text)):
        key = row.pop("algo"), int(row.pop("of_bytes"))
        texts = {name: row.pop(name) for name in ("switch", "peer", "source")}
        numbers = {name: int(value) if value else None for name, value in row.items()}
        by_run[key].append(Drop(**texts, **numbers))  # type: ignore[arg-type]
    return dict(by_run)


def read(folder: Path) -> dict[Key, list[Drop]]:
    """Return the drops that a run has left in its directory: none if nothing was dropped."""
    path = folder / FILE
    return from_csv(path.read_text(encoding="utf-8")) if path.exists() else {}


def as_html(drops: Mapping[Key, Sequence[Drop]], most: int = 20) -> Iterator[str]:
    """Yield the lines of the report's table of the worst queues; nothing if there are none."""
    rows = [(key, queue) for key, run_drops in drops.items() for queue in by_queue(run_drops)]
    if not rows:
        return
    rows.sort(key=lambda row: -row[1].packets)
    yield "<h2>Drops</h2>"
    yield '<div class="scroll"><table><thead><tr>'
    names = ("algorithm", "size", "queue", "packets", "bytes", "from", "when")
    yield "".join(f"<th>{name}</th>" for name in names) + "</tr></thead><tbody>"
    for (algo, size_bytes), queue in rows[:most]:
        sources = ", ".join(f"{host} {packets:,}" for host, packets in queue.sources[:4])
        cells = (
            algo,
            format_size(size_bytes) if size_bytes else "-",  # jobs and workloads have several
            queue.place,
            f"{queue.packets:,}",
            f"{queue.size_bytes:,}" if queue.size_bytes else "",
            sources + (", ..." if len(queue.sources) > 4 else ""),
            queue.when.replace("us", "µs"),
        )
        yield "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"
    yield "</tbody></table></div>"
    more = f", {format_count(len(rows) - most, 'more queue')}" if len(rows) > most else ""
    yield f'<p class="soft">Packets that found a queue full{more}: all are in {FILE}.</p>'
