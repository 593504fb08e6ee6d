"""Compare BlueConnect with a flat ring on machines of GPUs, by the ratio of their bandwidths.

    python -m studies.nodes nodes/sweep.csv --figure nodes.png

reads what `ringleaf run --spec nodes.yaml -o nodes` has measured.

On m machines of g GPUs, with NVLinks r times as fast as NICs, a flat ring of n = m g ranks is as
fast as one NIC of each machine: 2 (n-1)/n S/B. BlueConnect takes 2 (g-1)/g S/(r B) inside machines,
and 2 (m-1)/m S/(g B) between them, as all NICs work. For r far below g the quotient is nearly r; it
can't be above (n-1) / (m-1).

Source:
    Cho et al., "BlueConnect", MLSys 2019, for the algorithm; the times follow from its steps.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from bench.options import FigureFile
from ringleaf.errors import ConfigError
from ringleaf.experiments.commands.cli import alone
from ringleaf.experiments.figures.style import DOTS_PER_INCH, matplotlib_style, subplots
from ringleaf.experiments.runs.console import Debug, say
from ringleaf.topologies.registry import parse
from studies.times import note_time

_HEADER = f"#{'ratio':>7}{'ours':>8}{'expected':>10}  topology"


@dataclass(frozen=True, slots=True)
class NodesPoint:
    """One network: the ratio of rates, and how many times as long as BlueConnect a ring takes."""

    topo: str
    ratio: float
    ours: float
    expected: float


def expected_gain(machines: int, gpus: int, ratio: float) -> float:
    """Return a flat ring's time over BlueConnect's, where only bandwidth counts.

    Args:
        machines: Number of machines, from 2 on.
        gpus: GPUs of each, and NICs.
        ratio: The rate of a GPU's NVLinks over that of a NIC, from 1 on.
    """
    ranks = machines * gpus
    inside = (gpus - 1) / gpus / ratio
    return (ranks - 1) / ranks / (inside + (machines - 1) / machines / gpus)


def read_points(path: Path, nic_bps: int) -> list[NodesPoint]:
    """Return the points of a sweep's networks whose GPUs are at NVSwitches with a NIC each.

    Raises:
        ConfigError: If the file can't be read, or has no such networks.
    """
    times: dict[str, dict[str, int]] = {}
    ranks: dict[str, int] = {}
    try:
        with path.open(newline="") as file:
            for row in csv.DictReader(file):
                note_time(times.setdefault(row["topo"], {}), row["algo"], int(row["time_ps"]))
                ranks[row["topo"]] = int(row["ranks"])
    except (OSError, KeyError, ValueError) as error:
        raise ConfigError(
            f"nodes: must be a sweep of nodes.yaml, got {str(path)!r}: {error}"
        ) from error
    points = []
    for topo, taken in times.items():
        inside = parse(topo).inside
        if inside is None or not inside.has_nvswitch or inside.nics != inside.gpus:
            continue
        if not inside.gpudirect or {"ring", "blueconnect"} - set(taken):
            continue
        ratio = inside.nvlink().rate_bps / nic_bps
        ideal = expected_gain(ranks[topo] // inside.gpus, inside.gpus, ratio)
        points.append(NodesPoint(topo, ratio, taken["ring"] / taken["blueconnect"], ideal))
    if not points:
        raise ConfigError(f"nodes: must have ring and blueconnect on machines, got {str(path)!r}")
    return sorted(points, key=lambda point: point.ratio)


def draw(points: Sequence[NodesPoint], path: Path) -> None:
    """Write the figure, a PNG file."""
    with matplotlib_style():
        figure, axes = subplots(figsize=(6.4, 3.8))
        ratios = [point.ratio for point in points]
        axes.plot(ratios, ratios, color="gray", linestyle=":", label="the ratio itself")
        axes.plot(
            ratios,
            [point.expected for point in points],
            color="#7b8794",
            linestyle="--",
            label="expected, bandwidth alone",
        )
        axes.plot(
            ratios,
            [point.ours for point in points],
            "v-",
            color="#9467bd",
            label="ours (simulated)",
        )
        axes.set(xscale="log", yscale="log", xlabel="rate of a GPU's NVLinks / rate of a NIC")
        axes.set_ylabel("time of ring / time of BlueConnect")
        axes.set_ylim(0.8, 1.3 * max(point.expected for point in points))
        axes.set_xticks(ratios, [f"{ratio:.3g}" for ratio in ratios])
        axes.set_yticks([1, 2, 4, 8], ["1", "2", "4", "8"])
        axes.minorticks_off()
        axes.legend()
        figure.savefig(path, format="png", dpi=DOTS_PER_INCH)


def nodes_command(
    sweep: Annotated[Path, typer.Argument(help="sweep.csv of the spec nodes.yaml.")],
    nic_gbps: Annotated[float, typer.Option(min=1, max=1e6, help="Rate of a NIC.")] = 100,
    figure: FigureFile = None,
    debug: Debug = False,
) -> None:
    """Print a row for each network."""
    points = read_points(sweep, round(nic_gbps * 1e9))
    say(_HEADER)
    for point in points:
        say(f"{point.ratio:8.4g}{point.ours:8.2f}{point.expected:10.2f}  {point.topo}")
    if figure is not None:
        draw(points, figure)


if __name__ == "__main__":
    alone("python -m studies.nodes", nodes_command)
