"""The memory that estimates foretell for whole runs, beside the peak of a process that does them.

    python -m ringleaf.experiments.bench.estimates [WORDS...]

prints a row for each algorithm, or for those whose names have one of the words, and for each kind
of run. Each is done by a forked process, whose peak is the kernel's (VmHWM). `within` is the factor
between both figures; the promise is 2.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ringleaf.experiments.console import say
from ringleaf.experiments.estimate import need_of
from ringleaf.experiments.spec.options import resolve

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


def cases() -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the name and options of a run of each algorithm."""
    from ringleaf.collectives.registry import ALGORITHMS
    from ringleaf.ina.registry import SYSTEMS

    for name in sorted(ALGORITHMS, key=lambda name: (name in SYSTEMS, name)):
        compress = SYSTEMS[name].compress if name in SYSTEMS else ""
        yield name, ON | {"algo": name, "size": SIZE} | ({"compress": compress} if compress else {})


def measure(name: str, given: Mapping[str, str]) -> Peak:
    """Return what a run is foretold to take, and took in a process of its own."""
    return Peak(name, need_of(resolve(dict(given))).memory_bytes, peak_of(lambda: carry_out(given)))


def carry_out(given: Mapping[str, str]) -> None:
    """Do a run without a folder or figures."""
    from ringleaf.experiments.runner import Experiment
    from ringleaf.experiments.spec.collective import CollectiveSpec

    spec = resolve(dict(given))
    assert isinstance(spec, CollectiveSpec)
    for found in Experiment(spec).run():
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
    carry_out(ON | {"algo": "ring", "size": "4K"})  # loads what most runs load
    say(HEAD)
    for name, given in cases():
        if not words or any(word in name for word in words):
            say(str(measure(name, given)))


if __name__ == "__main__":
    main(sys.argv[1:])
