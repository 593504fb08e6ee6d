"""Parts of a page that only collectives have: bounds, links' loads, and words that it uses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from html import escape
from typing import TYPE_CHECKING

from ringleaf.core.shipped import PAGE
from ringleaf.core.units import format_size
from ringleaf.experiments.pages.document import figure
from ringleaf.experiments.spec.choices import FLOW, MININET, VIRTUAL
from ringleaf.experiments.workloads.collective import explained, table
from ringleaf.experiments.workloads.collective.link_figures import MAP
from ringleaf.experiments.workloads.collective.rows import (
    largest_bytes,
)

if TYPE_CHECKING:
    from ringleaf.experiments.workloads.collective.results import (
        CollectiveResults,
    )

_CAPTIONS = {
    "links": (
        "Link utilisation over time",
        "At the largest size. One row per direction of each link, from hosts up, then down; "
        "the dotted line is the end.",
    ),
    "circuits": (
        "Circuits over time",
        "At the largest size. A bar is a circuit that is up; while circuits change, packets leave "
        "those that go, and then these and those that come are dark.",
    ),
    "utilisation": (
        "Utilisation of links",
        "At the largest size, by kind of link: this topology has too many to draw each.",
    ),
}

_MEANS = (
    "Link utilisation",
    "At the largest size. One row per direction of each link, from hosts up, then down: the mean "
    "until the end, which is the dotted line. On a live network it is not known over time.",
)
_TIMES = {
    VIRTUAL: (
        "Simulated time",
        "Every packet was sent, queued and put through its P4 program, but on a clock that only "
        "the simulation moves. So times do not depend on the machine: the same options and seed "
        "give the same times, to the picosecond.",
    ),
    FLOW: (
        "Simulated time",
        "Messages were flows that share links' rates, and there were no packets, queues and P4 "
        "programs. Times do not depend on the machine: the same options and seed give the same "
        "times. Packets would take other times, by as much as the column of errors says of like "
        "runs.",
    ),
    MININET: (
        "Wall-clock time",
        "Packets went over virtual Ethernet, and through P4 programs in processes of this machine. "
        "So times depend on the machine and on what else it did, and differ from run to run.",
    ),
}
"""What a time is, by network."""


def sections(results: CollectiveResults, svgs: Mapping[str, str]) -> Iterator[str]:
    """Yield them, as HTML."""
    yield from _lines("Remarks on results", table.remarks(results.rows))
    yield from _lines("Hosts that were lost", table.lost(results.rows))
    yield from explained.as_html(results, svgs)
    yield from _inside(results, svgs)
    yield "<h2>How to read this</h2>"
    term, text = _TIMES[_net(results)]
    words = (PAGE / "glossary.html").read_text(encoding="utf-8")
    yield words.replace("<dl>", f"<dl>\n<dt>{term}</dt>\n<dd>{escape(text)}</dd>", 1)


def _net(results: CollectiveResults) -> str:
    return str(results.options.get("net", VIRTUAL))


def _lines(title: str, lines: Iterable[str]) -> Iterator[str]:
    """Yield a section of lines; none, if there are no lines."""
    listed = [f'<p class="soft">{escape(line)}.</p>' for line in lines]
    if listed:
        yield f"<h2>{title}</h2>"
        yield from listed


def _inside(results: CollectiveResults, svgs: Mapping[str, str]) -> Iterator[str]:
    """Yield the section on how busy links were, over time and on the topology."""
    if "links" not in svgs:
        return
    yield f"<h2>Inside the network, at {format_size(largest_bytes(results))}</h2>"
    captions = _CAPTIONS | ({"links": _MEANS} if _net(results) == MININET else {})
    yield from (figure(svgs[name], *texts) for name, texts in captions.items() if name in svgs)
    maps = {name.removeprefix(MAP): svg for name, svg in svgs.items() if name.startswith(MAP)}
    if not maps:
        return
    yield (
        '<p class="soft">How busy each direction of each link was, until the end: a picture grows '
        "when you click it.</p>"
    )
    yield '<div class="figures">'
    for algo, svg in maps.items():
        alt = f"{results.topology}, each link coloured by its utilisation by {algo}"
        svg = svg.replace("<svg", f'<svg role="img" aria-label="{escape(alt)}"', 1)
        yield (
            '<figure class="map" onclick="this.classList.toggle(\'wide\')">'
            f"{svg}<figcaption>{escape(algo)}</figcaption></figure>"
        )
    yield "</div>"
