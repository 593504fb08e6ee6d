"""Rank mitigations of faults by the flow network, and let packets judge the ranking.

`python -m studies.mitigations` has traffic on a fat-tree whose links or switches have slowed down,
and what may be done about it: nothing, other routes, or taking a link or a switch out, so that
routes lead around it. As SWARM does (Namyar et al., NSDI'25), it asks a model of flows which of
these has the best tail of flows' times; here packets say whether that was right. Kendall's tau is 1
if both networks put all mitigations into one order, and -1 if into the opposite one. What the
choice by flows costs is its time by packets, beside that of the best.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import Annotated, Any

import numpy as np
import typer

from bench.options import FigureFile
from ringleaf.core.units import PS_PER_US
from ringleaf.errors import choose
from ringleaf.experiments.commands.cli import alone
from ringleaf.experiments.figures.style import DOTS_PER_INCH, matplotlib_style, subplots
from ringleaf.experiments.runs.console import Debug, say
from ringleaf.experiments.workloads.graph.experiment import WorkExperiment
from ringleaf.experiments.workloads.graph.kind import resolve_workload

TOPOLOGY = "fattree,k=4"
TRAFFIC: Mapping[str, Mapping[str, str]] = {
    "websearch": {"ranks": "16", "flows": "400", "load": "0.5"},
    "random": {"ranks": "16", "flows": "400", "flow_sizes": "256K,1M", "load": "0.5"},
    "permutation": {"ranks": "16", "flows": "128", "flow_sizes": "1M"},
}
MEASURES = {"p99": 99, "p50": 50}
"""Percentiles of flows' times."""

NOTHING, ROUTES = "nothing", "ecmp"
NETWORKS = "flow", "virtual"


@dataclass(frozen=True, slots=True)
class Scenario:
    """Faults, and what may be taken out because of them.

    Attributes:
        faults: What is wrong, as typed.
        outs: Links and switches, each of which may be taken out.
        left: What is still wrong then, as typed.
    """

    faults: str
    outs: tuple[str, ...]
    left: Mapping[str, str]


def _one(place: str, rate: str, switch: str) -> Scenario:
    """Return a scenario of one link that is slow, which may go, or a switch with it."""
    return Scenario(f"{place} rate {rate} at 0", (place, switch), {})


SCENARIOS = (
    *(_one("s0-s8", rate, "s8") for rate in ("5G", "25G", "50G", "75G")),
    *(_one("s8-s16", rate, "s16") for rate in ("5G", "25G", "50G", "75G")),
    *(
        Scenario(
            f"s0-s8 rate {rate} at 0, s2-s10 rate {rate} at 0",
            ("s0-s8", "s2-s10", "s8"),
            {
                "s0-s8": f"s2-s10 rate {rate} at 0",
                "s2-s10": f"s0-s8 rate {rate} at 0",
                "s8": f"s2-s10 rate {rate} at 0",
            },
        )
        for rate in ("10G", "50G")
    ),
    *(Scenario(f"s16 rate {rate} at 0", ("s16",), {}) for rate in ("10G", "50G")),
)


def mitigations(scenario: Scenario) -> dict[str, dict[str, str]]:
    """Return what may be done about a scenario, and the options that this stands for."""
    done = {NOTHING: {"faults": scenario.faults}}
    done[ROUTES] = {"faults": scenario.faults, "routes": "ecmp"}
    for out in scenario.outs:
        faults = ", ".join(filter(None, (f"{out} down at 0", scenario.left.get(out, ""))))
        done[f"without {out}"] = {"faults": faults, "reroute": "0"}
        done[f"without {out}, ecmp"] = {"faults": faults, "reroute": "0", "routes": "ecmp"}
    return done


@cache
def percentiles(net: str, traffic: str, *options: tuple[str, str]) -> tuple[int, ...]:
    """Return the percentiles of flows' times in ps, in the order of `MEASURES`."""
    given: dict[str, Any] = {"topo": TOPOLOGY, "workload": traffic, "net": net, "data": "none"}
    given |= {**TRAFFIC[traffic], "queue": "64M", **dict(options)}
    done = WorkExperiment(resolve_workload(given)).run(_untold, _unpassed)
    times_ps = np.asarray(done.messages.times_ps)
    return tuple(
        int(np.percentile(times_ps, percent, method="inverted_cdf"))
        for percent in MEASURES.values()
    )


def _untold(_share: float, _done: int, _wanted: int) -> None:
    """Tell nobody how far a replay is."""


def _unpassed(_hops: int) -> None:
    """Tell nobody of packets."""


