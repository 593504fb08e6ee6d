"""Trainings of a plan, one after the other."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from functools import cached_property
from typing import Any

from ringleaf.core.tensors import use_one_thread
from ringleaf.core.units import format_count, format_time
from ringleaf.experiments.records.conditions import (
    about_capture,
    conduct,
    inside_nodes_of,
    unlike_hardware,
)
from ringleaf.experiments.records.fewer_trees import fewer_trees
from ringleaf.experiments.records.folder import RunFolder
from ringleaf.experiments.records.idle import idle
from ringleaf.experiments.records.late_faults import of_faults
from ringleaf.experiments.runs import loading
from ringleaf.experiments.runs.kind import Experiment
from ringleaf.experiments.runs.progress import Progress
from ringleaf.experiments.setup.network import divide_injection, make_graph
from ringleaf.experiments.workloads.converge.plan import (
    ConvergencePlan,
    has_allreduces,
    is_by_messages,
    make_program,
)
from ringleaf.experiments.workloads.converge.results import ConvergeResults
from ringleaf.experiments.workloads.converge.run import run
from ringleaf.experiments.workloads.converge.spec import ConvergeSpec
from ringleaf.topologies.graph import hosts
from ringleaf.topologies.kinds import describe, link_kinds
from ringleaf.topologies.registry import notes


class ConvergeExperiment(Experiment[ConvergeSpec]):
    """A plan on a network.

    Args:
        spec: The options.
        plan: The plan, with the parts that are wanted.

    Raises:
        ConfigError: If a method does not work on so many ranks.
    """

    def __init__(self, spec: ConvergeSpec, plan: ConvergencePlan) -> None:
        super().__init__()
        self.spec = divide_injection(spec)
        self._plan = plan
        self._graph = make_graph(self.spec)
        for method in dict.fromkeys(case.method for case in plan.cases):
            make_program(method, 0, len(hosts(self._graph)))

    @property
    def count(self) -> int:
        """The number of trainings."""
        return len(self._plan.cases)

    @cached_property
    def results(self) -> ConvergeResults:
        """The results, which still have no rows at first."""
        spec, plan, graph = self.spec, self._plan, self._graph
        adding = dict.fromkeys(case.algo for case in plan.cases if has_allreduces(case))
        return ConvergeResults(
            about=[
                f"{format_count(self.count, 'training')} on {graph.graph['name']}, "
                f"{describe(link_kinds(graph))}",
                f"{conduct(spec)}; seed {plan.seed}",
                f"batches of {plan.batch}, whose gradients take {format_time(plan.compute_ps)}",
                inside_nodes_of(spec),
                *unlike_hardware(vars(spec)),
                *idle(spec, [*adding]),
                *fewer_trees(spec, graph, {name: [hosts(graph)] for name in adding}),
                *_without_allreduces(plan),
                *_times_of_faults(spec),
                *notes(spec.topo),
                *about_capture(spec.cross_traffic),
            ],
            faults=of_faults(self.plain()),
        )

    def plain(self) -> dict[str, Any]:
        """Return the options, and the number of trainings."""
        return self.spec.plain() | {"trainings": self.count}

    def record(self, shown: Progress, folder: RunFolder) -> Generator[None]:
        """Train all, and keep a row and the course of each."""
        del folder
        use_one_thread()
        shown.stage(loading.stage())
        with closing(run(self._plan, self.spec)) as done:
            shown.begin(f"training 1 of {self.count}", packets_s=1)
            for number, curve in enumerate(done, start=1):
                self.results.add(curve)
                yield
                if number < self.count:
                    shown.begin(f"training {number + 1} of {self.count}", packets_s=1)

    @property
    def expected_s(self) -> float:
        """The trainings, which count alike."""
        return float(self.count)


def _without_allreduces(plan: ConvergencePlan) -> Iterator[str]:
    """Yield a line on schemes and methods that have no allreduce, whose algorithm is of no use."""
    cases = [case for case in plan.cases if not has_allreduces(case)]
    names = [case.workload for case in cases if is_by_messages(case)]
    names += [case.method for case in cases if not is_by_messages(case)]
    if names:
        yield f"no allreduce, so no part for algo: {', '.join(dict.fromkeys(names))}"


def _times_of_faults(spec: ConvergeSpec) -> Iterator[str]:
    """Yield a line on the times of faults, if any of them begins later, or ends."""
    if any(fault.at_ps or fault.lasting_ps is not None for fault in spec.faults):
        yield "faults happen in each exchange, at times after its start"
