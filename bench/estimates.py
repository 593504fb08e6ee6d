"""The memory and time that estimates foretell for runs, beside what a process takes that does them.

`python -m bench.estimates` prints a row for each algorithm, or for those whose names have one of
the words, and for each kind of run. Each is done by a forked process, whose peak is the kernel's
(VmHWM); a script's processes are counted together, each page once (Pss). `within` is the factor
between both figures; the promise is 2. Seconds are those of a processor, as others may be at work.
They are of the run without its start, and foretold by constants alone; PRIOR_S is added to both, as
it is where a machine learns its pace. The promise is 3. The first run after a change compiles, and
takes more of both: run it twice.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

from ringleaf.experiments.commands.cli import alone
from ringleaf.experiments.estimates.estimate import start_s
from ringleaf.experiments.estimates.pace import PRIOR_S
from ringleaf.experiments.runs.console import Debug, say
from ringleaf.experiments.runs.request import kind_of
from ringleaf.experiments.setup.ranks import count_nodes
from ringleaf.experiments.workloads.collective.spec import CollectiveSpec
from ringleaf.experiments.workloads.graph.spec import WorkloadSpec
from ringleaf.experiments.workloads.jobs.spec import JobsSpec
from ringleaf.experiments.workloads.train.need import need_of_script
from ringleaf.experiments.workloads.train.spec import TrainSpec

Spec = CollectiveSpec | JobsSpec | WorkloadSpec

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
    foretold_s: float | None = None
    measured_s: float = 0.0

    @property
    def factor(self) -> float:
        """The larger memory by the smaller one."""
        return _factor(self.foretold_bytes, self.measured_bytes)

    @property
    def time_factor(self) -> float | None:
        """The longer time by the shorter one; None: no time was foretold."""
        if self.foretold_s is None:
            return None
        return _factor(self.foretold_s + PRIOR_S, self.measured_s + PRIOR_S)

    def __str__(self) -> str:
        """Return a line of the table."""
        foretold, measured = (
            f"{each / (1 << 20):10.0f}" for each in (self.foretold_bytes, self.measured_bytes)
        )
        times = 3 * f" {'-':>9}"
        if self.foretold_s is not None:
            seconds = (self.foretold_s, self.measured_s, self.time_factor)
            times = "".join(f" {each:9.2f}" for each in seconds)
        return f"{self.name:>28} {foretold} {measured} {self.factor:9.2f}{times}"


def _factor(one: float, other: float) -> float:
    ratio = one / max(other, 1e-9)
    return max(ratio, 1 / max(ratio, 1e-9))


_TITLES = ("foretold", "measured", "within")
HEAD = (
    f"{'# run':>28} {_TITLES[0]:>10} {_TITLES[1]:>10} {_TITLES[2]:>9}"
    + "".join(f" {title:>9}" for title in _TITLES)
    + f"\n{'#':>28} {'(MiB)':>10} {'(MiB)':>10} {'':>9} {'(s)':>9} {'(s)':>9}"
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

WORKLOADS: dict[str, dict[str, Any]] = {
    "workload: flows": {"workload": "flows", "pattern": "permutation", "flow_sizes": "8M"},
    "workload: drawn flows": {"workload": "flows", "pattern": "websearch", "flows": "100"},
    "workload: many flows": {"workload": "flows", "pattern": "random", "flow_sizes": "1K"},
    "workload: model": {
        **{"workload": "llm", "layers": "4", "hidden": "1024", "heads": "8", "sequence": "512"},
        **{"tp": "2", "pp": "2", "dp": "2", "micro_batches": "4"},
    },
    "workload: model, no data": {
        **{"workload": "llm", "layers": "4", "hidden": "2048", "heads": "8", "sequence": "1024"},
        **{"tp": "2", "pp": "2", "dp": "2", "micro_batches": "4", "data": "none"},
    },
}
"""Workloads of eight ranks, with random data unless they say otherwise."""

SCRIPT = Path("examples/training/ddp.py")
SCRIPTS = {f"train: {ranks} ranks": ranks for ranks in (2, 8)}
LOOK_S = 0.1
"""Seconds between looks at a script's processes."""


