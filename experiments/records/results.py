"""The results of a run of any kind, complete or partial, and the files that have them.

`results.csv` has the table's rows; `summary.json` has them, too, with all else that figures and
pages need and that is no long series. The same options and seed give the same bytes.
"""

from __future__ import annotations

import csv
import io
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from ringleaf.core.disk import write_text
from ringleaf.core.units import format_size
from ringleaf.experiments.records import drops, link_use
from ringleaf.experiments.records.columns import Column
from ringleaf.experiments.records.config import SCHEMA_VERSION, write_json
from ringleaf.experiments.records.drops import Key
from ringleaf.experiments.records.facts import RunFact
from ringleaf.experiments.records.folder import ROWS, SUMMARY, RunFolder
from ringleaf.experiments.records.link_use import LinkUse
from ringleaf.experiments.records.pauses import Counted
from ringleaf.experiments.records.tracks import Track, as_chrome, file_of
from ringleaf.networks.outcome import Drop

if TYPE_CHECKING:
    from matplotlib.figure import Figure

VIRTUAL, WALL_CLOCK = "virtual", "wall clock"
"""What `time` is in `summary.json`."""


@dataclass(kw_only=True)
class Results(ABC):
    """What a run has measured so far, and how that looks as table, files and page.

    Attributes:
        kind: The kind of workload, as in `summary.json`.
        row: The class of rows, if it is a dataclass.
        files: The names of its files beside those of all runs.
        about: Lines on the workload and its network.
        notes: Lines that explain the table.
        is_virtual: Whether times are simulated, rather than of the wall clock.
        complete: Whether all has been measured.
        rows: The rows of the table, each a dataclass or a mapping.
        drops: The packets that queues dropped, by what the run calls a row.
        uses: The use of links, likewise; the busiest are first.
    """

    kind: ClassVar[str]
    row: ClassVar[type[Any] | None] = None
    files: ClassVar[Sequence[str]] = ()
    spare: ClassVar[Sequence[str]] = ()
    """Columns that can be left out where lines are short, the least important first."""

    about: Sequence[str] = ()
    notes: Sequence[str] = ()
    is_virtual: bool = True
    complete: bool = False
    rows: list[Any] = field(default_factory=list)
    drops: dict[Key, list[Drop]] = field(default_factory=dict)
    uses: dict[Key, list[LinkUse]] = field(default_factory=dict)

    @property
    def has_any(self) -> bool:
        """Whether anything was measured; work without messages has no rows, but a time."""
        return bool(self.rows) or self.complete

    @property
    def wrong(self) -> int | None:
        """The number of wrong values; None: none was checked."""
        known = [row.wrong for row in self.rows if row.wrong is not None]
        return sum(known) if known or not self.rows else None

    @property
    def clock(self) -> str:
        """The name of the clock that times are of, for axes."""
        return "simulated" if self.is_virtual else "wall-clock"

    @property
    def title(self) -> str:
        """The title of the page."""
        return self.about[0].partition(",")[0]

    @property
    @abstractmethod
    def columns(self) -> Sequence[Column]:
        """The columns of the table."""

    @property
    def captions(self) -> Mapping[str, tuple[str, str]]:
        """Titles and captions of those figures at the page's top, by name, in their order."""
        return {}

    @property
    def shown(self) -> Sequence[Any]:
        """The rows that the table on stdout has."""
        return self.rows

    @abstractmethod
    def foot(self) -> Iterator[str]:
        """Yield the lines below the table."""

    def reasons(self) -> Iterator[str]:
        """Yield why values are wrong."""
        yield from filter(None, (getattr(row, "reason", "") for row in self.rows))

    def facts(self) -> Iterator[RunFact]:
        """Yield the facts at the page's top, after those on what is wrong."""
        yield from ()

    def places(self) -> Mapping[Key, str]:
        """Return what the page calls each of the rows whose use of links it shows."""
        return {key: key[0] for key in self.uses}

    def name_of(self, key: Key) -> str:
        """Return what lines call a row: `ring at 64 KiB`."""
        return f"{key[0]} at {format_size(key[1])}" if key[1] else key[0]

    def mark(self, row: Any) -> str:
        """Return what the page marks a row as: `wrong`, or nothing."""
        return "wrong" if row.wrong else ""

    def sections(self, svgs: Mapping[str, str]) -> Iterator[str]:
        """Yield further parts of the page, as HTML, below the table; `svgs` are all figures."""
        yield from ()

    def figures(self) -> dict[str, Callable[[], Figure]]:
        """Return functions that draw the figures, by name."""
        return {}

    def tasks(self, folder: Path) -> dict[str, Callable[[Path], str]]:
        """Return functions that draw the figures, by name, the longest one first.

        Each is given the files to write, without their suffix, and returns SVG. `folder` is the
        run directory, in which further data may lie.
        """
        del folder
        return {name: partial(_save, draw) for name, draw in self.figures().items()}

    def counts(self) -> Mapping[Key, Counted]:
        """Return the counters of pauses, trims and drops, by what the run calls a row."""
        return {}

    def tracks(self) -> Iterable[Track]:
        """Return the tracks of a timeline; none: there is none, or this kind writes its own."""
        return ()

    def plain(self) -> dict[str, Any]:
        """Return what `summary.json` has besides rows, for a reader of this kind."""
        return {}

    def keep(self, folder: RunFolder) -> None:
        """Write the files of this kind, when all has been measured that will be."""
        del folder


