"""`report.html` of a run of any kind: one page that opens from disk and asks for nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from ringleaf.experiments.pages.document import document
from ringleaf.experiments.pages.parts import (
    facts_as_html,
    figures_as_html,
    table_as_html,
    with_micro,
)
from ringleaf.experiments.records import drops, link_use, pauses
from ringleaf.experiments.records.facts import RunFact
from ringleaf.experiments.records.results import Results

_NOT_OPTIONS = (
    "schema_version",
    "kind",
    "started",
    "git_commit",
    "machine",
    "given",
    "files",
    "versions",
    "sources",
)


def render(
    results: Results, svgs: Mapping[str, str], *, command: str, spec: str, config: Mapping[str, Any]
) -> str:
    """Return the page.

    Args:
        results: The results.
        svgs: Figure name -> SVG.
        command: The command that gives the same results again.
        spec: The file that the command reads.
        config: The options as resolved, and the versions of packages.
    """
    parts = (
        *(f'<p class="soft">{escape(with_micro(line))}</p>' for line in results.about),
        *facts_as_html((*_verdict(results, config), *results.facts())),
        *_figures(svgs, results.captions),
        "<h2>Results</h2>",
        *table_as_html(results.rows, results.columns, results.mark),
        *(f'<p class="soft">{escape(line)}</p>' for line in results.notes),
        *drops.as_html(results.drops),
        *_links(results),
        *(
            line
            for key, row in results.counts().items()
            for line in pauses.as_html(results.name_of(key), row)
        ),
        *results.sections(svgs),
        "<h2>Run it again</h2>",
        f"<pre>{escape(command)}</pre>",
        *([f"<p>spec.yaml:</p><pre>{escape(spec)}</pre>"] if "spec.yaml" in command else ()),
        *_details(config),
    )
    return document(results.title, parts)


def _figures(svgs: Mapping[str, str], captions: Mapping[str, tuple[str, str]]) -> Iterator[str]:
    if any(name in svgs for name in captions):
        yield '<h2>Figures</h2>\n<div class="figures">'
        yield from figures_as_html(svgs, captions)
        yield "</div>"


def _verdict(results: Results, config: Mapping[str, Any]) -> Iterator[RunFact]:
    """Yield what is known of the end, and of wrong values."""
    if not results.complete:
        yield RunFact("incomplete", "the run did not come to its end", "bad")
    wrong = results.wrong
    if wrong is None:
        yield RunFact("not checked", "there was no data")
    elif wrong:
        reason = next(results.reasons(), "of the values that were checked")
        yield RunFact(f"{wrong:,} wrong", reason, "bad")
    else:
        is_sample = not config.get("check", True)  # jobs check the first of each size then
        which = "of the values that were checked" if is_sample else "of all values, each checked"
        yield RunFact("0 wrong", which, "good")


def _links(results: Results) -> Iterator[str]:
    named = results.places()
    uses = {key: results.uses[key] for key in named if key in results.uses}
    yield from link_use.as_html(uses, [named[key] for key in uses], "row")


def _details(config: Mapping[str, Any]) -> Iterator[str]:
    options = {name: value for name, value in config.items() if name not in _NOT_OPTIONS}
    options |= options.pop("options", {})
    options |= {f"{name} version": text for name, text in config.get("versions", {}).items()}
    yield "<details><summary>All options and versions</summary><dl>"
    for name, value in options.items():
        text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        yield f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>"
    yield "</dl></details>"
