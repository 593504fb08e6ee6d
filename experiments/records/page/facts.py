"""Facts at the top of a page: a few words in large letters, and what they are of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html import escape


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact.

    Attributes:
        value: What is large: `0 wrong`.
        what: What it is of: `of 4,096 values`.
        mark: `good`, `bad` or nothing, by which it is coloured.
    """

    value: str
    what: str
    mark: str = ""


def facts_as_html(facts: Iterable[Fact]) -> Iterator[str]:
    """Yield facts as a list in HTML."""
    yield '<ul class="facts">'
    for each in facts:
        mark = f' class="{each.mark}"' if each.mark else ""
        yield f"<li{mark}><b>{escape(each.value)}</b><span>{escape(each.what)}</span></li>"
    yield "</ul>"
