"""A study of TensorExpress: the conditions under which its published factor of 2.5 appears.

`python -m studies.tensorexpress` runs every case of a spec with jobs, in virtual time, and prints
four times of each scheduler: an iteration, the part of it for which forward passes are blocked by
the network, and the latency of gradients, of all layers and of the front one; and each over that of
`tensorexpress`. Below is whether the published factors appear.

Source:
    Kang et al., IEEE CLOUD 2020, of which no more than the abstract was read: latency and network
    blocking time are better by up to 2.5 and 2.44 times. It does not say which scheduler they are
    compared with, nor the latency of which data; both are chosen here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Annotated

import typer

from bench.options import FigureFile
from ringleaf.core.shipped import PACKAGE
from ringleaf.core.units import PS_PER_MS, exact_rate
from ringleaf.errors import ConfigError
from ringleaf.experiments.commands.cli import alone
from ringleaf.experiments.figures.style import subplots
from ringleaf.experiments.published import claims
from ringleaf.experiments.runs.console import Debug, say
from ringleaf.experiments.runs.spec_file import Case, read_cases, swept
from ringleaf.experiments.workloads.jobs.experiment import JobsExperiment
from ringleaf.experiments.workloads.jobs.kind import resolve_jobs
from ringleaf.experiments.workloads.jobs.results import JobsCase
from ringleaf.experiments.workloads.jobs.timeline import QUEUED, WIRE
from studies.schedulers import FIFO, settled_ms

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SPEC = PACKAGE / "experiments" / "specs" / "tensorexpress.yaml"
OURS = "tensorexpress"
BASES = (FIFO, "bytescheduler")
"""Schedulers that it is compared with: none, and one that reorders in hosts alone."""

MEASURES = ("iteration", "blocked", "latency", "front")
PUBLISHED = {"latency": 2.5, "blocked": 2.44}
"""The published factors, by the measure whose name is nearest to theirs."""

SHOWN = ("topo", "counts", "jobs", "rate")
"""Options that have columns of their own, or follow from the number of jobs and ranks."""

LEAST_BLOCKED = 0.05
"""The least share of an iteration that counts as blocked; with less there is little to gain.

It is chosen here, and one verdict depends on it (`docs/schedulers.md`).
"""


@dataclass(frozen=True, slots=True)
class Condition:
    """The network and jobs of some runs.

    Attributes:
        jobs: The number of jobs.
        model: The model of the first job.
        ranks: The ranks of the first job.
        rate_bps: The rate of links.
        other: Options that differ from those of the spec's first case; "": none.
    """

    jobs: int
    model: str
    ranks: int
    rate_bps: int
    other: str = ""

    @property
    def title(self) -> str:
        """The condition in words, for figures."""
        words = f"{self.jobs} x {self.model}, {self.ranks} ranks, {exact_rate(self.rate_bps)}"
        return f"{words}, {self.other}" if self.other else words


@dataclass(frozen=True, slots=True)
class MeasuredCondition:
    """The times of one scheduler under one condition, as means over jobs.

    Attributes:
        condition: The condition.
        scheduler: Its name.
        times_ms: By measure. iteration: from the begin of one to that of the next, from the second
            on; blocked: waits of an iteration's forward passes for sums; latency: from when a
            layer's gradient is there until all ranks have its sum, the mean over layers; front: the
            same of the front-most layer that has a gradient.
        wrong: Wrong elements of all jobs.
    """

    condition: Condition
    scheduler: str
    times_ms: Mapping[str, float]
    wrong: int


def latencies_ms(case: JobsCase) -> tuple[float, float]:
    """Return the mean latency of all layers' gradients, and that of the front-most ones."""
    begun: dict[tuple[int, int, int], int] = {}
    ended: dict[tuple[int, int, int], int] = {}
    for span in case.spans:
        for layer in span.layers if span.kind in (QUEUED, WIRE) else ():
            place = span.job, span.iteration, layer
            begun[place] = min(begun.get(place, span.start_ps), span.start_ps)
            ended[place] = max(ended.get(place, 0), span.end_ps)
    took = {place: (ended[place] - begun[place]) / PS_PER_MS for place in begun}
    front = min(layer for _, _, layer in took)
    return fmean(took.values()), fmean(ms for place, ms in took.items() if place[-1] == front)


def times_ms(case: JobsCase) -> dict[str, float]:
    """Return a case's times by measure, in milliseconds.

    Raises:
        ConfigError: If a job has fewer than three iterations.
    """
    iteration = fmean(settled_ms(case, row.job) for row in case.rows)
    blocked = fmean(row.wait_ps / PS_PER_MS for row in case.rows)
    return dict(zip(MEASURES, (iteration, blocked, *latencies_ms(case)), strict=True))


