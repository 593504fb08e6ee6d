"""Try a case on the flow network, too, with faults of its own: sums are exact, and times repeat."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random

from bench.soak.cases import for_other_programs
from bench.soak.fault_draws import draw_faults, draw_losses
from bench.soak.trial import cut_off_by
from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.core.faults import DOWN, RATE
from ringleaf.errors import BackendError, ConfigError, RingleafError
from ringleaf.experiments.runs.checks import check_fits
from ringleaf.experiments.setup.network import make_graph
from ringleaf.experiments.setup.ranks import count_nodes
from ringleaf.experiments.workloads.collective.experiment import CollectiveExperiment
from ringleaf.experiments.workloads.collective.kind import KIND, resolve
from ringleaf.experiments.workloads.collective.spec import CollectiveSpec
from ringleaf.experiments.workloads.graph.spec import WorkloadSpec

PACKETS_ALONE = (
    *("loss", "duplicate", "reorder", "cc", "discipline", "trim", "pfc", "program"),
    *("faults", "reroute", "repath"),
)
"""Options that flows have no form for, or have others of, and that cases go without."""

Read = Callable[[dict[str, str]], CollectiveSpec | WorkloadSpec]

FAULTS_SHARE = 0.75
"""The share of runs by flows that have faults."""


def flow_options(
    given: Mapping[str, str], read: Read = resolve, more: Sequence[str] = ()
) -> dict[str, str]:
    """Return the options of a case as the flow network takes them, with faults.

    Args:
        given: The options.
        read: Function that resolves them.
        more: Kinds of faults that a workload sees to.

    Raises:
        RingleafError: If it does not.
    """
    random = Random(f"{given['seed']} flows")
    fluid = for_other_programs(given)
    options = {name: value for name, value in fluid.items() if name not in PACKETS_ALONE}
    options |= {"net": "flow", "queue": "1G"}
    plain = read(options)
    if random.random() < FAULTS_SHARE:
        adds = any(ALGORITHMS[name].in_network for name in plain.algos)
        kinds = (RATE, *more) if adds else (DOWN, RATE, *more)
        if "shrink" in given and not adds:
            options["faults"] = draw_losses(plain.topo, random)
        else:
            options["faults"] = draw_faults(plain.topo, random, kinds, lasting=True)
        graph = make_graph(plain)
        if graph.graph["routing"] == "shortest" and plain.routes in ("dealt", "ecmp"):
            options |= random.choice(({}, {"reroute": "0"}, {"reroute": "20us"}))
    return options


def try_flows(given: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Run a case by flows, its first size twice; return, for each run, what came and why."""
    options: dict[str, str] = {}
    try:
        options = flow_options(given)
        rows = _rows(options)
        again = _rows(options | {"size": str(rows[0][1])})
    except ConfigError as error:
        return [("refused", "flows", str(error))]
    except BackendError as error:
        return [("ended" if _may_end(options) else "stuck", "flows", str(error))]
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


def _may_end(options: Mapping[str, str]) -> bool:
    spec = resolve(options)
    return cut_off_by(spec, make_graph(spec))


def _rows(options: Mapping[str, str]) -> list[tuple[str, int, int, int | None]]:
    """Return the algorithm, size, time and wrong elements of each run."""
    spec = resolve(options)
    check_fits(KIND, spec, count_nodes(spec))
    rows = [each.row for each in CollectiveExperiment(spec).run()]
    return [(row.algo, row.size_bytes, row.time_ps, row.wrong) for row in rows]
