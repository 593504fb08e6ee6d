"""Try one case: judge every run of it, and check its networks for leaks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import networkx as nx

from bench.soak.cases import Disturbances, SoakCase
from bench.soak.fault_draws import cut_off, down_for_good, restarts_of
from bench.soak.nic_cases import NicCase
from ringleaf.collectives.algorithm import Algorithm
from ringleaf.collectives.schedule import Schedule
from ringleaf.core.tensors import FLOAT32, Array, ElementType
from ringleaf.errors import BackendError, DeadlockError, RingleafError
from ringleaf.experiments.checking.data import RankInputs
from ringleaf.experiments.runs.checks import check_fits
from ringleaf.experiments.setup.network import connect
from ringleaf.experiments.setup.ranks import count_nodes
from ringleaf.experiments.spec.network import NetworkSpec
from ringleaf.experiments.workloads.collective.experiment import CollectiveExperiment
from ringleaf.experiments.workloads.collective.kind import KIND, resolve
from ringleaf.experiments.workloads.collective.measuring import Measurement
from ringleaf.experiments.workloads.collective.spec import CollectiveSpec
from ringleaf.ina.registry import SYSTEMS
from ringleaf.networks.groups import Group
from ringleaf.networks.outcome import RunResult
from ringleaf.networks.virtual import VirtualNetwork
from ringleaf.topologies.dependencies import can_deadlock
from ringleaf.topologies.graph import switches

if TYPE_CHECKING:
    from ringleaf.networks.faults import Disturbance

GOOD = ("ok", "ended", "refused")


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of a run of a case.

    Attributes:
        what: `ok`, `refused`, `ended` (with a valid cause), or the kind of error: `wrong`,
            `bound`, `resent`, `leak`, `stuck`, `error`.
        where: The algorithm and size, or the round of jobs.
        why: The reason in words; empty if all is well.
        seen: What a run that was ok has measured, which no number of threads may change.
    """

    what: str
    where: str = ""
    why: str = ""
    seen: object = None

    @property
    def is_bad(self) -> bool:
        """Whether the outcome is an error."""
        return self.what not in GOOD

    @property
    def is_broken(self) -> bool:
        """Whether the run's network can't be used any more; one that was refused may have begun."""
        return self.what in ("ended", "stuck", "error", "refused")


class Worn:
    """A network that is used again and again, disturbed, and checked for leaks after each run."""

    def __init__(self, network: VirtualNetwork, case: SoakCase | NicCase) -> None:
        self._network = network
        self._case = case
        self._random = Random(f"{case.given['seed']} trouble")
        self.leaked = 0
        self.trims = 0
        self.runs = 0
        self.lost_before = False
        self.gave_up = False
        self._lost = False
        self.disturbed: list[Disturbance] = []

    def begin(self) -> Worn:
        """Begin a measurement, which may be of several runs; return the network."""
        self.leaked = self.trims = 0
        self.disturbed = []
        self.lost_before = self._lost
        return self

    @property
    def slots(self) -> Any:
        return self._network.slots

    def arrays(
        self, elements: int, dtype: ElementType = FLOAT32, schedule: Schedule | None = None
    ) -> list[Array]:
        return self._network.arrays(elements, dtype, schedule)

    def run(
        self,
        schedule: Schedule,
        arrays: Sequence[Array],
        tell: Callable[[int], None] | None = None,
        *,
        until_ps: int | None = None,
    ) -> RunResult:
        self.runs += 1
        graph = self._network.graph
        links = [pair for edge in graph.edges for pair in (edge, edge[::-1])]
        trouble = self._case.trouble.draw(links, switches(graph), self._random)
        self.disturbed += trouble
        outcome = self._network.run(schedule, arrays, tell, disturbances=trouble, until_ps=until_ps)
        self.gave_up = outcome.gave_up
        if not self.gave_up:
            self.leaked += self._network.drain()
        self.trims += outcome.trims
        self._lost = self._lost or bool(outcome.lost or outcome.drops)
        return outcome

    def close(self) -> None:
        """Keep the network open for the next run."""


class Networks:
    """The networks of one case: one for each aggregation system, and one without."""

    def __init__(self, case: SoakCase) -> None:
        self._case = case
        self._made: dict[str | None, Worn] = {}
        self.last: Worn | None = None

    def __call__(
        self,
        spec: CollectiveSpec,
        graph: nx.Graph[str],
        *,
        in_network: str | None,
        capture: Path | None,
        record: Path | None = None,
        groups: Sequence[Group] | None = None,
    ) -> Worn:
        worn = self._made.get(in_network)
        if worn is None or worn.gave_up or groups is not None:
            network = connect(
                *(spec, graph),
                in_network=in_network,
                capture=capture,
                record=record,
                groups=groups,
            )
            assert isinstance(network, VirtualNetwork)
            worn = Worn(network, self._case)
        if groups is None:
            self._made[in_network] = worn
        self.last = worn.begin()
        return self.last

    def forget(self, in_network: str | None) -> None:
        """Make a new network next time, as is done after a run that did not end well."""
        self._made.pop(in_network, None)


