"""Parts that pages of all runs and sweeps are made of."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Any

from ringleaf.experiments.pages.document import figure
from ringleaf.experiments.records.columns import Column
from ringleaf.experiments.records.facts import RunFact


def with_micro(text: str) -> str:
    """Return a text with `µs` for microseconds, which terminals' text has as `us`."""
    return re.sub(r"(?<=\d )us\b", "µs", text)


def facts_as_html(facts: Iterable[RunFact]) -> Iterator[str]:
    """Yield facts as a list in HTML."""
    yield '<ul class="facts">'
    for each in facts:
        mark = f' class="{each.mark}"' if each.mark else ""
        yield f"<li{mark}><b>{escape(each.value)}</b><span>{escape(each.what)}</span></li>"
    yield "</ul>"


def figures_as_html(
    svgs: Mapping[str, str], captions: Mapping[str, tuple[str, str]]
) -> Iterator[str]:
    """Yield the figures that have captions, in the captions' order."""
    for name, caption in captions.items():
        if name in svgs:
            yield figure(svgs[name], *caption)


def table_as_html(
    rows: Iterable[Any], columns: Sequence[Column], mark: Callable[[Any], str] = lambda row: ""
) -> Iterator[str]:
    """Yield rows as a table; `mark` returns the class of a row in the page's style."""
    yield '<div class="scroll"><table><thead><tr>'
    yield from (f"<th>{escape(each.heading)}</th>" for each in columns)
    yield "</tr></thead><tbody>"
    for row in rows:
        kind = f' class="{mark(row)}"' if mark(row) else ""
        yield f"<tr{kind}>{''.join(_cell(each, row) for each in columns)}</tr>"
    yield "</tbody></table></div>"


def _cell(column: Column, row: Any) -> str:
    text = escape(column.cell(row))
    return (
        f'<td class="share" style="--share:{text}%">{text}</td>'
        if column.is_share
        else (f"<td>{text}</td>")
    )
