"""Times of flows by load, under minimal, Valiant's and UGAL's routes: `python -m studies.adaptive`.

Hosts of a Dragonfly send short flows at random times: to any host (even traffic), or all hosts of a
group to those of the next one (adversarial traffic). Where a group is one router, the queue that
UGAL looks at is that of the link between groups. With four, it is that towards the router which has
this link, and gets longer only if several hosts of one router send (UGAL-L of the paper, whose
routers stop one another besides).

Source:
    Kim, Dally, Scott and Abts, "Technology-Driven, Highly-Scalable Dragonfly Topology", ISCA 2008,
    section 4.2 and figure 8: latency by offered load.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import numpy as np
import typer

from ringleaf.core.units import PS_PER_S, PS_PER_US
from ringleaf.experiments.commands.cli import alone
from ringleaf.experiments.runs.console import Debug, say
from ringleaf.experiments.workloads.graph.experiment import WorkExperiment
from ringleaf.experiments.workloads.graph.kind import resolve_workload

ROUTES = ("dealt", "valiant", "ugal")
LOADS = (0.1, 0.2, 0.3, 0.4)
"""Shares of the rate of hosts' links."""

SIZE_BYTES = 16 << 10
RATE_BPS = 100 * 10**9
FLOWS = 2000


@dataclass(frozen=True, slots=True)
class Groups:
    """A Dragonfly some of whose groups have hosts.

    Attributes:
        topology: The Dragonfly.
        count: The number of groups with hosts, which are the first ones.
        hosts: The number of hosts of each.
    """

    topology: str
    count: int
    hosts: int


NETWORKS = (Groups("dragonfly,a=1,p=4,h=6", 7, 4), Groups("dragonfly,a=4,p=2,h=2", 8, 8))


def to_any(groups: Groups, source: int, rng: Random) -> int:
    """Return a host that is not the source."""
    other = rng.randrange(groups.count * groups.hosts - 1)
    return other + (other >= source)


def to_next_group(groups: Groups, source: int, rng: Random) -> int:
    """Return a host of the next group."""
    group = (source // groups.hosts + 1) % groups.count
    return group * groups.hosts + rng.randrange(groups.hosts)


TRAFFIC: Mapping[str, Callable[[Groups, int, Random], int]] = {
    "even": to_any,
    "adversarial": to_next_group,
}


def flows_of(groups: Groups, traffic: str, load: float, count: int, seed: int) -> Iterator[str]:
    """Yield the lines of a file of flows, which start as a Poisson process."""
    rng, start_s, hosts = Random(seed), 0.0, groups.count * groups.hosts
    yield "source,target,size,start"
    for _ in range(count):
        start_s += rng.expovariate(load * hosts * RATE_BPS / (8 * SIZE_BYTES))
        source = rng.randrange(hosts)
        target = TRAFFIC[traffic](groups, source, rng)
        yield f"{source},{target},{SIZE_BYTES},{round(start_s * PS_PER_S)}ps"


def times_us(
    groups: Groups, traffic: str, load: float, routes: str, *, count: int, seed: int
) -> tuple[float, float]:
    """Return the median and the 99th percentile of the flows' times."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "flows.csv"
        path.write_text("\n".join(flows_of(groups, traffic, load, count, seed)) + "\n")
        given: dict[str, Any] = {"topo": groups.topology, "workload": "flows", "files": str(path)}
        given |= {"hosts": str(groups.count * groups.hosts), "routes": routes, "data": "none"}
        done = WorkExperiment(resolve_workload(given)).run(_untold, _unpassed)
    times = np.asarray(done.messages.times_ps) / PS_PER_US
    return float(np.percentile(times, 50)), float(np.percentile(times, 99))


def _untold(_share: float, _done: int, _wanted: int) -> None:
    """Tell nobody how far a replay is."""


def _unpassed(_hops: int) -> None:
    """Tell nobody of packets."""


def adaptive_command(
    flows: Annotated[int, typer.Option(min=1, help="Flows of each run.")] = FLOWS,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the flows.")] = 1,
    debug: Debug = False,
) -> None:
    """Print the median and the 99th percentile of flows' times, by traffic, load and routes."""
    say(f"# times of {flows} flows of 16 KiB in us, simulated: median, 99th percentile")
    for groups in NETWORKS:
        for traffic in TRAFFIC:
            say(f"# {groups.topology}, {traffic} traffic")
            say(f"#{'load':>7}" + "".join(f"{routes:>18}" for routes in ROUTES))
            for load in LOADS:
                row = [
                    times_us(groups, traffic, load, routes, count=flows, seed=seed)
                    for routes in ROUTES
                ]
                say(f"{load:8.1f}" + "".join(f"{p50:10.2f}{p99:8.2f}" for p50, p99 in row))


if __name__ == "__main__":
    alone("python -m studies.adaptive", adaptive_command)
