"""The memory that estimates foretell for whole runs, beside the peak of a process that does them.

    python -m ringleaf.experiments.bench.estimates [WORDS...]

prints a row for each algorithm, or for those whose names have one of the words, and for each kind
of run. Each is done by a forked process, whose peak is the kernel's (VmHWM). `within` is the factor
between both figures; the promise is 2.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ringleaf.experiments.checks import count_nodes
from ringleaf.experiments.console import say
from ringleaf.experiments.estimate import need_of
from ringleaf.experiments.spec.collective import CollectiveSpec
from ringleaf.experiments.spec.jobs import JobsSpec
from ringleaf.experiments.spec.options import resolve, resolve_jobs

ON = {"topo": "leafspine,leaves=1,spines=1,hosts=8", "threads": "1"}
SIZE = "8M"
"""Of each of eight ranks: tensors take a third of the memory that an idle process has."""


@dataclass(frozen=True, slots=True)
class Peak:
    """The memory of one run in bytes.

    Attributes:
        name: The algorithm, or the kind of run.
        foretold_bytes: The estimate.
        measured_bytes: The peak of the process that has done it.
    """

    name: str
    foretold_bytes: int
    measured_bytes: int

    @property
    def factor(self) -> float:
        """The larger figure by the smaller one."""
        ratio = self.foretold_bytes / max(self.measured_bytes, 1)
        return max(ratio, 1 / max(ratio, 1e-9))

    def __str__(self) -> str:
        """Return a line of the table."""
        foretold, measured = (
            f"{each / (1 << 20):10.0f}" for each in (self.foretold_bytes, self.measured_bytes)
        )
        return f"{self.name:>28} {foretold} {measured} {self.factor:7.2f}"


HEAD = f"{'# run':>28} {'foretold':>10} {'measured':>10} {'within':>7}\n{'#':>28}" + 2 * (
    f" {'(MiB)':>10}"
)


JOBS: dict[str, dict[str, Any]] = {
    "jobs: resnet50": {"jobs": [{"model": "resnet50", "iterations": 1, "size": 0.3}]},
    "jobs: vgg16": {"jobs": [{"model": "vgg16", "iterations": 1, "size": 0.1}]},
    "jobs: two of vgg16": {
        "jobs": 2 * [{"model": "vgg16", "ranks": 3, "iterations": 1, "size": 0.1}]
    },
    "jobs: halvingdoubling": {
        "algo": "halvingdoubling",
        "jobs": [{"model": "vgg16", "iterations": 1, "size": 0.1}],
    },
}
"""Jobs of four ranks, or three; each has a server besides."""


def cases() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name and options of a run of each algorithm, and of jobs."""
    from ringleaf.collectives.registry import ALGORITHMS
    from ringleaf.ina.registry import SYSTEMS

    for name in sorted(ALGORITHMS, key=lambda name: (name in SYSTEMS, name)):
        compress = SYSTEMS[name].compress if name in SYSTEMS else ""
        yield name, ON | {"algo": name, "size": SIZE} | ({"compress": compress} if compress else {})
    for name, given in JOBS.items():
        yield name, ON | given


def measure(name: str, given: Mapping[str, Any]) -> Peak:
    """Return what a run is foretold to take, and took in a process of its own."""
    spec = resolve_jobs(given) if "jobs" in given else resolve(dict(given))
    needed = need_of(spec, count_nodes(spec))
    return Peak(name, needed.memory_bytes, peak_of(lambda: carry_out(spec)))


def carry_out(spec: CollectiveSpec | JobsSpec) -> None:
    """Do a run without a folder or figures."""
    from ringleaf.experiments.jobs.runner import JobsExperiment
    from ringleaf.experiments.runner import Experiment

    runs = Experiment(spec) if isinstance(spec, CollectiveSpec) else JobsExperiment(spec)
    for found in runs.run():
        del found


def peak_of(work: Callable[[], None]) -> int:
    """Return the peak of the resident memory of a forked process that does some work, in bytes.

    Raises:
        RuntimeError: If the work fails.
    """
    read_end, write_end = os.pipe()
    child = os.fork()
    if not child:
        os.close(read_end)
        try:
            Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
            work()
            os.write(write_end, str(_peak_bytes()).encode())
        except BaseException:  # noqa: BLE001 -- it is told, and the parent raises
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end) as pipe:
        told = pipe.read()
    os.waitpid(child, 0)
    if not told:
        raise RuntimeError("estimates: the run has failed")
    return int(told)


def _peak_bytes() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def main(words: list[str]) -> None:
    """Print the table."""
    carry_out(resolve(ON | {"algo": "ring", "size": "4K"}))  # loads what most runs load
    say(HEAD)
    for name, given in cases():
        if not words or any(word in name for word in words):
            say(str(measure(name, given)))


if __name__ == "__main__":
    main(sys.argv[1:])