def cases() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name and options of a run of each algorithm, and of jobs."""
    from ringleaf.collectives.registry import ALGORITHMS
    from ringleaf.ina.registry import SYSTEMS

    for name in sorted(ALGORITHMS, key=lambda name: (name in SYSTEMS, name)):
        compress = SYSTEMS[name].compress if name in SYSTEMS else ""
        yield name, ON | {"algo": name, "size": SIZE} | ({"compress": compress} if compress else {})
    for name, given in JOBS.items():
        yield name, ON | given
    for name, given in WORKLOADS.items():
        flows = {"ranks": "8"} if given["workload"] == "flows" else {}
        yield name, ON | {"data": "random"} | flows | given


def measure(name: str, given: Mapping[str, Any]) -> Peak:
    """Return what a run is foretold to take, and took in a process of its own."""
    spec = read(given)
    needed = kind_of(given).need(spec, count_nodes(spec))
    taken = peak_of(lambda: carry_out(spec))
    return Peak(
        name,
        needed.memory_bytes,
        taken.memory_bytes,
        needed.known_s - start_s(spec),
        taken.processor_s,
    )


def read(given: Mapping[str, Any]) -> Spec:
    """Return the spec of options."""
    kind = kind_of(given)
    found: Spec = kind.fitted(kind.resolve(given))
    return found


def carry_out(spec: Spec) -> None:
    """Do a run without a folder or figures."""
    from ringleaf.experiments.workloads.collective.experiment import CollectiveExperiment
    from ringleaf.experiments.workloads.graph.experiment import WorkExperiment
    from ringleaf.experiments.workloads.jobs.experiment import JobsExperiment

    if isinstance(spec, WorkloadSpec):
        WorkExperiment(spec).run(lambda *_: None, lambda _: None)
        return
    runs = CollectiveExperiment(spec) if isinstance(spec, CollectiveSpec) else JobsExperiment(spec)
    for found in runs.run():
        del found


def measure_script(name: str, ranks: int) -> Peak:
    """Return what a script is foretold to take, and took with all of its processes.

    Raises:
        RuntimeError: If it fails.
    """
    spec = TrainSpec.read({"topo": ON["topo"], "ranks": str(ranks), "figures": "no"})
    needed = need_of_script(spec, count_nodes(spec))
    options = ["--topo", ON["topo"], "--ranks", str(ranks), "--figures", "no"]
    with TemporaryDirectory() as out:
        words = [*options, "--out", str(Path(out) / "run"), str(SCRIPT)]
        command = [sys.executable, "-m", "ringleaf", "train", *words]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
            most = 0
            while process.poll() is None:
                most = max(most, sum(map(_shared_bytes, _family(process.pid))))
                time.sleep(LOOK_S)
    if process.returncode:
        raise RuntimeError(f"estimates: {shlex.join(command)} has failed")
    return Peak(name, needed.memory_bytes, most)


def _family(process: int) -> Iterator[int]:
    """Yield a process, and all that it has started."""
    yield process
    with suppress(OSError):
        for children in Path(f"/proc/{process}/task").glob("*/children"):
            for child in children.read_text().split():
                yield from _family(int(child))


def _shared_bytes(process: int) -> int:
    """Return the memory of a process, each page divided among those that share it."""
    with suppress(OSError):
        for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return 1024 * int(line.split()[1])
    return 0


@dataclass(frozen=True, slots=True)
class Taken:
    """The resources of a process: its peak of resident memory, and its time of a processor."""

    memory_bytes: int
    processor_s: float


def peak_of(work: Callable[[], None]) -> Taken:
    """Return what a forked process takes that does some work.

    Raises:
        RuntimeError: If the work fails.
    """
    read_end, write_end = os.pipe()
    child = os.fork()
    if not child:
        os.close(read_end)
        try:
            Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
            began_s = time.process_time()
            work()
            spent_s = time.process_time() - began_s
            os.write(write_end, f"{_peak_bytes()} {spent_s}".encode())
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
    memory_bytes, processor_s = told.split()
    return Taken(int(memory_bytes), float(processor_s))


def _peak_bytes() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def estimates_command(
    words: Annotated[
        list[str] | None, typer.Argument(help="Parts of names of runs; default: all runs.")
    ] = None,
    debug: Debug = False,
) -> None:
    """Print the table."""
    carry_out(read(ON | {"algo": "ring", "size": "4K"}))  # loads what most runs load
    say(HEAD)
    for name, given in cases():
        if not words or any(word in name for word in words):
            say(str(measure(name, given)))
    for name, ranks in SCRIPTS.items():
        if not words or any(word in name for word in words):
            say(str(measure_script(name, ranks)))


if __name__ == "__main__":
    alone("python -m bench.estimates", estimates_command)
