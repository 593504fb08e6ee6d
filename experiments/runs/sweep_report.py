"""`report.html` of a sweep: the joint results of its runs, and links to each run's own files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape

from ringleaf.experiments.figures.sorting import of_jobs, told_apart
from ringleaf.experiments.records.page.document import document, figure
from ringleaf.experiments.spec.named import are_flows
from ringleaf.units import PS_PER_MS, PS_PER_US, format_size

Line = Mapping[str, object]


def render(
    name: str, places: Sequence[str], lines: Sequence[Line], names: Sequence[str], svg: str
) -> str:
    """Return the page.

    Args:
        name: Name of the sweep.
        places: The runs' folders, beside the page.
        lines: The rows of all runs, each with the options by which runs differ.
        names: The names of these options.
        svg: The figure of the sweep.
    """
    wrong = sum(int(str(line["wrong"] or 0)) for line in lines)
    kind = "bad" if wrong else "good"
    verdict = f'<li class="{kind}"><b>{wrong:,} wrong</b><span>{_checked(lines)}</span></li>'
    if all(line["wrong"] is None for line in lines):
        verdict = "<li><b>Not checked</b><span>messages had sizes only</span></li>"
    parts = (
        f'<p class="soft">{len(places)} runs that differ in {escape(", ".join(names))}</p>',
        '<ul class="facts">',
        verdict,
        "</ul>",
        figure(svg, "Times", _explained(lines)) if svg else "",
        "<h2>Results</h2>",
        *_table(lines, names),
        "<h2>Runs</h2>",
        '<p class="soft">Each folder has the run\'s own results; <code>ringleaf plot FOLDER</code> '
        "draws its figures.</p>",
        "<ul>",
        *(f"<li>{escape(place)}</li>" for place in places),
        "</ul>",
    )
    return document(name if name.lower().startswith("sweep") else f"Sweep {name}", parts)


def _explained(lines: Sequence[Line]) -> str:
    if "bubble" in lines[0]:
        if _is_traffic(lines):
            return "Percentiles of the times of messages, by run."
        return "How ranks spend an iteration, on average, by run."
    return "Of each run, against the option with most values."


def _checked(lines: Sequence[Line]) -> str:
    """Return the runs that were checked, as text."""
    unchecked = any(line["wrong"] is None for line in lines)
    return "values of the runs with data" if unchecked else "values of all runs"


def _table(lines: Sequence[Line], names: Sequence[str]) -> Iterator[str]:
    cells_of, own, swept = _layout(lines, names)
    columns = [*swept, *own]
    yield '<div class="scroll"><table><thead><tr>'
    yield from (f"<th>{escape(column)}</th>" for column in columns)
    yield "</tr></thead><tbody>"
    for line in lines:
        told = {name: str(line[name]) for name in swept} | cells_of(line)
        kind = ' class="wrong"' if line["wrong"] else ""
        cells = "".join(f"<td>{escape(told[column])}</td>" for column in columns)
        yield f"<tr{kind}>{cells}</tr>"
    yield "</tbody></table></div>"


Cells = Callable[[Line], dict[str, str]]


def _layout(
    lines: Sequence[Line], names: Sequence[str]
) -> tuple[Cells, Sequence[str], Sequence[str]]:
    """Return how a row's cells are written, their columns, and the options before them."""
    if "iteration_ps" in lines[0] and "bubble" in lines[0]:
        if _is_traffic(lines):
            return _traffic, _TRAFFIC, names
        return _workload, _WORKLOADS, names
    if of_jobs(lines):
        return _job, _JOBS, told_apart(lines, names)
    return _row, _COLLECTIVES, told_apart(lines, names)


_COLLECTIVES = ("algorithm", "size", "time (us)", "bound (%)", "#wrong", "retx", "drops")
_JOBS = ("algorithm", "order", "job", "model", "JCT (ms)", "wait (ms)", "#wrong", "retx", "drops")
_TRAFFIC = (
    *("p50 (us)", "p99 (us)", "p99.9 (us)", "Jain", "queue (KiB)"),
    *("#wrong", "retx", "drops"),
)
_WORKLOADS = (
    *("iteration (ms)", "computing (%)", "exposed (%)", "idle (%)", "#wrong", "retx", "drops"),
)


def _workload(line: Line) -> dict[str, str]:
    shares = {"computing (%)": "compute", "exposed (%)": "exposed", "idle (%)": "idle"}
    return _counts(line) | {
        "iteration (ms)": f"{int(str(line['iteration_ps'])) / PS_PER_MS:,.3f}",
        **{
            title: f"{100 * float(str(line[f'{name}_share'])):.1f}"
            for title, name in shares.items()
        },
    }


def _is_traffic(lines: Sequence[Line]) -> bool:
    """Return whether all runs are of flows."""
    return all(are_flows(str(line["workload"])) for line in lines)


def _traffic(line: Line) -> dict[str, str]:
    times = {"p50 (us)": "p50_ps", "p99 (us)": "p99_ps", "p99.9 (us)": "p999_ps"}
    return _counts(line) | {
        **{title: f"{int(str(line[name])) / PS_PER_US:,.1f}" for title, name in times.items()},
        "Jain": f"{float(str(line['fairness'])):.3f}",
        "queue (KiB)": f"{int(str(line['peak_queue_bytes'])) / 1024:,.1f}",
    }


def _row(line: Line) -> dict[str, str]:
    return _counts(line) | {
        "algorithm": str(line["algo"]),
        "size": format_size(int(str(line["size_bytes"]))),
        "time (us)": f"{int(str(line['time_ps'])) / PS_PER_US:,.2f}",
        "bound (%)": f"{float(str(line['bound_percent'])):.1f}",
    }


def _job(line: Line) -> dict[str, str]:
    return _counts(line) | {
        "algorithm": str(line["algo"]),
        "order": str(line["order"]),
        "job": str(line["job"]),
        "model": str(line["model"]),
        "JCT (ms)": f"{int(str(line['jct_ps'])) / PS_PER_MS:,.3f}",
        "wait (ms)": f"{int(str(line['wait_ps'])) / PS_PER_MS:,.3f}",
    }


def _counts(line: Line) -> dict[str, str]:
    return {
        "#wrong": "-" if line["wrong"] is None else str(line["wrong"]),
        "retx": f"{int(str(line['retransmissions'])):,}",
        "drops": f"{int(str(line['drops'])):,}",
    }
