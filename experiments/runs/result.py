"""The results of runs and sweeps from Python: rows, data frames, figures and the report."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ringleaf.core.tensors import Array
from ringleaf.errors import ConfigError
from ringleaf.experiments.records.config import done_places, read_json, read_summary
from ringleaf.experiments.records.folder import PLAN, REPORT, ROWS, SUMMARY, SWEPT_ROWS
from ringleaf.experiments.runs.drawer import Drawer
from ringleaf.experiments.runs.request import kind_of_run
from ringleaf.experiments.spec.options import file_name

if TYPE_CHECKING:
    import pandas as pd
    import torch


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of a run, which notebooks can show.

    Attributes:
        path: The PNG file; a PDF lies beside it.
    """

    path: Path
    _own: tempfile.TemporaryDirectory[str] | None = field(default=None, repr=False)

    def _repr_png_(self) -> bytes:
        return self.path.read_bytes()


@dataclass(frozen=True)
class Result:
    """The results that a run or a sweep has left in its folder.

    Attributes:
        folder: The run directory; if none was asked for, it is removed with this object and all
            runs and figures of it.
        tensors: For a run with the caller's own tensors: each rank's tensor at the end, by
            algorithm and size in bytes; NumPy arrays where PyTorch is not installed.
    """

    folder: Path
    tensors: dict[tuple[str, int], list[torch.Tensor | Array]] = field(
        default_factory=dict, repr=False
    )
    _own: tempfile.TemporaryDirectory[str] | None = field(default=None, repr=False)
    _written_ns: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Note the time at which the folder's results were written."""
        object.__setattr__(self, "_written_ns", self._last_written_ns())

    @property
    def is_sweep(self) -> bool:
        """Whether these are the results of several runs.

        Raises:
            ConfigError: If the folder has those of a later call by now.
        """
        if self._last_written_ns() not in (self._written_ns, 0):
            raise ConfigError(
                f"result: its folder has later results by now, got {str(self.folder)!r}; give each "
                "call an out= of its own, or ringleaf.load the folder"
            )
        return (self.folder / PLAN).exists()

    def _last_written_ns(self) -> int:
        """Return the time at which the results were written; 0: there are none."""
        paths = (self.folder / PLAN, self.folder / SUMMARY)
        return next((path.stat().st_mtime_ns for path in paths if path.exists()), 0)

    @property
    def rows(self) -> list[Any]:
        """The rows of the table, times in picoseconds; of a sweep, those of all runs.

        They have the columns of `results.csv` as attributes: `algo`, `time_ps`, `wrong`.
        """
        if self.is_sweep:
            return [row for run in self.runs for row in run.rows]
        summary = read_summary(self.folder)
        return kind_of_run(summary).rows(summary)

    @property
    def runs(self) -> list[Result]:
        """The finished runs of a sweep, in its order; for a single run, only itself."""
        if not self.is_sweep:
            return [self]
        places = done_places(read_json(self.folder / PLAN))
        folders = (self.folder / file_name(place) for place in places)
        return [Result(folder, _own=self._own) for folder in folders if (folder / SUMMARY).exists()]

    @property
    def wrong(self) -> int:
        """The number of wrong values; those of runs without data (data="none") don't count."""
        return sum(read_summary(run.folder)["wrong"] or 0 for run in self.runs)

    def _repr_html_(self) -> str:
        """Return the table, or one for each run of a sweep, which notebooks show."""
        from ringleaf.experiments.pages.parts import table_as_html
        from ringleaf.experiments.runs.drawing import read_results

        parts: list[str] = []
        for run in self.runs:
            results = read_results(run.folder)
            parts += [f"<p>{escape(run.folder.name)}</p>"] if self.is_sweep else []
            parts += table_as_html(results.shown, results.columns, results.mark)
        return "".join(parts)

    def fastest(self) -> Any:
        """Return the right row that took the least time at the largest size, as the table says.

        For jobs, it is the row whose job was completed soonest.

        Raises:
            ConfigError: If nothing was measured.
        """
        from ringleaf.experiments.workloads.collective.rows import compared_bytes, right_rows

        rows = right_rows(self.rows)
        if not rows:
            raise ConfigError(
                f"fastest: nothing was measured, got {str(self.folder)!r}; run it again"
            )
        size = compared_bytes(map(_size_bytes, rows))[-1]
        return min((row for row in rows if _size_bytes(row) == size), key=_took_ps)

    def frame(self) -> pd.DataFrame:
        """Return the rows as a data frame; in a sweep, each row starts with its run's options.

        Raises:
            ConfigError: If pandas is not installed, or the rows can't be read.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise ConfigError(
                "frame: needs pandas, got none installed; pip install 'ringleaf[notebooks]'"
            ) from error
        path = self.folder / (SWEPT_ROWS if self.is_sweep else ROWS)
        try:
            return pd.read_csv(path)
        except (OSError, ValueError) as error:
            raise ConfigError(
                f"frame: can't read, got {str(path)!r}: {error}; run it again"
            ) from error

    @property
    def figures(self) -> list[str]:
        """The names of all figures, which are drawn first if they do not exist yet."""
        self.report()
        return sorted(self._drawings())

    def figure(self, name: str = "") -> Figure:
        """Return a figure by name; if no name is given, the figure of times.

        Raises:
            ConfigError: If there is no such figure; the message lists the valid names.
        """
        self.report()
        drawings = self._drawings()
        default = next((n for n in ("sweep", "time", "jct") if n in drawings), "")
        if (name or default) not in drawings:
            valid = ", ".join(sorted(drawings))
            raise ConfigError(f"figure: unknown name, got {name!r}; valid: {valid}")
        return Figure(drawings[name or default], self._own)

    def _drawings(self) -> dict[str, Path]:
        paths = (*self.folder.glob("*.png"), *self.folder.glob("figures/*.png"))
        return {path.stem: path for path in paths}

    def report(self) -> Path:
        """Return the report, a page that needs no network; it is drawn if it does not exist."""
        page = self.folder / REPORT
        if page.exists():
            return page
        with Drawer() as beside:  # so this process keeps the backend that it has for its figures
            if beside.draw(self.folder) is None:
                from ringleaf.experiments.runs.drawing import redraw  # imports matplotlib

                redraw(self.folder)
        return page


def _size_bytes(row: Any) -> int:
    size_bytes: int = getattr(row, "size_bytes", 0)  # those of jobs have none
    return size_bytes


def _took_ps(row: Any) -> int:
    took_ps: int = row.jct_ps if hasattr(row, "jct_ps") else row.time_ps
    return took_ps
