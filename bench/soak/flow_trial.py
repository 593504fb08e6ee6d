"""Try a case on the flow network, too, with faults of its own: sums are exact, and times repeat."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random

import networkx as nx

from ringleaf.core.units import PS_PER_US
from ringleaf.errors import BackendError, ConfigError, RingleafError
from ringleaf.experiments.runs.checks import check_fits
from ringleaf.experiments.setup.network import make_graph
from ringleaf.experiments.setup.ranks import count_nodes
from ringleaf.experiments.workloads.collective.experiment import CollectiveExperiment
from ringleaf.experiments.workloads.collective.kind import KIND, resolve
from ringleaf.topologies.graph import link

LATEST_US = 200
"""The latest time at which a fault begins, and the longest that it lasts."""

PACKETS_ALONE = ("loss", "duplicate", "reorder", "cc", "discipline", "trim", "pfc", "program")
"""Options that flows have no form for, and that cases go without."""


def draw_faults(graph: nx.Graph[str], random: Random) -> Iterator[str]:
    """Yield faults of different links that all end, as typed."""
    edges = sorted(tuple(sorted(ends)) for ends in graph.edges)
    for a, b in random.sample(edges, min(random.randint(0, 3), len(edges))):
        start_us, lasting_us = random.randint(0, LATEST_US), random.randint(1, LATEST_US)
        slowed = link(graph, a, b).rate_bps // random.randint(2, 20)
        what = random.choice(("down", f"rate {slowed}"))
        yield f"{a}-{b} {what} at {start_us * PS_PER_US}ps for {lasting_us * PS_PER_US}ps"


def flow_options(given: Mapping[str, str]) -> dict[str, str]:
    """Return the options of a case as the flow network takes them, with faults.

    Raises:
        RingleafError: If it does not.
    """
    random = Random(f"{given['seed']} flows")
    options = {name: value for name, value in given.items() if name not in PACKETS_ALONE}
    options |= {"net": "flow", "queue": "1G"}
    plain = resolve(options)
    graph = make_graph(plain)
    if faults := ", ".join(draw_faults(graph, random)):
        options["faults"] = faults
        if graph.graph["routing"] == "shortest" and plain.routes in ("dealt", "ecmp"):
            options |= random.choice(({}, {"reroute": "0"}, {"reroute": "20us"}))
    return options


def try_flows(given: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Run a case by flows, its first size twice; return, for each run, what came and why."""
    try:
        options = flow_options(given)
        rows = _rows(options)
        again = _rows(options | {"size": str(rows[0][1])})
    except ConfigError as error:
        return [("refused", "flows", str(error))]
    except BackendError as error:
        return [("stuck", "flows", str(error))]
    except RingleafError as error:
        return [("refused", "flows", str(error))]
    except Exception as error:  # noqa: BLE001 -- whatever it is, it is what a soak looks for
        return [("error", "flows", f"{type(error).__name__}: {error}")]
    if again != rows[: len(again)]:
        return [("wrong", "flows", f"another result the second time: {rows}, {again}")]
    return [
        ("wrong" if wrong else "ok", f"{algo} by flows", f"{wrong} elements" if wrong else "")
        for algo, _, _, wrong in rows
    ]


def _rows(options: Mapping[str, str]) -> list[tuple[str, int, int, int | None]]:
    """Return the algorithm, size, time and wrong elements of each run."""
    spec = resolve(options)
    check_fits(KIND, spec, count_nodes(spec))
    rows = [each.row for each in CollectiveExperiment(spec).run()]
    return [(row.algo, row.size_bytes, row.time_ps, row.wrong) for row in rows]
