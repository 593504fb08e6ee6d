"""`report.html` of a sweep: the joint results of its runs, and links to each run's own files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from ringleaf.core.units import format_count
from ringleaf.experiments.pages.document import document
from ringleaf.experiments.pages.parts import facts_as_html, figures_as_html, table_as_html
from ringleaf.experiments.records.columns import Column
from ringleaf.experiments.records.facts import RunFact
from ringleaf.experiments.runs.kind import WorkloadKind

Line = Mapping[str, object]


def render(
    kind: WorkloadKind[Any],
    name: str,
    places: Sequence[str],
    lines: Sequence[Line],
    names: Sequence[str],
    svgs: Mapping[str, str],
    captions: Mapping[str, tuple[str, str]],
) -> str:
    """Return the page.

    Args:
        kind: The kind of workload of the runs.
        name: Name of the sweep.
        places: The runs' folders, beside the page.
        lines: The rows of all runs, each with the options by which runs differ.
        names: The names of these options.
        svgs: The figures of the sweep, by name.
        captions: Their titles and captions.
    """
    swept = [kind.column_of(name) for name in names]
    options = [Column(each, each) for each in kind.told_apart(lines, swept)]
    columns = [*options, *kind.swept_columns(lines)]
    differ = "differs" if len(places) == 1 else "differ"
    runs = f"{format_count(len(places), 'run')} that {differ}"
    parts = (
        f'<p class="soft">{runs} in {escape(", ".join(names))}</p>',
        *facts_as_html([_verdict(lines)]),
        *figures_as_html(svgs, captions),
        "<h2>Results</h2>",
        *table_as_html(lines, columns, lambda line: "wrong" if line["wrong"] else ""),
        "<h2>Runs</h2>",
        '<p class="soft">Each folder has the run\'s own results; <code>ringleaf plot FOLDER</code> '
        "draws its figures.</p>",
        "<ul>",
        *(f"<li>{escape(place)}</li>" for place in places),
        "</ul>",
    )
    return document(name if name.lower().startswith("sweep") else f"Sweep {name}", parts)


def _verdict(lines: Sequence[Line]) -> RunFact:
    known = [int(str(line["wrong"])) for line in lines if line["wrong"] is not None]
    if not known:
        return RunFact("Not checked", "messages had sizes only")
    wrong = sum(known)
    checked = "values of all runs" if len(known) == len(lines) else "values of the runs with data"
    return RunFact(f"{wrong:,} wrong", checked, "bad" if wrong else "good")