def try_case(case: SoakCase) -> list[Finding]:
    """Run a case; return how each of its runs ended."""
    try:
        spec = resolve(case.given)
        check_fits(KIND, spec, count_nodes(spec))
        experiment = CollectiveExperiment(spec)
    except RingleafError as error:
        return [Finding("refused", "", str(error))]
    networks = Networks(case)
    spec, graph = experiment.spec, experiment.graph
    may_block = {adds: may_deadlock(spec, graph, switches_add=adds) for adds in (False, True)}
    is_cut, trouble = cut_off_by(spec, graph), with_faults(case.trouble, spec, graph)
    found = []
    for size_bytes, algorithm, inputs in experiment.tasks():
        where = f"{algorithm.name} {size_bytes} B"
        may_end = is_cut or may_stay_away(algorithm.name, case.given, trouble)
        measure = partial(_measure, experiment, networks, algorithm, size_bytes, inputs, where)
        blocks = may_block[algorithm.in_network]
        ended = try_run(measure, where, may_end=may_end, may_block=blocks)
        if ended.is_broken:
            networks.forget(algorithm.name if algorithm.in_network else None)
        found.append(ended)
    return found


def may_stay_away(
    name: str, given: Mapping[str, str], trouble: Disturbances, *, moves: bool = False
) -> bool:
    """Return whether an algorithm is a system that may wait for sums that never come.

    Such runs may end with a complaint, but in no other way.

    Args:
        name: The algorithm.
        given: Options of the network.
        trouble: The disturbances: a switch that restarts has lost sums, a link that stays down
            takes a tree.
        moves: Whether parts of the switches' memory move; trees of systems whose parts do are not
            built again.
    """
    if name not in SYSTEMS:
        return False
    system = SYSTEMS[name]
    if trouble.mends and "reroute" in given and system.rebuilds and not (moves and system.moves):
        return False
    return bool(trouble.lasting) or bool(trouble.restarts and system.is_forgetful)


def cut_off_by(spec: NetworkSpec, graph: nx.Graph[str]) -> bool:
    """Return whether a case's faults as typed may keep hosts from each other to the end."""
    return cut_off(graph, spec.network_faults, reroutes=spec.reroute_ps is not None)


def with_faults(trouble: Disturbances, spec: NetworkSpec, graph: nx.Graph[str]) -> Disturbances:
    """Return the disturbances of a case, and those that its faults as typed amount to."""
    faults = spec.network_faults
    if not faults:
        return trouble
    return replace(
        trouble,
        restarts=trouble.restarts + restarts_of(graph, faults),
        lasting=trouble.lasting + len(list(down_for_good(graph, faults))),
        mends=int(spec.reroute_ps is not None),
    )


def may_deadlock(spec: NetworkSpec, graph: nx.Graph[str], *, switches_add: bool = False) -> bool:
    """Return whether switches may wait for each other: they pause, and routes have a cycle.

    Args:
        spec: The options.
        graph: The topology.
        switches_add: Whether switches add: their trees take turns that hosts' routes do not, so
            that any circle of links is enough.
    """
    if spec.pfc is None:
        return False
    if switches_add and not nx.is_forest(graph):
        return True
    return can_deadlock(graph, ecmp=spec.routes == "ecmp")


def try_run(
    run: Callable[[], Finding], where: str, *, may_end: bool = False, may_block: bool = False
) -> Finding:
    """Return the finding of a run, or of its failure.

    Args:
        run: Function that runs once and judges.
        where: The run's name in findings.
        may_end: Whether the run may end without a result, if it says why.
        may_block: Whether it may end by a deadlock, if it names it.
    """
    try:
        return run()
    except DeadlockError as error:
        return Finding("ended" if may_end or may_block else "stuck", where, str(error))
    except BackendError as error:
        return Finding("ended" if may_end else "stuck", where, str(error))
    except RingleafError as error:
        return Finding("refused", where, str(error))
    except Exception as error:  # noqa: BLE001 -- whatever it is, it is what a soak looks for
        return Finding("error", where, f"{type(error).__name__}: {error}")


def _measure(
    experiment: CollectiveExperiment,
    networks: Networks,
    algorithm: Algorithm,
    size_bytes: int,
    inputs: RankInputs,
    where: str,
) -> Finding:
    measurement = experiment.measure(networks, algorithm, size_bytes, inputs)
    assert networks.last is not None
    return _judge(measurement, where, networks.last, experiment.spec)


def _judge(measurement: Measurement, where: str, network: Worn, spec: CollectiveSpec) -> Finding:
    row = measurement.row
    if row.wrong:
        return Finding("wrong", where, f"{row.wrong} elements: {row.reason}")
    limits = [("floor", row.floor_ps)]
    if row.algo not in SYSTEMS or not SYSTEMS[row.algo].deals_on or network.runs == 1:
        limits.append(("bound", row.bound_ps))
    for name, least_ps in limits:
        if least_ps > row.time_ps:
            return Finding("bound", where, f"{name} {least_ps} ps, time {row.time_ps} ps")
    if network.leaked:
        return Finding("leak", where, f"{network.leaked} packets")
    calm = not (
        row.lost
        or row.corrupted
        or row.drops
        or network.trims
        or spec.duplicate
        or spec.reorder
        or network.disturbed
        or spec.network_faults
        or (spec.circuits and not spec.circuits.keeps_order)
        # A host that an answer with credit never reached begins late, and others wait for its part.
        or (network.lost_before and row.algo in SYSTEMS)
    )
    if calm and row.retransmissions:
        return Finding("resent", where, f"{row.retransmissions} packets, and none was lost")
    return Finding("ok", where, seen=row)
