"""Parts of a page that only collectives have: bounds, links' loads, and words that it uses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import TYPE_CHECKING

from ringleaf.core.shipped import PAGE
from ringleaf.core.units import format_size
from ringleaf.experiments.pages.document import figure
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


def sections(results: CollectiveResults, svgs: Mapping[str, str]) -> Iterator[str]:
    """Yield them, as HTML."""
    yield from _lost(results)
    yield from explained.as_html(results, svgs)
    yield from _inside(results, svgs)
    yield "<h2>How to read this</h2>"
    yield (PAGE / "glossary.html").read_text(encoding="utf-8")


def _lost(results: CollectiveResults) -> Iterator[str]:
    """Yield the section on ranks that have begun again without hosts they had lost."""
    lines = [f'<p class="soft">{escape(line)}.</p>' for line in table.lost(results.rows)]
    if lines:
        yield "<h2>Hosts that were lost</h2>"
        yield from lines


def _inside(results: CollectiveResults, svgs: Mapping[str, str]) -> Iterator[str]:
    """Yield the section on how busy links were, over time and on the topology."""
    if "links" not in svgs:
        return
    yield f"<h2>Inside the network, at {format_size(largest_bytes(results))}</h2>"
    yield from (figure(svgs[name], *texts) for name, texts in _CAPTIONS.items() if name in svgs)
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
