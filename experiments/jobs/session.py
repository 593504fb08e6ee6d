"""A run of jobs from start to end: table on stdout, progress on stderr, files in its folder."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from experiments.jobs import figures, results, table
from experiments.jobs.results import Case, JobRow
from experiments.jobs.runner import JobsExperiment
from experiments.jobs.spec import read_jobs
from ringleaf.errors import ConfigError
from ringleaf.yaml_file import read_yaml

Emit = Callable[[str], None]


def is_jobs(path: Path) -> bool:
    """Whether a spec is one of jobs."""
    try:
        data = read_yaml(path, "spec")
    except ConfigError:
        return False  # whoever reads it next says what is wrong
    return isinstance(data, dict) and "jobs" in data


def plan(path: Path) -> dict[str, Any]:
    """What a spec asks for, jobs' models by name, and the cases that it makes.

    Raises:
        RingleafError: If the spec or the topology does not allow it.
    """
    experiment = JobsExperiment(read_jobs(path))
    jobs = [asdict(job) | {"model": job.model.name} for job in experiment.spec.jobs]
    return {
        **asdict(experiment.spec),
        "jobs": jobs,
        "cases": [combination.name for combination in experiment.combinations],
    }


def run(path: Path, folder: Path, *, emit: Emit, pcap: bool = False) -> list[JobRow]:
    """Do what a spec says, and leave everything in the run directory; pcaps if asked by either.

    If it is interrupted, what was measured so far is written, and the interruption goes on.

    Raises:
        RingleafError: If the spec, the topology or the network does not allow it.
    """
    torch.set_num_threads(1)  # additions are short: waking a second thread takes longer
    experiment = JobsExperiment(read_jobs(path))
    pcaps = folder / "pcap" if pcap or experiment.spec.pcap else None
    progress = Progress(len(experiment.combinations))
    rows: list[JobRow] = []
    cases: list[Case] = []
    for text in table.head(experiment):
        emit(text)
    try:
        for case in experiment.run(pcaps=pcaps, tell=progress.tell):
            progress.finish_case()
            cases.append(case)
            rows += case.rows
            results.write_rows(folder, rows)
            for row in case.rows:
                emit(table.line(row))
    finally:
        if cases:
            _write(folder, path, cases, rows, emit)
    return rows


class Progress:
    """A line on the terminal's stderr, if it is one, of which percent of which case is done."""

    def __init__(self, cases: int, done: int = 0) -> None:
        self._cases = cases
        self._done = done
        self._shown = sys.stderr.isatty()

    def tell(self, share: float) -> None:
        """So much of the case is done."""
        if self._shown:
            text = f"case {self._done + 1} of {self._cases}: {100 * share:.0f} %"
            sys.stderr.write(f"\r\x1b[K{text}\r")
            sys.stderr.flush()

    def finish_case(self) -> None:
        """The case is done, and the line is free."""
        self._done += 1
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def _write(folder: Path, path: Path, cases: list[Case], rows: list[JobRow], emit: Emit) -> None:
    (folder / "spec.yaml").write_text(path.read_text())
    results.write_summary(folder, rows, {"spec": path.name})
    hops = sum(case.rows[0].packet_hops for case in cases)
    for text in table.foot(rows, hops, sum(case.wall_s for case in cases)):
        emit(text)
    for figure in figures.draw_all(folder / "figures", cases):
        emit(f"# figure: {figure}")
