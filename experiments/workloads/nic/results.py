"""The files of a run on NICs: rows for a table, figures and the report."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ringleaf.errors import ConfigError
from ringleaf.experiments.records.folder import write_text
from ringleaf.experiments.runs.results import SCHEMA_VERSION, read_json
from ringleaf.experiments.workloads.nic.workload import Row

KIND = "nic"
"""The kind of such a run directory, in its `summary.json`."""

FILES = ("config.json", "results.csv", "summary.json", "spec.yaml", "log.txt")


@dataclass(frozen=True, slots=True)
class NicResults:
    """All that figures and reports show; times in picoseconds.

    Attributes:
        offload: The workload's name.
        clock: The clock that times are of: simulated or wall-clock.
        about: Lines on the workload and the network.
        rows: A row for each system.
    """

    offload: str
    clock: str
    about: Sequence[str]
    rows: Sequence[Row]

    @property
    def wrong(self) -> int:
        """The number of elements that differ from the reference."""
        return sum(int(row["wrong"]) for row in self.rows)


def write_all(
    folder: Path, found: NicResults, config: Mapping[str, Any], *, complete: bool
) -> None:
    """Write a run's results."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(found.rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(found.rows)
    write_text(folder / "results.csv", text.getvalue())
    summary = {
        "schema_version": SCHEMA_VERSION,
        "kind": KIND,
        "offload": found.offload,
        "time": "virtual" if found.clock == "simulated" else "wall clock",
        "complete": complete,
        "clock": found.clock,
        "about": list(found.about),
        "config": dict(config),
        "rows": [dict(row) for row in found.rows],
    }
    write_text(folder / "summary.json", json.dumps(summary, indent=2) + "\n")


def read_results(folder: Path) -> NicResults:
    """Load the results of a run from its directory.

    Raises:
        ConfigError: If it is no such run, or was written in another version's format.
    """
    summary = read_json(folder / "summary.json")
    try:
        return NicResults(*(summary[name] for name in ("offload", "clock", "about", "rows")))
    except KeyError as error:
        raise ConfigError(
            f"plot: can't read the run's files, got {str(folder)!r}: no {error}; run it again"
        ) from error
