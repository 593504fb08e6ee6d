"""Figures and `report.html` of a run on NICs, from the files of its directory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from html import escape
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ringleaf.experiments.figures.sheet import given_to, in_column_of
from ringleaf.experiments.figures.style import SUFFIXES, matplotlib_style, save
from ringleaf.experiments.figures.tasks import Perform, in_turn
from ringleaf.experiments.records.folder import REPORT, write_text
from ringleaf.experiments.records.page.document import document, figure
from ringleaf.experiments.workloads.nic import results
from ringleaf.experiments.workloads.nic.results import NicResults
from ringleaf.experiments.workloads.nic.workload import Workload
from ringleaf.hosts.nic.registry import OFFLOADS

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def workload_of(name: str) -> Workload[Any]:
    """Return the workload of an offload.

    Raises:
        ConfigError: If there is none of that name.
    """
    found: Workload[Any] = import_module(OFFLOADS.find(name).workload).WORKLOAD
    return found


def redraw(folder: Path, perform: Perform = in_turn, *, with_figures: bool = True) -> list[Path]:
    """Draw figures, if wanted, and the report of a run from its directory; return the files.

    Raises:
        ConfigError: If it is no such run.
    """
    found = results.read_results(folder)
    workload = workload_of(found.offload)
    place = folder / "figures"
    place.mkdir(parents=True, exist_ok=True)
    drawn = workload.draw(found.rows, found.clock) if with_figures else {}
    with matplotlib_style(), in_column_of(given_to(folder)):
        svgs = perform({name: partial(_save, draw, place / name) for name, draw in drawn.items()})
    spec = (folder / "spec.yaml").read_text(encoding="utf-8")
    write_text(folder / REPORT, render(workload, found, svgs, spec))
    return [folder / REPORT, *(place / f"{name}{suffix}" for name in svgs for suffix in SUFFIXES)]


def _save(draw: Callable[[], Figure], stem: Path) -> str:
    return save(draw(), stem)


def render(workload: Workload[Any], found: NicResults, svgs: Mapping[str, str], spec: str) -> str:
    """Return the page: a file that opens from disk and asks the network for nothing.

    Args:
        workload: The workload.
        found: Its results.
        svgs: Figure name -> SVG.
        spec: Text of the YAML file, to run it again.
    """
    kind = "bad" if found.wrong else "good"
    parts = (
        *(f'<p class="soft">{escape(line)}</p>' for line in found.about),
        f'<ul class="facts"><li class="{kind}"><b>{found.wrong:,} wrong</b>'
        "<span>each result that was checked</span></li></ul>",
        '<div class="figures">',
        *(figure(svgs[name], *workload.captions[name]) for name in svgs),
        "</div>",
        f"<h2>Results, {escape(found.clock)} time</h2>",
        *_table(workload, found),
        *(f'<p class="soft">{escape(line)}</p>' for line in workload.notes),
        "<h2>Run it again</h2>",
        f"<p>ringleaf nic {escape(found.offload)} --spec spec.yaml, with</p>",
        f"<pre>{escape(spec)}</pre>",
    )
    return document(f"NICs: {OFFLOADS[found.offload].title}", parts)


def _table(workload: Workload[Any], found: NicResults) -> Iterator[str]:
    yield '<div class="scroll"><table><thead><tr>'
    for each in workload.columns:
        yield f"<th>{escape(f'{each.title} {each.unit}'.strip())}</th>"
    yield "</tr></thead><tbody>"
    for row in found.rows:
        cells = (each.show(row[each.name]) for each in workload.columns)
        yield "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"
    yield "</tbody></table></div>"
