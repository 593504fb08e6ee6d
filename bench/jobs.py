"""Measure the time and memory that training jobs in full size take, packet by packet.

`python -m bench.jobs SPEC CASE` runs one case of a spec with jobs and prints
its measurements as JSON; `run` does all of `experiments/specs/full_size.yaml`, with a process for
each, because peak memory can't be measured twice in one.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.environment import environment
from ringleaf.core.shipped import SPECS
from ringleaf.core.units import PS_PER_MS, format_size
from ringleaf.errors import BackendError
from ringleaf.experiments.workloads.jobs.kind import read_jobs
from ringleaf.experiments.workloads.jobs.spec import JobsSpec

Emit = Callable[[str], None]

SPEC = SPECS / "full_size.yaml"


@dataclass(frozen=True, slots=True)
class JobsTiming:
    """The measurements of a case; simulated times in ps, wall clock in seconds."""

    name: str
    ranks: int  # of all jobs
    gradient_bytes: int  # of a rank, for the largest model
    iterations: int  # of all jobs
    jct_ps: int  # of the slowest job
    start_s: float  # from the start of Python to the start of the jobs
    wall_s: float  # of the run, with making gradients and checking sums
    packet_hops: int
    wrong: int
    retransmissions: int
    drops: int
    peak_bytes: int  # of memory


def measure(path: Path, index: int, began_s: float) -> JobsTiming:
    """Run one of a spec's cases, given by its index."""
    from ringleaf.experiments.runs.progress import progress
    from ringleaf.experiments.workloads.jobs.experiment import JobsExperiment

    experiment = JobsExperiment(read_jobs(path))
    combination = experiment.combinations[index]
    with progress(0) as shown:
        shown.begin(f"case {index + 1} of {experiment.count}, {combination.name}")
        case = experiment.case(combination, shown=shown)
    took_s = time.time() - began_s
    return JobsTiming(
        name=combination.name,
        ranks=sum(row.ranks for row in case.rows),
        gradient_bytes=max(row.size_bytes for row in case.rows),
        iterations=sum(row.iterations for row in case.rows),
        jct_ps=max(row.jct_ps for row in case.rows),
        start_s=took_s - case.wall_s,
        wall_s=case.wall_s,
        packet_hops=case.rows[0].packet_hops,
        wrong=sum(row.wrong or 0 for row in case.rows),
        retransmissions=case.rows[0].retransmissions,
        drops=case.rows[0].drops,
        peak_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    )


def run(emit: Emit, path: Path = SPEC) -> dict[str, Any]:
    """Measure each case of a spec, and print a row for it.

    Raises:
        BackendError: If a case fails.
    """
    spec = read_jobs(path)
    emit(f"#\n# training jobs, every packet of them, on {spec.topo}: {path.name}")
    emit(
        f"{'case':>20} {'ranks':>5} {'gradient':>8} {'iterations':>10} {'JCT (ms)':>9} "
        f"{'wall (s)':>9} {'hops':>10} {'hops/s':>9} {'memory':>9} {'#wrong':>6}"
    )
    figures: dict[str, Any] = {}
    for index in range(_cases(spec)):
        timing = _measure_apart(path, index)
        emit(
            f"{timing.name:>20} {timing.ranks:>5} {_size(timing.gradient_bytes):>8} "
            f"{timing.iterations:>10} {timing.jct_ps / PS_PER_MS:>9.1f} {timing.wall_s:>9.1f} "
            f"{timing.packet_hops:>10} {timing.packet_hops / timing.wall_s:>9.0f} "
            f"{_size(timing.peak_bytes):>9} {timing.wrong:>6}"
        )
        figures[timing.name] = asdict(timing)
    return figures


def _cases(spec: JobsSpec) -> int:
    return len(spec.counts) * len(spec.algos) * len(spec.schedulers) * max(len(spec.entries), 1)


def _measure_apart(path: Path, index: int) -> JobsTiming:
    """Measure a case in a process of its own, whose progress shows on our terminal."""
    command = [sys.executable, "-P", "-m", "bench.jobs"]
    command += [str(path), str(index)]
    done = subprocess.run(
        command, env=environment(), stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode:
        raise BackendError(f"bench: case {index} of {path} failed, got code {done.returncode}")
    return JobsTiming(**json.loads(done.stdout))


def _size(size_bytes: int) -> str:
    return format_size(size_bytes).replace(" ", "")  # one word for awk


def main() -> None:
    began_s = time.time()
    path, index = sys.argv[1:]
    sys.stdout.write(json.dumps(asdict(measure(Path(path), int(index), began_s))) + "\n")


if __name__ == "__main__":
    main()