def _save(draw: Callable[[], Figure], stem: Path) -> str:
    from ringleaf.experiments.figures.style import save  # imports matplotlib

    return save(draw(), stem)


def row_as_dict(row: Any) -> dict[str, Any]:
    """Return a row's values by name."""
    return asdict(row) if is_dataclass(row) and not isinstance(row, type) else dict(row)


def as_csv(rows: Iterable[Mapping[str, Any]], names: Sequence[str] = ()) -> str:
    """Return rows as the text of a CSV file; `names` are its columns, by default the first's."""
    each = list(rows)
    text = io.StringIO()
    writer = csv.DictWriter(text, names or list(each[0] if each else ()), lineterminator="\n")
    writer.writeheader()
    writer.writerows(each)
    return text.getvalue()


def names_of(row: type[Any]) -> list[str]:
    """Return the names of a dataclass's fields, for CSV."""
    return [each.name for each in fields(row)]


def write_rows(folder: Path, results: Results) -> None:
    """Write the rows and what belongs to them, so that they survive whatever comes next."""
    rows = [row_as_dict(row) for row in results.rows]
    write_text(folder / ROWS, as_csv(rows, names_of(results.row) if results.row else ()))
    if results.drops:
        write_text(folder / drops.FILE, drops.as_csv(results.drops))
    if link_use.FILE in results.files:
        write_text(folder / link_use.FILE, link_use.as_csv(results.uses))
    summary = {
        "schema_version": SCHEMA_VERSION,
        "kind": results.kind,
        "time": VIRTUAL if results.is_virtual else WALL_CLOCK,
        "complete": results.complete,
        "wrong": results.wrong,
        **results.plain(),
        "about": list(results.about),
        "notes": list(results.notes),
        "rows": rows,
    }
    write_json(folder / SUMMARY, summary)


def common(folder: Path, summary: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the results of all kinds have, read from a run directory, but for the rows."""
    return {
        "about": summary.get("about", ()),
        "notes": summary.get("notes", ()),
        "is_virtual": summary.get("time") == VIRTUAL,
        "complete": bool(summary.get("complete")),
        "drops": drops.read(folder),
        "uses": link_use.read(folder),
    }


def keep_timeline(folder: RunFolder, results: Results) -> None:
    """Write the timeline of results that have tracks."""
    tracks = list(results.tracks())
    if not tracks:
        return
    path = folder.path / file_of(results.kind)

    def write() -> None:
        path.parent.mkdir(exist_ok=True)
        write_text(path, as_chrome(tracks))

    folder.keep(write, path)