def measure(spec: Path) -> Iterator[MeasuredCondition]:
    """Yield the result of each case, as it has run.

    Raises:
        ConfigError: If the spec is wrong, or its jobs have too few iterations.
    """
    cases = read_cases(spec)
    varied = [name for name in swept(cases) if name not in SHOWN]
    for given in cases:
        experiment = JobsExperiment(resolve_jobs(given, f"spec {spec}: "))
        other = _other(given, cases[0], varied)
        for case in experiment.run():
            first = case.rows[0]
            rate_bps = experiment.spec.rate_bps
            yield MeasuredCondition(
                Condition(first.jobs, first.model, first.ranks, rate_bps, other),
                case.combination.scheduler,
                times_ms(case),
                sum(row.wrong or 0 for row in case.rows),
            )


def _other(given: Case, first: Case, varied: Sequence[str]) -> str:
    """Return the options in which a case differs from the first one, as typed."""
    return " ".join(f"{n}={given[n]}" for n in varied if n in given and given[n] != first.get(n))


Ratios = dict[Condition, dict[str, dict[str, float | None]]]


def ratios(found: Sequence[MeasuredCondition]) -> Ratios:
    """Return each scheduler's times over those of `tensorexpress`, by condition, order and measure.

    The ratio of blocked times is None if less than `LEAST_BLOCKED` of an iteration is blocked.

    Raises:
        ConfigError: If a condition was not measured with `tensorexpress`.
    """
    ours = {each.condition: each.times_ms for each in found if each.scheduler == OURS}
    over: Ratios = defaultdict(dict)
    for each in found:
        own = ours.get(each.condition)
        if own is None:
            raise ConfigError(
                f"study: scheduler must have {OURS!r}, got {each.scheduler!r} without it"
            )
        over[each.condition][each.scheduler] = {
            name: each.times_ms[name] / own[name] if own[name] else None for name in MEASURES
        }
        if each.times_ms["blocked"] < LEAST_BLOCKED * each.times_ms["iteration"]:
            over[each.condition][each.scheduler]["blocked"] = None
    return dict(over)


def table(found: Sequence[MeasuredCondition]) -> Iterator[str]:
    """Yield the rows of the table."""
    yield "# means of all jobs in virtual time, in ms, and each over that of tensorexpress"
    yield "# blocked: of forward passes, per iteration; latency: of gradients, mean over layers;"
    yield "# front: of the front layer's gradient; -: less than 5 % is blocked"
    heads = " ".join(f"{name:>9}" for name in MEASURES)
    short = " ".join(f"{name[:5]:>7}" for name in MEASURES)
    yield f"#jobs      model ranks   rate {'scheduler':>14} {heads} {short} #wrong other"
    over = ratios(found)
    for each in found:
        at, own = each.condition, over[each.condition][each.scheduler]
        times = " ".join(f"{each.times_ms[name]:>9.3f}" for name in MEASURES)
        factors = " ".join(f"{_factor(own[name]):>7}" for name in MEASURES)
        yield (
            f"{at.jobs:>5} {at.model:>10} {at.ranks:>5} {at.rate_bps / 1e9:>5.0f}G "
            f"{each.scheduler:>14} {times} {factors} {each.wrong:>6} {at.other or '-'}"
        )


def _factor(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.2f}"


def judge(found: Sequence[MeasuredCondition]) -> Iterator[str]:
    """Yield a line for each published factor and each scheduler that it may be compared with."""
    over = ratios(found)
    first = found[0].condition
    for name, published in PUBLISHED.items():
        for base in BASES:
            known = {at: r for at in over if (r := over[at].get(base, {}).get(name)) is not None}
            if first not in known:
                continue
            reached = sum(ratio >= published for ratio in known.values())
            verdict = claims.ratio(known[first], published)
            yield (
                f"# {name}, {base} over {OURS}: {verdict}: ours {known[first]:.2f} "
                f"({first.title}), and {min(known.values()):.2f} to {max(known.values()):.2f} "
                f"under all conditions, of which {reached} of {len(known)} reach it; "
                f"published up to {published:g} (abstract)"
            )


_LOOKS = {
    "iteration": ("#7b8794", "s", "iteration"),
    "blocked": ("#d1603f", "^", "blocked by the network"),
    "latency": ("#3f7fd1", "o", "latency of gradients"),
}
_MOST = 30  # of the axes
_AXIS = f"simulated time over {OURS}'s"


