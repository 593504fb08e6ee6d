"""Words that sparse allreduces send per rank, beside the published bounds.

    python -m studies.sparse_volume

Each rank has normal numbers, of which a share is sent; every exchange is emulated, and judged. A
case is one step, of Ok-Topk the third, with the thresholds of the first. Words are of 4 bytes, of
messages' contents; for OmniReduce, whose switches' packets have no messages, bytes on the wire.
`within` says whether the busiest rank's words are at most the published ones, and 5 % and the words
of messages' headers more; of bytes on the wire it says nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from bench.options import FigureFile, several
from ringleaf.collectives.compression.program import Compressed, CompressedProgram
from ringleaf.collectives.compression.registry import parse_compressor
from ringleaf.collectives.compression.share import parse_share
from ringleaf.collectives.registry import SYSTEMS
from ringleaf.collectives.sparse.pairs import Residual
from ringleaf.collectives.sparse.registry import SPARSE, parse_sparse
from ringleaf.collectives.sparse.volumes import HEADERS, WORDS, Volume
from ringleaf.core.tensors import Array
from ringleaf.core.units import PS_PER_US
from ringleaf.core.yaml_file import read_yaml
from ringleaf.errors import choose
from ringleaf.experiments.commands.cli import alone
from ringleaf.experiments.figures.style import subplots
from ringleaf.experiments.runs.console import FAILURE, Debug, say
from ringleaf.experiments.workloads.converge.carrier import ExchangeCarrier

SPEC = Path(__file__).with_suffix(".yaml")
RING = "ring"
STEPS = 3
SLACK = 0.05
GATHERING = ("topka", "deepreduce")
"""Those whose ranks hold all ranks' pairs at once."""


@dataclass(frozen=True, slots=True)
class VolumeCase:
    """One allreduce's step.

    Attributes:
        name: Of a sparse allreduce, or an algorithm whose messages are sparse.
        ranks: The number of ranks.
        density: The share of elements that each rank sends, as people write it.
        volume: The same for the bounds.
    """

    name: str
    ranks: int
    density: str
    volume: Volume


@dataclass(frozen=True, slots=True)
class SentWords:
    """The outcome of a case: words of the busiest rank and on average, time, wrong elements."""

    most: float
    mean: float
    time_us: float
    wrong: int

    def is_within(self, most: float, headers: float) -> bool:
        """Return whether the busiest rank sent no more than published, but for headers."""
        return self.most <= (1 + SLACK) * most + headers


def topology(ranks: int) -> str:
    """Return a fabric of racks of eight hosts, with as many ways up as hosts."""
    return f"leafspine,leaves={max(ranks // 8, 1)},spines=8,hosts=8"


def cases(plan: dict[str, Any], names: Sequence[str]) -> Iterator[VolumeCase]:
    """Yield the cases of a spec, without those that are too large."""
    elements = int(plan["elements"])
    for name in names:
        for ranks in plan["ranks"]:
            for density in plan["densities"]:
                count = parse_share(str(density), "density").of(elements)
                held = ranks * ranks * 2 * count if name in GATHERING else ranks * elements
                if held <= plan["most_words"]:
                    yield VolumeCase(name, ranks, str(density), Volume(ranks, elements, count))


def measure(case: VolumeCase, carrier: ExchangeCarrier) -> SentWords:
    """Run one case on a network of as many hosts as it has ranks."""
    v, is_program = case.volume, case.name in SPARSE
    programs: list[CompressedProgram] = []
    for rank in range(v.n):
        if is_program:
            programs.append(parse_sparse(f"{case.name}:{v.k}").make(rank, v.n))
        else:
            programs.append(Compressed(parse_compressor(f"topk:{v.k}"), rank, v.n))
    wrong = 0
    for step in range(STEPS if case.name == "oktopk" else 1):
        for each in programs:
            if isinstance(each, Residual):
                each.left = np.zeros(v.d, np.float32)  # so that steps are alike
        carrier.take_cost()
        carrier.together(programs, _inputs(v, step), step)
        wrong += carrier.cost.wrong
    cost = carrier.take_cost()
    words = (cost.wire_bytes if case.name in SYSTEMS else cost.data_bytes) / 4
    return SentWords(float(words.max()), float(words.mean()), cost.time_ps / PS_PER_US, wrong)


