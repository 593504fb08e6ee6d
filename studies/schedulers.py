"""A study of flow schedulers: iteration times beside those of first in, first out.

`python -m studies.schedulers` runs every case of specs with jobs, in virtual time, and prints each
job's mean iteration time from the second iteration on, over that with `fifo`. Below is how much of
published orderings is there (`claims`): their source is said, and figures that we could not look up
are left out. The figure is of the first spec.

Iterations are counted from the begin of one to the begin of the next, so that a job's shift before
its first iteration does not count, and neither does the first, which waits for no sums.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Annotated

from bench.options import FigureFile, several
from ringleaf.core.shipped import PACKAGE
from ringleaf.core.units import PS_PER_MS
from ringleaf.errors import ConfigError
from ringleaf.experiments.commands.cli import alone
from ringleaf.experiments.figures.style import subplots
from ringleaf.experiments.published import claims
from ringleaf.experiments.runs.console import Debug, say
from ringleaf.experiments.runs.spec_file import read_cases
from ringleaf.experiments.workloads.jobs.experiment import JobsExperiment
from ringleaf.experiments.workloads.jobs.kind import resolve_jobs
from ringleaf.experiments.workloads.jobs.results import JobsCase
from ringleaf.experiments.workloads.jobs.timeline import FORWARD

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ALL, INTERLEAVING, PACKING, MERCURY = "schedulers", "interleaving", "packing", "mercury"
COFLOWS, CHAIN, PARTITIONS, RACKS = "coflows", "coflow_chain", "partitions", "racks"
SPECS = [
    PACKAGE / "experiments" / "specs" / f"{name}.yaml"
    for name in (ALL, INTERLEAVING, PACKING, MERCURY, COFLOWS, CHAIN, PARTITIONS, RACKS)
]
FIFO = "fifo"


@dataclass(frozen=True, slots=True)
class MeasuredScheduler:
    """The result of one scheduler in one placement.

    Attributes:
        spec: The name of the spec's file.
        placement: Where the jobs' hosts are.
        scheduler: Its name.
        models: Each job's model.
        iteration_ms: Each job's mean time of an iteration from the second on.
        wrong: Wrong elements of all jobs.
    """

    spec: str
    placement: str
    scheduler: str
    models: tuple[str, ...]
    iteration_ms: tuple[float, ...]
    wrong: int

    @property
    def mean_ms(self) -> float:
        """The mean over jobs."""
        return fmean(self.iteration_ms)


def settled_ms(case: JobsCase, job: int) -> float:
    """Return a job's mean time between the begins of iterations, from the second on.

    Raises:
        ConfigError: If it has fewer than three iterations.
    """
    first: dict[int, int] = {}  # by iteration: when its first layer that takes time begins
    for span in case.spans:
        if span.job == job and span.kind == FORWARD:
            first[span.iteration] = min(span.start_ps, first.get(span.iteration, span.start_ps))
    begins = sorted(first.values())
    if len(begins) < 3:
        raise ConfigError(
            f"study: job {job} must have at least 3 iterations, got {len(begins)} whose forward "
            "passes take time"
        )
    return (begins[-1] - begins[1]) / (len(begins) - 2) / PS_PER_MS


def measure(spec: Path) -> Iterator[MeasuredScheduler]:
    """Yield the result of each case, as it has run.

    Raises:
        ConfigError: If the spec is wrong, or its jobs have too few iterations.
    """
    for given in read_cases(spec):
        experiment = JobsExperiment(resolve_jobs(given, f"spec {spec}: "))
        for case in experiment.run():
            yield MeasuredScheduler(
                spec.stem,
                experiment.spec.placement,
                case.combination.scheduler,
                tuple(row.model for row in case.rows),
                tuple(settled_ms(case, row.job) for row in case.rows),
                sum(row.wrong or 0 for row in case.rows),
            )


@dataclass(frozen=True, slots=True)
class PublishedOrder:
    """An ordering that was published: one scheduler is faster than another.

    Attributes:
        faster: The scheduler that is said to be faster.
        slower: The one that it is compared with.
        spec: Where it is looked for: the name of a spec's file,
        placement: and a placement of its jobs.
        published: The ratio of their speeds, as it was published;
        source: in words, and its source.
        otherwise: Why its direction is not found here, if it is not.
        in_turns: Whether the slower one has all jobs one after the other, on the hosts of one. Then
            speeds are those of all jobs together.
    """

    faster: str
    slower: str
    spec: str
    placement: str
    published: claims.Published
    source: str
    otherwise: str = ""
    in_turns: bool = False

    def ratio(self, faster: MeasuredScheduler, slower: MeasuredScheduler) -> float:
        """Return the ratio of speeds here."""
        if self.in_turns:
            return sum(slower.iteration_ms) / max(faster.iteration_ms)
        return slower.mean_ms / faster.mean_ms


NO_FIGURE = "faster, no figure at hand"

CLAIMS = (
    PublishedOrder("p3", FIFO, ALL, "packed", None, f"{NO_FIGURE} (P3)"),
    PublishedOrder(
        "bytescheduler", FIFO, ALL, "packed", 1.44, "1.44 in an example (a reader's notes)"
    ),
    PublishedOrder("geryon", FIFO, ALL, "packed", 1.2, "up to 1.2 by scheduling alone (abstract)"),
    PublishedOrder(
        "prophet", "p3", PARTITIONS, "packed", 1.4, "up to 1.4 over priority schedulers (abstract)"
    ),
    PublishedOrder(
        "prophet",
        "bytescheduler",
        PARTITIONS,
        "packed",
        1.4,
        "up to 1.4 likewise",
        "ByteScheduler has four partitions under way, which hide what each takes to start; "
        "p3, which waits for each, is slower than both",
    ),
    PublishedOrder("mg-wfbp", FIFO, ALL, "packed", None, f"{NO_FIGURE} (MG-WFBP)"),
    PublishedOrder(
        "ooo-backprop", FIFO, ALL, "packed", None, f"{NO_FIGURE} (out-of-order backprop)"
    ),
    PublishedOrder("dear", FIFO, ALL, "packed", None, f"{NO_FIGURE} (DeAR)"),
    PublishedOrder(
        "parrot", "aalo", COFLOWS, "spread", 2.4, "total completion time -58.4 %, so 2.4 (abstract)"
    ),
    PublishedOrder(
        "sincronia",
        "varys",
        COFLOWS,
        "spread",
        8,
        "up to 8 over earlier schedulers (abstract)",
        "on one link both serve the coflow with the least left first",
    ),
    PublishedOrder(
        "sincronia",
        "varys",
        CHAIN,
        "packed",
        8,
        "up to 8 likewise",
        "what the job between two others loses, they gain",
    ),
    PublishedOrder("cassini", FIFO, INTERLEAVING, "spread", 1.6, "mean 1.6 (abstract)"),
    PublishedOrder("mltcp", FIFO, INTERLEAVING, "spread", 2, "mean up to 2 (abstract)"),
    PublishedOrder(
        "mercury", FIFO, MERCURY, "packed", (1.18, 2.18), "1.18 to 2.18 over MXNet (abstract)"
    ),
    PublishedOrder(
        "mercury",
        "p3",
        MERCURY,
        "packed",
        (1.08, 2.04),
        "1.08 to 2.04 over partitioning (abstract)",
    ),
    PublishedOrder(
        "mercury", "bytescheduler", MERCURY, "packed", (1.08, 2.04), "1.08 to 2.04 likewise"
    ),
    PublishedOrder("liquid", FIFO, ALL, "spread", None, f"{NO_FIGURE} (surveys)"),
    PublishedOrder("liquid", FIFO, RACKS, "packed", None, f"{NO_FIGURE} (surveys)"),
    PublishedOrder(
        "tereis", FIFO, PACKING, "packed", None, f"{NO_FIGURE} (a survey)", in_turns=True
    ),
)


def judge(
    found: Sequence[MeasuredScheduler], orderings: Sequence[PublishedOrder] = CLAIMS
) -> Iterator[str]:
    """Yield a line for each claim about schedulers that were measured."""
    by_case = {(each.spec, each.placement, each.scheduler): each for each in found}
    for claim in orderings:
        where = claim.spec, claim.placement
        faster, slower = (
            by_case.get((*where, scheduler)) for scheduler in (claim.faster, claim.slower)
        )
        if faster is None or slower is None:
            continue
        ours = claim.ratio(faster, slower)
        verdict = claims.ratio(ours, claim.published)
        turns = " in turns" if claim.in_turns else ""
        title = f"# {claim.faster} over {claim.slower}{turns}, {' '.join(where)}:"
        because = f", because {claim.otherwise}" if claim.otherwise and not verdict else ""
        yield f"{title} {verdict}{because}: ours {ours:.3f}, published {claim.source}"


def ratios(found: Sequence[MeasuredScheduler]) -> Mapping[tuple[str, str], tuple[float, ...]]:
    """Return each job's iteration time over that with `fifo`, by placement and scheduler.

    Raises:
        ConfigError: If a placement was not measured with `fifo`.
    """
    base = {each.placement: each.iteration_ms for each in found if each.scheduler == FIFO}
    for each in found:
        if each.placement not in base:
            raise ConfigError(
                f"study: scheduler must have {FIFO!r}, got {each.scheduler!r} without it"
            )
    return {
        (each.placement, each.scheduler): tuple(
            own / other for own, other in zip(each.iteration_ms, base[each.placement], strict=True)
        )
        for each in found
    }


def table(found: Sequence[MeasuredScheduler]) -> Iterator[str]:
    """Yield the rows of the table."""
    models = found[0].models
    yield f"# {found[0].spec}: iterations in virtual time, from the second on"
    yield "# mean: of all jobs, in ms; jobs: each one's over that with fifo"
    heads = [f"{number}:{model}" for number, model in enumerate(models, start=1)]
    yield (
        f"#{'placement':>9} {'scheduler':>14} {'mean':>7} "
        + " ".join(f"{h:>11}" for h in heads)
        + (" #wrong")
    )
    over = ratios(found)
    for each in found:
        cells = " ".join(f"{ratio:>11.3f}" for ratio in over[each.placement, each.scheduler])
        name = f"{each.placement:>10} {each.scheduler:>14}"
        yield f"{name} {each.mean_ms:>7.3f} {cells} {each.wrong:>6}"


def draw(found: Sequence[MeasuredScheduler]) -> Figure:
    """Draw each scheduler's mean over `fifo`'s as bars, jobs as dots; a panel per placement."""
    over = ratios(found)
    placements = list(dict.fromkeys(each.placement for each in found))
    schedulers = list(dict.fromkeys(each.scheduler for each in found))
    markers = dict(zip(sorted(set(found[0].models)), "o^sDv", strict=False))
    figure: Figure
    figure, panels = subplots(
        1, len(placements), figsize=(1.5 + 3.6 * len(placements), 1.4 + 0.24 * len(schedulers)),
        sharex=True, sharey=True, squeeze=False,
    )  # fmt: skip
    for axes, placement in zip(panels[0], placements, strict=True):
        base = next(e.mean_ms for e in found if (e.placement, e.scheduler) == (placement, FIFO))
        for each in (each for each in found if each.placement == placement):
            y = schedulers.index(each.scheduler)
            axes.barh(y, each.mean_ms / base, 0.7, color="#3f7fd1" if y else "#7b8794")
            for model, ratio in zip(each.models, over[placement, each.scheduler], strict=True):
                axes.plot(ratio, y, markers[model], color="#333333", markersize=3)
        axes.axvline(1, color="#333333", linewidth=0.8, linestyle="--")
        axes.set_title(f"hosts {placement}", fontsize=10, loc="left")
        axes.set_xlabel("iteration time over fifo's (simulated)", fontsize=9)
        axes.grid(axis="y", visible=False)
    panels[0][0].set_yticks(range(len(schedulers)), schedulers)
    panels[0][0].set_ylim(len(schedulers) - 0.5, -0.5)
    for model, marker in markers.items():
        panels[0][0].plot([], [], marker, color="#333333", markersize=3, label=f"a job: {model}")
    figure.legend(loc="outside lower center", ncols=len(markers), fontsize=9)
    figure.suptitle(
        "Flow schedulers: bars are the mean of all jobs", x=0.01, ha="left", fontsize=11
    )
    return figure


def schedulers_command(
    spec: Annotated[list[Path] | None, several("Spec with jobs")] = None,
    figure: FigureFile = None,
    debug: Debug = False,
) -> None:
    """Compare flow schedulers with fifo."""
    found: list[list[MeasuredScheduler]] = []
    for each in spec or SPECS:
        found.append(list(measure(each)))
        for line in table(found[-1]):
            say(line)
    for line in judge([each for part in found for each in part]):
        say(line)
    if figure:
        from ringleaf.experiments.figures.style import DOTS_PER_INCH, matplotlib_style

        with matplotlib_style():
            draw(found[0]).savefig(figure, dpi=DOTS_PER_INCH)


if __name__ == "__main__":
    alone("python -m studies.schedulers", schedulers_command)
