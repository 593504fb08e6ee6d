"""Measure the time for which the event loop stands still while circuits change.

    python -m studies.circuit_costs

runs an alltoall of 32 hosts in eight racks, whose circuits change again and again, and prints the
milliseconds of each part of a change: what is asked of hosts' queue pairs, the controller, the
routes, and ports. Routes that a switch had before are not worked out again, so the first changes
take longer than later ones; medians and the longest are printed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from statistics import median
from typing import Annotated, Any

import typer

from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.core.units import format_count
from ringleaf.experiments.commands.cli import alone
from ringleaf.experiments.runs.console import Debug, say
from ringleaf.networks.circuit_plan import CircuitPlan
from ringleaf.networks.endpoints.rack_demand import RackDemand
from ringleaf.networks.options import NetworkOptions
from ringleaf.networks.virtual import VirtualNetwork
from ringleaf.networks.virtual.circuits import CircuitSwitching
from ringleaf.networks.virtual.switch_set import SwitchSet
from ringleaf.topologies.registry import build
from ringleaf.topologies.switching.settings import parse_circuits

PARTS: tuple[tuple[str, type, str], ...] = (
    ("demand", RackDemand, "take"),
    ("controller", CircuitPlan, "decide"),
    ("routes", SwitchSet, "reroute"),
    ("a stop", CircuitSwitching, "happen"),
)
"""The stops that are timed: two or three to a change, of which one asks and two set routes."""


@contextmanager
def timed(taken: dict[str, list[float]]) -> Iterator[None]:
    """Note the milliseconds of each call of the parts."""
    originals = [(owner, name, getattr(owner, name)) for _, owner, name in PARTS]
    for (label, owner, name), (_, _, original) in zip(PARTS, originals, strict=True):
        setattr(owner, name, _noted(original, taken.setdefault(label, [])))
    try:
        yield
    finally:
        for owner, name, original in originals:
            setattr(owner, name, original)


def _noted(function: Callable[..., Any], taken: list[float]) -> Callable[..., Any]:
    @wraps(function)
    def call(*values: Any, **named: Any) -> Any:
        began = time.perf_counter()
        result = function(*values, **named)
        taken.append(1000 * (time.perf_counter() - began))
        return result

    return call


def circuit_costs_command(
    topo: Annotated[str, typer.Option(help="Topology with circuits.")] = (
        "circuits,racks=8,hosts=4,optical=4"
    ),
    circuits: Annotated[str, typer.Option(help="Controller and times.")] = (
        "helios,period=20us,dead=5us"
    ),
    algo: Annotated[str, typer.Option(help="Algorithm.")] = "alltoall",
    elements: Annotated[int, typer.Option(min=1, help="Elements of each rank.")] = 4_000_000,
    debug: Debug = False,
) -> None:
    """Print the median and the longest time of each part of a change."""
    graph = build(topo)
    options = NetworkOptions(circuits=parse_circuits(circuits, "circuits"), has_data=False)
    network = VirtualNetwork(graph, options)
    ranks = len(network.groups[0].hosts)
    schedule = ALGORITHMS.find(algo).build(
        ranks, size_bytes=4 * elements, hierarchy=graph.graph["hierarchy"]
    )
    arrays = network.arrays(elements, schedule=schedule)
    taken: dict[str, list[float]] = {}
    with timed(taken):
        result = network.run(schedule, arrays)
    changes = len(result.circuits.changes) if result.circuits else 0
    say(f"# {graph.name}, {circuits}, {algo}: {format_count(changes, 'change')}")
    say(f"#{'median':>8}{'longest':>9}  (ms)")
    for label, own in taken.items():
        if own:
            say(f"{median(own):9.3f}{max(own):9.3f}  {label}")


if __name__ == "__main__":
    alone("python -m studies.circuit_costs", circuit_costs_command)
