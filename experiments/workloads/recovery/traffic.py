"""The traffic of plans on the network: each different iteration is simulated once.

An iteration begins on an idle network, and ends when the last packet is there. So the same plan
takes the same time again, which isn't simulated again, unless something is wrong with the network
meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import networkx as nx

from ringleaf.core.faults import NetworkFault
from ringleaf.experiments.workloads.graph.experiment import WorkExperiment
from ringleaf.experiments.workloads.graph.results import WorkResults
from ringleaf.experiments.workloads.recovery.spec import RecoverySpec, is_host_loss
from ringleaf.hosts.recoveries.common.iteration import copy_graph, iteration_graph
from ringleaf.hosts.recoveries.common.plan import LayerCopy, Plan
from ringleaf.hosts.workload.graph import Graph
from ringleaf.hosts.workload.meetings import match


@dataclass(slots=True)
class Totals:
    """The account of simulations, for the table's foot."""

    wrong: int | None = 0  # values since they were taken; None: there were no data
    reason: str = ""
    retransmissions: int = 0
    drops: int = 0
    packet_hops: int = 0
    simulations: int = 0
    wall_s: float = 0.0

    def take(self, done: WorkResults, wall_s: float) -> None:
        """Take the results of a simulation, which took so long."""
        self.wrong = None if done.wrong is None or self.wrong is None else self.wrong + done.wrong
        self.reason = self.reason or done.reason
        self.retransmissions += done.retransmissions
        self.drops += done.drops
        self.packet_hops += done.packet_hops
        self.simulations += 1
        self.wall_s += wall_s

    def take_wrong(self) -> int | None:
        """Return the number of wrong values since the last call."""
        wrong = self.wrong
        self.wrong = None if wrong is None else 0
        return wrong


class PlanTraffic:
    """The network of plans, which is `PlanTimes`.

    Args:
        spec: The options, fitted.
        graph: The topology.
        tell: Called after each simulation.
    """

    def __init__(
        self, spec: RecoverySpec, graph: nx.Graph[str], tell: Callable[[], None] = lambda: None
    ) -> None:
        self._spec, self._graph, self._tell = spec, graph, tell
        self._sizes, self._split = spec.model_sizes()
        self._known: dict[tuple[object, ...], int] = {}
        self._faults = [each for each in spec.faults if not is_host_loss(each)]
        self.totals = Totals()

    @property
    def layer_bytes(self) -> int:
        """The state of a layer."""
        sizes = self._sizes
        return (sizes.attention_parameters + sizes.ffn_parameters) * self._spec.state_bytes

    def alone_ps(self, plan: Plan) -> int:
        """Return the time of an iteration while nothing is wrong."""
        return self._usual(plan.key, partial(self._iteration, plan))

    def iterate(self, plan: Plan, start_ps: int) -> int:
        """Return the time of an iteration that begins then."""
        return self._time_of(plan.key, partial(self._iteration, plan), start_ps)

    def _iteration(self, plan: Plan) -> Graph:
        return iteration_graph("iteration", self._sizes, self._split, plan, self._spec.workers)

    def copy(self, copies: Sequence[LayerCopy], start_ps: int) -> int:
        """Return the time of copies that begin then."""

        def make() -> Graph:
            return copy_graph("copies", self._split, copies, self._spec.workers, self.layer_bytes)

        return self._time_of(("copies", *copies), make, start_ps)

    def _time_of(self, key: tuple[object, ...], make: Callable[[], Graph], start_ps: int) -> int:
        time_ps = self._usual(key, make)
        faults = faults_within(self._faults, start_ps, start_ps + time_ps)
        if not faults:
            return time_ps
        troubled = (*key, faults)
        if troubled not in self._known:
            self._known[troubled] = self._simulate(make(), faults)
        return self._known[troubled]

    def _usual(self, key: tuple[object, ...], make: Callable[[], Graph]) -> int:
        if key not in self._known:
            self._known[key] = self._simulate(make(), ())
        return self._known[key]

    def _simulate(self, graph: Graph, faults: tuple[NetworkFault, ...]) -> int:
        spec = self._spec.model_copy(update={"faults": faults})
        experiment = WorkExperiment(spec, match(graph, spec.eager_limit), self._graph)
        done = experiment.run(lambda share, _done, _wanted: None, lambda hops: None)
        self.totals.take(done, experiment.wall_s)
        self._tell()
        return done.iteration_ps


def faults_within(
    faults: Sequence[NetworkFault], start_ps: int, end_ps: int
) -> tuple[NetworkFault, ...]:
    """Return the faults from a time on, as if that were the start; none if none is before the end.

    Args:
        faults: Faults, at times since the start of the training.
        start_ps: The start.
        end_ps: The end, if nothing goes wrong.
    """
    left = []
    for fault in faults:
        for at_ps, over_ps in fault.spans():
            if over_ps is None or over_ps > start_ps:
                begin_ps = max(at_ps, start_ps)
                lasting_ps = None if over_ps is None else over_ps - begin_ps
                left.append(
                    replace(
                        fault, at_ps=begin_ps - start_ps, lasting_ps=lasting_ps, every_ps=0, times=1
                    )
                )
    return tuple(left) if any(each.at_ps < end_ps - start_ps for each in left) else ()