def draw(found: Sequence[MeasuredCondition]) -> Figure:
    """Draw times over those of `tensorexpress`: over links' rates, and under other conditions."""
    over, first = ratios(found), found[0].condition
    figure: Figure
    figure, panels = subplots(1, 3, figsize=(12, 4.8))
    alike = [at for at in over if replace(at, rate_bps=first.rate_bps) == first]
    for axes, base in zip(panels, BASES, strict=False):
        _draw_rates(axes, sorted(alike, key=lambda at: at.rate_bps), over, base)
        axes.set_title(f"{base} over {OURS}", fontsize=10, loc="left")
    panels[0].set_ylabel(_AXIS)
    others = [at for at in over if at not in alike and not _is_fewer(at, first)]
    _draw_conditions(panels[2], [first, *others], over)
    panels[2].set_title(f"{FIFO} over {OURS}, other conditions", fontsize=10, loc="left")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=9)
    about = (
        f"{first.jobs} jobs, {first.model}, {first.ranks} ranks each; at the edge: {_MOST} or more"
    )
    figure.suptitle(f"TensorExpress: {about}", x=0.01, ha="left", fontsize=11)
    return figure


def _is_fewer(at: Condition, first: Condition) -> bool:
    """Return whether it has another rate in addition to fewer jobs: the table alone has those."""
    return at.jobs < first.jobs and at.rate_bps != first.rate_bps


def _apart(at: Condition, first: Condition) -> str:
    """Return what sets a condition apart from the first, in words."""
    words = (
        ("1 job" if at.jobs == 1 else f"{at.jobs} jobs", at.jobs != first.jobs),
        (at.model, at.model != first.model),
        (f"{at.ranks} ranks", at.ranks != first.ranks),
        (exact_rate(at.rate_bps), at.rate_bps != first.rate_bps),
        (at.other, at.other),
    )
    return ", ".join(word for word, is_apart in words if is_apart) or first.title


def _draw_rates(axes: Axes, at: Sequence[Condition], over: Ratios, base: str) -> None:
    for name, (color, marker, label) in _LOOKS.items():
        known = [(c.rate_bps / 1e9, r) for c in at if (r := over[c][base][name]) is not None]
        rates, values = [rate for rate, _ in known], [min(value, _MOST) for _, value in known]
        axes.plot(rates, values, marker + "-", color=color, label=label, markersize=5)
    axes.axhline(PUBLISHED["latency"], color="#333333", linewidth=0.8, linestyle="--",
                 label="published, up to 2.5")  # fmt: skip
    ticks = sorted({c.rate_bps / 1e9 for c in at})
    axes.set(xscale="log", yscale="log", ylim=(0.7, _MOST * 1.1), xlabel="rate of links (Gbit/s)")
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_xticks([], minor=True)
    _scale(axes.yaxis)


def _draw_conditions(axes: Axes, at: Sequence[Condition], over: Ratios) -> None:
    for place, condition in enumerate(at):
        for name, (color, marker, _) in _LOOKS.items():
            ratio = over[condition][FIFO][name]
            if ratio is not None:
                axes.plot(min(ratio, _MOST), place, marker, color=color, markersize=5)
    axes.axvline(PUBLISHED["latency"], color="#333333", linewidth=0.8, linestyle="--")
    axes.set(xscale="log", xlim=(0.5, _MOST * 1.1), ylim=(len(at) - 0.5, -0.5))
    axes.set_xlabel(_AXIS)
    axes.set_yticks(range(len(at)), [_apart(each, at[0]) for each in at], fontsize=8)
    _scale(axes.xaxis)


def _scale(axis: object) -> None:
    """Give a logarithmic axis ticks that are read as factors."""
    ticks = [1, 2, 5, 10, 20]
    axis.set_ticks(ticks, [str(tick) for tick in ticks])  # type: ignore[attr-defined]
    axis.set_ticks([], minor=True)  # type: ignore[attr-defined]


def tensorexpress_command(
    spec: Annotated[Path, typer.Option(help="Spec with jobs.", show_default=SPEC.name)] = SPEC,
    figure: FigureFile = None,
    debug: Debug = False,
) -> None:
    """Look for TensorExpress's published factors."""
    found = list(measure(spec))
    for line in (*table(found), *judge(found)):
        say(line)
    if figure:
        from ringleaf.experiments.figures.style import DOTS_PER_INCH, matplotlib_style

        with matplotlib_style():
            draw(found).savefig(figure, dpi=DOTS_PER_INCH)


if __name__ == "__main__":
    alone("python -m studies.tensorexpress", tensorexpress_command)
