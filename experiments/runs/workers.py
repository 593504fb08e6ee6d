"""The processes of a sweep: this one, several of this machine, or a scheduler's workers.

A run is done in a folder of its own, and its files come back as bytes (`isolated_run.py`). If a
worker dies, nothing is lost: another one does its run, and files are written here, once, when a run
is complete.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ringleaf.errors import ConfigError
from ringleaf.experiments.runs.isolated_run import Leavings
from ringleaf.experiments.runs.machines import DaskScheduler, check_dask, run_there
from ringleaf.experiments.runs.pool import run_here


@dataclass(frozen=True, slots=True)
class RunProcesses:
    """The processes that do the runs.

    Args:
        processes: Number of processes on this machine, if no scheduler is named; 1: this one; 0:
            one for each core.
        scheduler: A Dask scheduler, whose workers do the runs.

    Raises:
        ConfigError: If the number is none, the scheduler is not encrypted and need be, or Dask is
            not installed.
    """

    processes: int = 1
    scheduler: DaskScheduler | None = None

    def __post_init__(self) -> None:
        try:
            is_number = operator.index(self.processes) >= 0  # NumPy's are numbers, too
        except TypeError:
            is_number = False
        if not is_number:
            raise ConfigError(
                f"parallel: must be a whole number of processes, got {self.processes!r}; 0 is one "
                "for each core"
            )
        if self.scheduler is not None:
            self.scheduler.check()
            check_dask()

    @property
    def is_alone(self) -> bool:
        """Whether this process does all runs itself, one after the other."""
        return self.count == 1 and self.scheduler is None

    @property
    def count(self) -> int:
        """The number of processes on this machine."""
        return self.processes or os.cpu_count() or 1


ALONE = RunProcesses()


def run_all(
    cases: Mapping[str, Mapping[str, Any]], crew: RunProcesses
) -> Iterator[tuple[str, Leavings]]:
    """Perform runs on a crew, and yield each one's name and output as it ends.

    Raises:
        ConfigError: If no scheduler answers.
        BackendError: If one run has killed several workers.
        RingleafError: The error that a run raised.
    """
    if crew.scheduler is not None:
        return run_there(cases, crew.scheduler)
    return run_here(cases, crew.count)