def kendalls_tau(one: Sequence[float], other: Sequence[float]) -> float:
    """Return Kendall's tau-b of two rankings: 1 if they agree on all pairs, -1 if on none.

    A pair that is equal in one of them counts for neither side, and less in the whole (Kendall,
    "The treatment of ties in ranking problems", Biometrika 33, 1945). It is 1 where one of them has
    nothing but ties, as nothing could be ranked wrongly.
    """
    pairs = [
        (np.sign(one[i] - one[j]), np.sign(other[i] - other[j]))
        for i, j in combinations(range(len(one)), 2)
    ]
    whole = np.sqrt(float(sum(a != 0 for a, _ in pairs) * sum(b != 0 for _, b in pairs)))
    return float(sum(a * b for a, b in pairs) / whole) if whole else 1.0


@dataclass(frozen=True, slots=True)
class Ranking:
    """The mitigations of a scenario, ranked by both networks.

    Attributes:
        traffic: The traffic.
        faults: What is wrong.
        names: The mitigations.
        flow_ps: Their percentiles by flows.
        packets_ps: Those by packets.
    """

    traffic: str
    faults: str
    names: tuple[str, ...]
    flow_ps: tuple[int, ...]
    packets_ps: tuple[int, ...]

    @property
    def tau(self) -> float:
        """Kendall's tau of both orders."""
        return kendalls_tau(self.flow_ps, self.packets_ps)

    @property
    def chosen(self) -> int:
        """The number of the mitigation that is best by flows."""
        return self.flow_ps.index(min(self.flow_ps))

    @property
    def regret(self) -> float:
        """The share by which the choice by flows is slower than the best, by packets."""
        return self.packets_ps[self.chosen] / min(self.packets_ps) - 1

    @property
    def worst(self) -> float:
        """The share by which the worst mitigation is slower than the best, by packets."""
        return max(self.packets_ps) / min(self.packets_ps) - 1


def rank(measure: str) -> Iterator[Ranking]:
    """Run all scenarios on both networks, and yield the rankings by one measure."""
    place = list(MEASURES).index(measure)
    for traffic in TRAFFIC:
        for scenario in SCENARIOS:
            options = mitigations(scenario)
            by_net = [
                tuple(percentiles(net, traffic, *each.items())[place] for each in options.values())
                for net in NETWORKS
            ]
            yield Ranking(traffic, scenario.faults, tuple(options), *by_net)


def draw(rankings: Sequence[Ranking], measure: str, path: Any) -> None:
    """Write the figure: each mitigation's time by flows over that by packets."""
    with matplotlib_style():
        figure, axes = subplots(figsize=(5.2, 4.6))
        for traffic, color, marker in zip(
            TRAFFIC, ("#1f77b4", "#d95f02", "#7570b3"), "os^", strict=True
        ):
            own = [each for each in rankings if each.traffic == traffic]
            flow_us, packets_us = (
                [time_ps / PS_PER_US for each in own for time_ps in getattr(each, name)]
                for name in ("flow_ps", "packets_ps")
            )
            axes.plot(packets_us, flow_us, marker, color=color, alpha=0.6, label=traffic, ms=5)
        low, high = axes.get_xlim()
        axes.axline((low, low), (high, high), color="#808080", linewidth=1, zorder=0)
        axes.set(xscale="log", yscale="log")
        axes.set(xlabel=f"{measure} of flows' times by packets (µs)", ylabel="by flows (µs)")
        axes.legend()
        figure.savefig(path, format=path.suffix[1:], dpi=DOTS_PER_INCH)


def mitigations_command(
    measure: Annotated[str, typer.Option(help=f"One of {', '.join(MEASURES)}.")] = "p99",
    figure: FigureFile = None,
    debug: Debug = False,
) -> None:
    """Print, for each scenario, Kendall's tau of both rankings, and what the choice costs."""
    choose("mitigations", "measure", measure, MEASURES)
    say(f"#{'traffic':>11} {'tau':>6} {'regret':>7} {'worst':>7} {'s':>5}  chosen by flows")
    rankings = []
    began_s = time.perf_counter()
    for each in rank(measure):
        rankings.append(each)
        taken_s, began_s = time.perf_counter() - began_s, time.perf_counter()
        say(
            f" {each.traffic:>11} {each.tau:6.2f} {100 * each.regret:6.1f}% "
            f"{100 * each.worst:6.1f}% {taken_s:5.1f}  {each.names[each.chosen]}  [{each.faults}]"
        )
    taus, regrets = ([getattr(each, name) for each in rankings] for name in ("tau", "regret"))
    best = sum(each.regret == 0 for each in rankings)
    say(
        f"# {len(rankings)} rankings by {measure}: mean tau {np.mean(taus):.2f}, least "
        f"{min(taus):.2f}; the best was chosen {best} times; regret {100 * np.mean(regrets):.1f} % "
        f"on average, {100 * max(regrets):.1f} % at most; the worst mitigation costs "
        f"{100 * np.mean([each.worst for each in rankings]):.0f} % on average"
    )
    if figure is not None:
        draw(rankings, measure, figure)


if __name__ == "__main__":
    alone("python -m studies.mitigations", mitigations_command)