def _inputs(v: Volume, step: int) -> list[Array]:
    return [
        np.random.default_rng([v.n, rank, step]).standard_normal(v.d, np.float32)
        for rank in range(v.n)
    ]


def run(plan: dict[str, Any], names: Sequence[str]) -> Iterator[tuple[VolumeCase, SentWords]]:
    """Yield each case's outcome as it is done; a network serves all densities."""
    carrier, made = None, None
    for case in cases(plan, names):
        wanted = (RING if case.name in SPARSE else case.name, case.ranks)
        if made != wanted:
            if carrier is not None:
                carrier.close()
            carrier, made = ExchangeCarrier(wanted[0], topology(case.ranks)), wanted
        assert carrier is not None
        yield case, measure(case, carrier)
    if carrier is not None:
        carrier.close()


def line(case: VolumeCase, sent: SentWords) -> str:
    """Return an outcome as a line of the table."""
    least, most = WORDS[case.name](case.volume)
    within = "yes" if sent.is_within(most, HEADERS[case.name](case.volume)) else "no"
    if case.name in SYSTEMS:
        within = "-"
    return (
        f"  {case.name:>12} {case.ranks:>5} {case.density:>7} {case.volume.k:>6} "
        f"{sent.most:>10.0f} {sent.mean:>10.0f} {least:>10.0f} {most:>10.0f} {within:>6} "
        f"{sent.time_us:>10.1f} {sent.wrong:>6}"
    )


def draw(found: Sequence[tuple[VolumeCase, SentWords]], path: Path) -> None:
    """Draw words per rank over ranks, a plot per density, a line per allreduce."""
    import matplotlib as mpl

    mpl.use("Agg")
    densities = list(dict.fromkeys(case.density for case, _ in found))
    names = list(dict.fromkeys(case.name for case, _ in found))
    figure, plots = subplots(1, len(densities), figsize=(3.2 * len(densities), 4.2), squeeze=False)
    for density, axes in zip(densities, plots[0], strict=True):
        for number, name in enumerate(names):
            points = [
                (case.ranks, sent.most / case.volume.k)
                for case, sent in found
                if (case.name, case.density) == (name, density)
            ]
            look = ("o-", "s--", "^:")[number % 3]
            if points:
                axes.plot(*zip(*points, strict=True), look, color=f"C{number % 10}", label=name)
        ranks = sorted({case.ranks for case, _ in found})
        axes.plot(ranks, [6 * (n - 1) / n for n in ranks], color="0.5", label="6 (n - 1) / n")
        axes.set(title=f"density {density}", xlabel="ranks", xscale="log", yscale="log")
        axes.set_xticks(ranks, [str(n) for n in ranks])
        axes.minorticks_off()
        axes.grid(alpha=0.3)
    plots[0][0].set_ylabel("words that the busiest rank sends / k")
    handles, labels = plots[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=6)
    figure.savefig(path, dpi=110)


def sparse_volume_command(
    spec: Annotated[
        Path, typer.Option(help="Elements, densities, ranks.", show_default=SPEC.name)
    ] = SPEC,
    name: Annotated[list[str] | None, several("Sparse allreduce")] = None,
    out: FigureFile = None,
    debug: Debug = False,
) -> None:
    """Run the study; end with 1 if anything was wrong."""
    names = [choose("sparse_volume", "sparse allreduce", each, WORDS) for each in name or WORDS]
    plan: dict[str, Any] = read_yaml(spec, "sparse_volume")
    say(
        f"# {plan['elements']} elements per rank; words of 4 bytes, simulated time\n"
        f"# {'allreduce':>12} {'ranks':>5} {'density':>7} {'k':>6} {'words':>10} {'mean':>10} "
        f"{'least':>10} {'most':>10} {'within':>6} {'time (us)':>10} {'#wrong':>6}"
    )
    found = []
    for case, sent in run(plan, names):
        found.append((case, sent))
        say(line(case, sent))
    if out:
        draw(found, out)
    if any(sent.wrong for _, sent in found):
        raise typer.Exit(FAILURE)


if __name__ == "__main__":
    alone("python -m studies.sparse_volume", sparse_volume_command)
