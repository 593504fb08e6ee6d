"""Compare live networks with the predictions of virtual time, and find their limits.

Both have the same links, at the scaled rate, and the same data; all results are checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from ringleaf.core.units import PS_PER_MS, format_rate, format_size
from ringleaf.experiments.setup.network import connecting
from ringleaf.experiments.spec.choices import VIRTUAL
from ringleaf.experiments.workloads.collective.experiment import CollectiveExperiment
from ringleaf.experiments.workloads.collective.kind import resolve
from ringleaf.experiments.workloads.collective.measuring import Measurement
from ringleaf.experiments.workloads.collective.spec import CollectiveSpec

_COLUMNS = (
    # name, unit, width
    ("algo", "", 15),
    ("live", "(MB/s)", 8),
    ("virtual", "(MB/s)", 8),
    ("ratio", "", 6),
    ("time", "(ms)", 8),
    ("retx", "", 6),
    ("rnr", "", 5),
    ("full", "(ring)", 6),
    ("drops", "", 6),
    ("#wrong", "", 6),
    ("CPU", "(%)", 4),
    ("hosts", "(%)", 5),
    ("switch", "(%)", 6),
    ("sirq", "(%)", 4),
    ("others", "(%)", 6),
)

NOTES = (
    "# live: measured algbw; virtual: as predicted; ratio of the two; medians, #wrong in all",
    "# rnr: packets refused for want of a receive; full: frames that found a packet socket's ring",
    "# full; CPU: of all processors' time, whatever used it; hosts, switch: by their processes;",
    "# sirq: by the kernel for packets, which may also be in hosts and switch; others: the rest",
)


@dataclass(frozen=True, slots=True)
class Fidelity:
    """One algorithm at one size, live and in virtual time; live figures are medians."""

    algo: str
    size_bytes: int
    live_ps: float
    virtual_ps: int
    retransmissions: float
    refusals: float
    overflows: float
    drops: float
    wrong: int  # in all repetitions
    cpu_share: float  # each of all processors
    hosts_share: float
    switches_share: float
    softirq_share: float
    others_share: float
    limits: tuple[str, ...]  # per repetition: the part without time left, if any

    @property
    def ratio(self) -> float:
        """The measured algbw divided by the predicted one."""
        return self.virtual_ps / self.live_ps

    @property
    def limit(self) -> str:
        """The most frequent limit, if more than half of the repetitions had one; else ""."""
        bound = [limit for limit in self.limits if limit]
        return max(bound, key=bound.count) if 2 * len(bound) > len(self.limits) else ""

    def __str__(self) -> str:
        """Return a row of the table."""
        shares = (
            *(self.cpu_share, self.hosts_share, self.switches_share, self.softirq_share),
            self.others_share,
        )
        cells = (
            self.algo,
            f"{1e6 * self.size_bytes / self.live_ps:.2f}",
            f"{1e6 * self.size_bytes / self.virtual_ps:.2f}",
            f"{self.ratio:.2f}",
            f"{self.live_ps / PS_PER_MS:.1f}",
            *(f"{n:g}" for n in (self.retransmissions, self.refusals, self.overflows, self.drops)),
            str(self.wrong),
            *(f"{100 * share:.0f}" for share in shares),
        )
        return _line(cells) + (f"  CPU-bound: {self.limit}" if self.limit else "")


def compare(
    given: Mapping[str, str], *, repeats: int, emit: Callable[[str], None]
) -> list[Fidelity]:
    """Measure the options of a live experiment both ways, and print a table.

    Raises:
        ConfigError: If an option is not understood, or a live network needs something missing.
        BackendError: If the network can't be brought up, or stops.
    """
    spec = resolve(given)
    predicted = resolve(
        {
            **{k: v for k, v in given.items() if k != "switch"},
            "net": VIRTUAL,
            "scale": str(spec.scale),
        }
    )
    experiment = CollectiveExperiment(spec)
    for line in _head(experiment, spec, repeats):
        emit(line)
    virtual = {_key(each): each.row.time_ps for each in CollectiveExperiment(predicted).run()}
    found = []
    with connecting(spec, experiment.graph) as connect:
        runs = [list(experiment.run(connect)) for _ in range(repeats)]
    for measurements in zip(*runs, strict=True):
        found.append(summarise(measurements, virtual[_key(measurements[0])]))
        emit(str(found[-1]))
    return found


def summarise(measurements: Sequence[Measurement], virtual_ps: int) -> Fidelity:
    """Return the repetitions of one measurement as a row."""
    first = measurements[0].row
    usages = [each.outcome.usage for each in measurements]
    used = [usage for usage in usages if usage is not None]

    def middle(name: str) -> float:
        return float(median(getattr(each.outcome, name) for each in measurements))

    def share(name: str) -> float:
        return median(usage.share(getattr(usage, name)) for usage in used)

    return Fidelity(
        algo=first.algo,
        size_bytes=first.size_bytes,
        live_ps=middle("time_ps"),
        virtual_ps=virtual_ps,
        retransmissions=middle("retransmissions"),
        refusals=middle("refusals"),
        overflows=middle("overflows"),
        drops=middle("drops"),
        wrong=sum(each.row.wrong or 0 for each in measurements),
        cpu_share=share("busy_s"),
        hosts_share=share("hosts_s"),
        switches_share=share("switches_s"),
        softirq_share=share("softirq_s"),
        others_share=share("others_s"),
        limits=tuple(usage.limit for usage in used),
    )


def as_plain(row: Fidelity) -> dict[str, Any]:
    """Return a row as a dictionary for JSON."""
    return {**asdict(row), "ratio": row.ratio, "limit": row.limit}


def _key(measurement: Measurement) -> tuple[str, int]:
    return measurement.row.algo, measurement.row.size_bytes


def _head(experiment: CollectiveExperiment, spec: CollectiveSpec, repeats: int) -> Iterator[str]:
    sizes = ", ".join(format_size(size) for size in spec.sizes_bytes)
    rate = format_rate(spec.rate_bps // spec.scale)
    yield (
        f"#\n# {spec.topo}: {experiment.ranks} hosts, {spec.switch} switches, {rate} per link "
        f"(divided by {spec.scale}), {sizes}; wall clock, {repeats} times"
    )
    yield "#" + _line(name for name, _, _ in _COLUMNS)[1:]
    yield "#" + _line(unit for _, unit, _ in _COLUMNS)[1:]


def _line(cells: Iterator[str] | Sequence[str]) -> str:
    return " ".join(f"{cell:>{width}}" for cell, (_, _, width) in zip(cells, _COLUMNS, strict=True))
